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
	// Separate is the container of its own that the verifier runs in, which has its tests already;
	// nil: it runs where the agent worked.
	Separate *Environment
	// Artifacts are the absolute paths that a separate verifier gets.
	Artifacts []string
	// Collect are commands that run where the agent worked before anything is taken from there.
	Collect []CollectHook
	// Solution is a directory with solve.sh, which becomes /solution; empty: there is none.
	Solution    string
	SolutionEnv map[string]string
}

// CollectHook is a command that prepares what a verifier looks at.
type CollectHook struct {
	Command string
	User    string
	Timeout time.Duration
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
	if !exists(h.path("tests/test.sh")) && h.file.Verifier.separate() == nil {
		return t, mistake(path.Join(h.rel, "tests/test.sh"), "missing: it verifies the task")
	}
	if t.Settings, err = h.settings(); err != nil {
		return t, err
	}
	if t.Settings.Environment, err = h.environment(&t, &h.file.Environment, "environment"); err != nil {
		return t, err
	}
	if t.Verifier, err = h.verifier(&t); err != nil {
		return t, err
	}
	separate := t.Verifier.Separate != nil
	t.Settings.Environment.KeepRunning = !separate
	h.harborDigests(&t)
	return t, nil
}

// unsupported refuses what nobody can give a task here.
func (h *harborLoader) unsupported() error {
	file := h.file
	for _, env := range []*harborEnvironment{&file.Environment, file.Verifier.Environment} {
		switch {
		case env == nil:
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
	}
	for phase, settings := range map[string]harborPhase{"agent": file.Agent, "verifier": file.Verifier.harborPhase} {
		if settings.NetworkMode == "allowlist" || len(settings.AllowedHosts) > 0 {
			return refuse("it needs a list of allowed hosts (%s.allowed_hosts)", phase)
		}
	}
	if len(file.Steps) > 0 {
		return refuse("it has several steps (steps)")
	}
	for _, hook := range file.Verifier.Collect {
		if hook.Service != "" && hook.Service != harborService {
			return refuse("it has the service %s (verifier.collect)", hook.Service)
		}
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
	noNetwork = "no-network"
	// harborUnlimited is the time of an agent whose task sets no limit.
	harborUnlimited       = 24 * time.Hour
	harborVerifierTimeout = 10 * time.Minute
	harborCollectTimeout  = time.Minute
	harborService         = "main"
)

// environment is the container of the agent, or of a separate verifier. An image that is named wins
// over the Dockerfile beside it.
func (h *harborLoader) environment(t *Task, file *harborEnvironment, dir string) (*Environment, error) {
	e := &Environment{
		Image:          file.DockerImage,
		Images:         h.loader.file.Images,
		Workdir:        file.Workdir,
		KeepEntrypoint: true,
		BuildTimeout:   harborSeconds(&file.BuildTimeoutSec, 10*time.Minute),
		Env:            map[string]string{},
	}
	if dir == "environment" {
		e.User = harborUser(h.file.Agent.User)
	}
	for name, value := range file.Env {
		filled, _, err := harborValue(value, h.env)
		if err != nil {
			return nil, refuse("environment.env: %w", err)
		}
		if looksLikeCredential(name) && len(filled) >= minSecretLength {
			t.Env = append(t.Env, Variable{Name: name, Value: filled, Secret: true})
			continue
		}
		e.Env[name] = filled
	}
	if err := h.compose(e, dir); err != nil {
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
	dockerfile := h.path(path.Join(dir, "Dockerfile"))
	switch {
	case e.Image != "" && !isFile(dockerfile) && dir == "environment" && isDir(h.path(dir)):
		t.Overlays = append(t.Overlays, Overlay{From: h.path(dir)})
	case e.Image != "":
	case !isFile(dockerfile):
		return nil, mistake(path.Join(h.rel, dir), "there is neither a Dockerfile nor a docker_image in %s", harborName)
	default:
		e.Dockerfile, e.Context = dockerfile, filepath.Dir(dockerfile)
		var err error
		if e.Content, err = ContextDigest(e.Dockerfile, e.Context, e.Images); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// separate is the environment of a verifier that has one of its own; nil: it shares the agent's.
func (v *harborVerifier) separate() *harborEnvironment {
	switch {
	case v.Environment != nil:
		return v.Environment
	case v.Mode == "separate":
		return &harborEnvironment{}
	}
	return nil
}

// verifier is how the task is graded.
func (h *harborLoader) verifier(t *Task) (*Verifier, error) {
	file := &h.file.Verifier
	v := &Verifier{
		Tests:       h.path("tests"),
		User:        harborUser(file.User),
		Timeout:     harborSeconds(file.TimeoutSec, harborVerifierTimeout),
		Env:         map[string]string{},
		SolutionEnv: map[string]string{},
	}
	if file.Mode == "shared" && file.Environment != nil {
		return nil, mistake(path.Join(h.rel, harborName),
			"verifier: environment_mode is shared, and there is an environment: leave one of them out")
	}
	for name, value := range file.Env {
		filled, _, err := harborValue(value, h.env)
		if err != nil {
			return nil, refuse("verifier.env: %w", err)
		}
		v.Env[name] = filled
	}
	for name, value := range h.file.Solution.Env {
		filled, _, err := harborValue(value, h.env)
		if err != nil {
			return nil, refuse("solution.env: %w", err)
		}
		v.SolutionEnv[name] = filled
	}
	if isFile(h.path("solution/solve.sh")) {
		v.Solution = h.path("solution")
	}
	for _, hook := range file.Collect {
		v.Collect = append(v.Collect, CollectHook{
			Command: hook.Command,
			User:    harborUser(hook.User),
			Timeout: harborSeconds(hook.TimeoutSec, harborCollectTimeout),
		})
	}
	for _, artifact := range h.file.Artifacts {
		source, err := harborArtifact(artifact)
		if err != nil {
			return nil, err
		}
		v.Artifacts = append(v.Artifacts, source)
	}
	if separate := file.separate(); separate != nil {
		var err error
		if v.Separate, err = h.environment(t, separate, "tests"); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// harborArtifact is the path of an artifact: a text, or a table.
func harborArtifact(artifact any) (string, error) {
	source, _ := artifact.(string)
	if fields, ok := artifact.(map[string]any); ok {
		source, _ = fields["source"].(string)
		if service, _ := fields["service"].(string); service != "" && service != harborService {
			return "", refuse("it has the service %s (artifacts)", service)
		}
	}
	if !path.IsAbs(source) {
		return "", refuse("the artifact %q is not an absolute path", source)
	}
	return path.Clean(source), nil
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
	hidden.add("verifier", "settings", []byte(fmt.Sprint(t.Verifier.User, t.Verifier.Timeout, t.Verifier.Artifacts)))
	t.Digest = Digest{Visible: visible.String(), Hidden: hidden.String()}
	t.Files = h.fileDigests(t)
}
