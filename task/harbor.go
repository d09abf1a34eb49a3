package task

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Verifier is how a Harbor task is graded: a program of the task's tests writes rewards to a file.
type Verifier struct {
	// Tests is the directory that becomes /tests; test.sh in it is run.
	Tests   string
	User    string
	Env     map[string]string
	Timeout time.Duration
	// Solution is a directory with solve.sh, which becomes /solution; empty: there is none.
	Solution    string
	SolutionEnv map[string]string
}

// harborName is the file that makes a directory a Harbor task.
const harborName = "task.toml"

// isHarbor reports whether a directory is a Harbor task, or a set of them.
func isHarbor(dir string) bool {
	if exists(filepath.Join(dir, harborName)) {
		return true
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", harborName))
	return err == nil && len(found) > 0 && !isDir(filepath.Join(dir, "tasks"))
}

// refusal is why a task cannot be run here, while the rest of its set can.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }

// refuse says which part of a task file is not supported.
func refuse(format string, args ...any) error { return &refusal{fmt.Errorf(format, args...)} }

// harbor loads a Harbor task, or a directory of them. Tasks that need what is not there are left
// out and named.
func (l *loader) harbor() {
	dirs := []string{"."}
	if !exists(filepath.Join(l.real, harborName)) {
		found, err := filepath.Glob(filepath.Join(l.real, "*", harborName))
		if err != nil {
			l.fail(err)
		}
		dirs = dirs[:0]
		for _, name := range found {
			dirs = append(dirs, filepath.Base(filepath.Dir(name)))
		}
	}
	slices.Sort(dirs)
	var refused []error
	for _, dir := range dirs {
		h := &harborLoader{loader: l, rel: dir}
		t, err := h.load()
		var no *refusal
		switch {
		case errors.As(err, &no):
			problem := mistake(path.Join(dir, harborName), "%v", no.err)
			refused = append(refused, problem)
			l.family.Warnings = append(l.family.Warnings, "task "+t.ID+" is left out: "+no.Error())
		case err != nil:
			l.add(err)
		default:
			l.family.Tasks = append(l.family.Tasks, t)
		}
	}
	if len(l.family.Tasks) == 0 {
		l.problems = append(l.problems, refused...)
	}
}

// harborLoader loads one Harbor task.
type harborLoader struct {
	*loader
	rel  string
	file *harborFile
	env  map[string]string // of this machine, for templates
}

func (h *harborLoader) path(name string) string {
	return filepath.Join(h.real, filepath.FromSlash(h.rel), filepath.FromSlash(name))
}

func (h *harborLoader) load() (Task, error) {
	t := Task{ID: h.rel, Dir: filepath.Join(h.real, filepath.FromSlash(h.rel))}
	if h.rel == "." {
		t.ID = filepath.Base(h.real)
	}
	name := path.Join(h.rel, harborName)
	source, err := os.ReadFile(h.path(harborName))
	if err != nil {
		return t, mistake(name, "%v", err)
	}
	if h.file, err = parseHarbor(name, source); err != nil {
		return t, err
	}
	h.env = map[string]string{}
	for _, variable := range h.opts.Environ {
		key, value, _ := strings.Cut(variable, "=")
		h.env[key] = value
	}
	if err := h.unsupported(); err != nil {
		return t, err
	}
	text, ok := h.text(path.Join(h.rel, "instruction.md"))
	if t.Prompt = withoutCanary(text); !ok || strings.TrimSpace(t.Prompt) == "" {
		return t, mistake(path.Join(h.rel, "instruction.md"), "missing or empty: it is the agent's prompt")
	}
	if !exists(h.path("tests/test.sh")) {
		return t, mistake(path.Join(h.rel, "tests/test.sh"), "missing: it verifies the task")
	}
	if t.Settings, err = h.settings(); err != nil {
		return t, err
	}
	if t.Settings.Environment, err = h.environment(&t); err != nil {
		return t, err
	}
	if t.Verifier, err = h.verifier(); err != nil {
		return t, err
	}
	h.harborDigests(&t)
	return t, nil
}

// unsupported refuses what nobody can give a task here.
func (h *harborLoader) unsupported() error {
	file := h.file
	env := &file.Environment
	switch {
	case env.GPUs > 0:
		return refuse("it needs GPUs (environment.gpus)")
	case len(env.TPU) > 0:
		return refuse("it needs a TPU (environment.tpu)")
	case env.OS != "" && !strings.EqualFold(env.OS, "linux"):
		return refuse("it needs %s (environment.os)", env.OS)
	case env.NetworkMode == "allowlist" || len(env.AllowedHosts) > 0:
		return refuse("it needs a list of allowed hosts (environment.allowed_hosts)")
	case len(env.MCPServers) > 0:
		return refuse("it gives the agent tool servers (environment.mcp_servers)")
	}
	for phase, settings := range map[string]harborPhase{"agent": file.Agent, "verifier": file.Verifier.harborPhase} {
		if settings.NetworkMode == "allowlist" || len(settings.AllowedHosts) > 0 {
			return refuse("it needs a list of allowed hosts (%s.allowed_hosts)", phase)
		}
	}
	if len(file.Steps) > 0 {
		return refuse("it has several steps (steps)")
	}
	if file.Verifier.Environment != nil || file.Verifier.Mode == "separate" {
		return refuse("its verifier has a container of its own (verifier.environment_mode)")
	}
	if len(file.Verifier.Collect) > 0 {
		return refuse("it collects things for its verifier (verifier.collect)")
	}
	return nil
}

// settings are what the task says about time, network and limits.
func (h *harborLoader) settings() (Settings, error) {
	file := h.file
	s := settings(TaskFile{}, h.loader.file.TaskFile, false)
	s.Tags = append(s.Tags, file.Task.Keywords...)
	for _, key := range []string{"difficulty", "category"} {
		if word, ok := file.Metadata[key].(string); ok {
			s.Tags = append(s.Tags, word)
		}
	}
	s.Timeouts.Agent = harborSeconds(file.Agent.TimeoutSec, harborUnlimited)
	memory, err := harborMB("memory", file.Environment.MemoryMB, file.Environment.Memory)
	if err != nil {
		return s, mistake(path.Join(h.rel, harborName), "environment: %v", err)
	}
	if _, err := harborMB("storage", file.Environment.StorageMB, file.Environment.Storage); err != nil {
		return s, mistake(path.Join(h.rel, harborName), "environment: %v", err)
	}
	s.Limits.MemoryMB, s.Limits.CPUs = memory, file.Environment.CPUs
	open := file.Environment.NetworkMode != noNetwork
	if file.Environment.NetworkMode == "" && file.Environment.AllowInternet != nil {
		open = *file.Environment.AllowInternet
	}
	reaches := func(phase string) bool { return phase == "public" || phase == "" && open }
	s.AgentNetwork = AgentNetwork{Kind: networkModel, Required: true}
	if reaches(file.Agent.NetworkMode) {
		s.AgentNetwork = AgentNetwork{Kind: networkHost}
	}
	s.GraderNetwork = reaches(file.Verifier.NetworkMode)
	return s, nil
}

const (
	harborDir = "environment"
	noNetwork = "no-network"
	// harborUnlimited is the time of an agent whose task sets no limit.
	harborUnlimited       = 24 * time.Hour
	harborVerifierTimeout = 10 * time.Minute
	harborService         = "main"
)

// environment is the container of the agent. An image that is named wins over the Dockerfile beside
// it.
func (h *harborLoader) environment(t *Task) (*Environment, error) {
	file := &h.file.Environment
	e := &Environment{
		Image:          file.DockerImage,
		Images:         h.loader.file.Images,
		Workdir:        file.Workdir,
		KeepEntrypoint: true,
		KeepRunning:    true,
		BuildTimeout:   harborSeconds(&file.BuildTimeoutSec, 10*time.Minute),
		Env:            map[string]string{},
		User:           harborUser(h.file.Agent.User),
	}
	for name, value := range file.Env {
		filled, err := harborValue(value, h.env)
		if err != nil {
			return nil, refuse("environment.env: %w", err)
		}
		if looksLikeCredential(name) && len(filled) >= minSecretLength {
			t.Env = append(t.Env, Variable{Name: name, Value: filled, Secret: true})
			continue
		}
		e.Env[name] = filled
	}
	if err := h.compose(e); err != nil {
		return nil, err
	}
	if check := file.Healthcheck; check != nil {
		e.Healthcheck = &Healthcheck{
			Command:       check.Command,
			Interval:      harborSeconds(check.IntervalSec, 5*time.Second),
			Timeout:       harborSeconds(check.TimeoutSec, 30*time.Second),
			StartPeriod:   harborSeconds(check.StartPeriodSec, 0),
			StartInterval: harborSeconds(check.StartIntervalSec, 5*time.Second),
			Retries:       3,
		}
		if check.Retries != nil {
			e.Healthcheck.Retries = *check.Retries
		}
	}
	if mapped := e.Images[e.Image]; mapped != "" {
		e.Image = mapped
	}
	dockerfile := h.path(harborDir + "/Dockerfile")
	if e.Workdir == "" {
		e.Workdir = lastWorkdir(dockerfile)
	}
	switch {
	case e.Image != "" && !isFile(dockerfile) && isDir(h.path(harborDir)):
		t.Overlays = append(t.Overlays, Overlay{From: h.path(harborDir)})
	case e.Image != "":
	case !isFile(dockerfile):
		return nil, mistake(path.Join(h.rel, harborDir),
			"there is neither a Dockerfile nor a docker_image in %s", harborName)
	default:
		e.Dockerfile, e.Context = dockerfile, filepath.Dir(dockerfile)
		var err error
		if e.Content, err = contextDigest(e.Dockerfile, e.Context, e.Images); err != nil {
			return nil, err
		}
	}
	return e, nil
}

var workdirLine = regexp.MustCompile(`(?mi)^\s*WORKDIR\s+(/[\w./-]+)\s*$`)

// lastWorkdir is the working directory that a Dockerfile sets last; empty: it sets none.
func lastWorkdir(dockerfile string) string {
	content, err := os.ReadFile(dockerfile)
	if err != nil {
		return ""
	}
	all := workdirLine.FindAllStringSubmatch(string(content), -1)
	if len(all) == 0 || path.Clean(all[len(all)-1][1]) == "/" {
		return ""
	}
	return path.Clean(all[len(all)-1][1])
}

// verifier is how the task is graded.
func (h *harborLoader) verifier() (*Verifier, error) {
	file := &h.file.Verifier
	v := &Verifier{
		Tests:       h.path("tests"),
		User:        harborUser(file.User),
		Timeout:     harborSeconds(file.TimeoutSec, harborVerifierTimeout),
		Env:         map[string]string{},
		SolutionEnv: map[string]string{},
	}
	for name, value := range file.Env {
		filled, err := harborValue(value, h.env)
		if err != nil {
			return nil, refuse("verifier.env: %w", err)
		}
		v.Env[name] = filled
	}
	for name, value := range h.file.Solution.Env {
		filled, err := harborValue(value, h.env)
		if err != nil {
			return nil, refuse("solution.env: %w", err)
		}
		v.SolutionEnv[name] = filled
	}
	if isFile(h.path("solution/solve.sh")) {
		v.Solution = h.path("solution")
	}
	return v, nil
}

var (
	canaryHTML = regexp.MustCompile(`(?s)^\s*<!--(.*?)-->\s*`)
	canaryHash = regexp.MustCompile(`^\s*#([^\n]*)\n`)
)

// withoutCanary drops the comments at the beginning of an instruction that mark it for those who
// collect training data.
func withoutCanary(text string) string {
	for {
		dropped := false
		for _, comment := range []*regexp.Regexp{canaryHTML, canaryHash} {
			if match := comment.FindStringSubmatch(text); match != nil &&
				strings.Contains(strings.ToLower(match[1]), "canary") {
				text, dropped = text[len(match[0]):], true
			}
		}
		if !dropped {
			return text
		}
	}
}

// harborDigests identifies the task: what the agent sees, and what decides about it.
func (h *harborLoader) harborDigests(t *Task) {
	visible, hidden := newDigester(), newDigester()
	visible.add("instruction.md", "prompt", []byte(t.Prompt))
	visible.add("environment", "content", []byte(cmp.Or(t.Settings.Environment.Content, t.Settings.Environment.Image)))
	for _, overlay := range t.Overlays {
		entries, err := walkTree(overlay.From, nil)
		if err == nil {
			err = visible.addTree(overlay.To, entries)
		}
		if err != nil {
			h.fail(err)
		}
	}
	hidden.add("settings", "json", []byte(h.hiddenDigest(t)))
	hidden.add("verifier", "settings", []byte(fmt.Sprint(t.Verifier.User, t.Verifier.Timeout)))
	t.Digest = Digest{Visible: visible.String(), Hidden: hidden.String()}
	t.Files = h.fileDigests(t)
}
