package task

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// harborName is the file that makes a directory a Harbor task.
const harborName = "task.toml"

// isHarbor reports whether a directory is a Harbor task, or a set of them.
func isHarbor(dir string) bool {
	if exists(filepath.Join(dir, harborName)) {
		return true
	}
	return len(glob.Below(dir, "*/"+harborName)) > 0 && !isDir(filepath.Join(dir, "tasks"))
}

// refusal says why a task cannot be run here, while the rest of its set can.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }

// refuse returns a refusal that names the unsupported part of a task file.
func refuse(format string, args ...any) error { return &refusal{fmt.Errorf(format, args...)} }

// harbor loads a Harbor task, or a directory of them. Tasks that need unsupported features are left
// out and named.
func (l *loader) harbor() {
	dirs := []string{"."}
	if !exists(filepath.Join(l.real, harborName)) {
		dirs = dirs[:0]
		for _, name := range glob.Below(l.real, "*/"+harborName) {
			dirs = append(dirs, filepath.Base(filepath.Dir(name)))
		}
	}
	slices.Sort(dirs)
	var refused []error
	for _, dir := range dirs {
		h := &harborLoader{loader: l, rel: dir}
		t, err := h.load()
		switch no, ok := errors.AsType[*refusal](err); {
		case ok:
			problem := mistake(path.Join(dir, harborName), "%v", no.err)
			refused = append(refused, problem)
			l.family.Warnings = append(l.family.Warnings, "task "+t.ID+" is left out: "+no.Error())
			l.family.LeftOut = append(l.family.LeftOut, LeftOut{Task: t.ID, Reason: no.Error()})
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

// path returns the path of a file or directory of the task as at does.
func (h *harborLoader) path(name string) string {
	return h.at(path.Join(h.rel, name))
}

func (h *harborLoader) load() (Task, error) {
	t := Task{ID: h.rel, Dir: filepath.Join(h.real, filepath.FromSlash(h.rel))}
	if h.rel == "." {
		t.ID = filepath.Base(h.real)
	}
	name := path.Join(h.rel, harborName)
	source, err := h.read(name)
	if err != nil {
		return t, mistake(name, "%v", err)
	}
	if h.file, err = parseHarbor(name, source); err != nil {
		return t, err
	}
	// A task for another system is left out, whatever its values are like there.
	if err := h.unsupported(); err != nil {
		return t, err
	}
	if err := h.check(); err != nil {
		return t, err
	}
	h.env = valuesOf(h.opts.Environ)
	if t.Settings, err = h.settings(); err != nil {
		return t, err
	}
	if t.Settings.Environment, err = h.environment(&t); err != nil {
		return t, err
	}
	if t.Verifier, err = h.verifier("."); err != nil {
		return t, err
	}
	if err := h.steps(&t); err != nil {
		return t, err
	}
	h.harborDigests(&t)
	return t, nil
}

// unsupported refuses settings that are not available here.
func (h *harborLoader) unsupported() error {
	file := h.file
	environments := []*harborEnvironment{&file.Environment, file.Verifier.Environment}
	for i := range file.Steps {
		environments = append(environments, file.Steps[i].Verifier.Environment)
	}
	for i, e := range environments {
		if e == nil {
			continue
		}
		if err := e.unsupported([]string{"environment", "verifier.environment"}[min(i, 1)]); err != nil {
			return err
		}
	}
	if mode := file.Environment.NetworkMode; !slices.Contains([]string{"", "public", noNetwork}, mode) {
		return h.wrong(mode, "environment.network_mode = %q is none of public, %s and allowlist", mode, noNetwork)
	}
	if err := h.networks("", file.Agent, file.Verifier); err != nil {
		return err
	}
	for _, step := range file.Steps {
		if err := h.networks("steps.", step.Agent, step.Verifier); err != nil {
			return err
		}
		if h.open(cmp.Or(step.Agent.NetworkMode, file.Agent.NetworkMode)) != h.open(file.Agent.NetworkMode) {
			return refuse("the network of its agent changes between steps (steps.agent.network_mode)")
		}
	}
	return nil
}

func (e *harborEnvironment) unsupported(table string) error {
	switch {
	case e.GPUs > 0 || len(e.GPUTypes) > 0:
		return refuse("it needs GPUs (%s.gpus)", table)
	case e.TPU != nil:
		return refuse("it needs a TPU (%s.tpu)", table)
	case e.OS != "" && !strings.EqualFold(e.OS, "linux"):
		return refuse("it needs %s (%s.os)", e.OS, table)
	case e.NetworkMode == "allowlist" || len(e.AllowedHosts) > 0:
		return refuse("it needs a list of allowed hosts (%s.allowed_hosts)", table)
	}
	return nil
}

// networks refuses lists of hosts, unknown modes, and two networks for one container.
func (h *harborLoader) networks(table string, agent harborPhase, verifier harborVerifier) error {
	for phase, settings := range map[string]harborPhase{"agent": agent, "verifier": verifier.harborPhase} {
		if settings.NetworkMode == "allowlist" || len(settings.AllowedHosts) > 0 {
			return refuse("it needs a list of allowed hosts (%s%s.allowed_hosts)", table, phase)
		}
		if !slices.Contains([]string{"", "public", noNetwork}, settings.NetworkMode) {
			return h.wrong(settings.NetworkMode, "%s%s.network_mode = %q is none of public, %s and allowlist", table,
				phase, settings.NetworkMode, noNetwork)
		}
	}
	separate := verifier.separate() || h.file.Verifier.separate()
	of := cmp.Or(verifier.NetworkMode, h.file.Verifier.NetworkMode)
	if !separate && h.open(cmp.Or(agent.NetworkMode, h.file.Agent.NetworkMode)) != h.open(of) {
		return refuse("its agent and its verifier share a container and have different networks "+
			"(%sagent.network_mode, %sverifier.network_mode)", table, table)
	}
	return nil
}

// open reports whether a phase has the machine's network; the environment decides if the phase does
// not say.
func (h *harborLoader) open(mode string) bool {
	env := &h.file.Environment
	if mode = cmp.Or(mode, env.NetworkMode); mode == "" && env.AllowInternet != nil {
		return *env.AllowInternet
	}
	return mode != noNetwork
}

// settings returns the task's settings for time, network and limits.
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
	var err error
	if s.Limits.MemoryMB, err = harborMB("memory", file.Environment.MemoryMB, file.Environment.Memory); err != nil {
		return s, h.wrong("memory", "environment: %v", err)
	}
	if s.Limits.DiskMB, err = harborMB("storage", file.Environment.StorageMB, file.Environment.Storage); err != nil {
		return s, h.wrong("storage", "environment: %v", err)
	}
	s.Limits.CPUs = file.Environment.CPUs
	s.AgentNetwork = AgentNetwork{Kind: networkModel, Required: true}
	if h.open(file.Agent.NetworkMode) {
		s.AgentNetwork = AgentNetwork{Kind: networkHost}
	}
	s.GraderNetwork = h.open(file.Verifier.NetworkMode)
	return s, nil
}

const (
	harborDir = "environment"
	noNetwork = "no-network"
	// harborUnlimited is the time of an agent whose task sets no limit.
	harborUnlimited       = 24 * time.Hour
	harborVerifierTimeout = 10 * time.Minute
	harborCollectTimeout  = time.Minute
	harborService         = "main"
)

// environment returns the container of the agent. A named image wins over the Dockerfile beside it.
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
	variables, secrets, err := h.values("environment.env", file.Env)
	if err != nil {
		return nil, err
	}
	h.give(t, e, variables, secrets)
	if err := h.compose(t, e); err != nil {
		return nil, err
	}
	if file.Healthcheck != nil {
		e.Healthcheck = file.Healthcheck.settings()
	}
	if e.Servers, err = h.toolServers(e); err != nil {
		return nil, err
	}
	if e.Skills = file.SkillsDir; e.Skills != "" && !path.IsAbs(e.Skills) {
		return nil, h.wrong("skills_dir", "environment.skills_dir = %q is not an absolute path", e.Skills)
	}
	e.Image = e.replaced(e.Image)
	dockerfile := h.path(harborDir + "/Dockerfile")
	if e.Workdir == "" {
		e.Workdir = lastWorkdir(dockerfile)
	}
	switch {
	case e.Image != "" && !isFile(dockerfile) && isDir(h.path(harborDir)):
		t.Overlays = append(t.Overlays, Overlay{From: h.path(harborDir)})
	case e.Image != "":
	case !isFile(dockerfile):
		return nil, refuse("it has no image: there is neither a Dockerfile in %s nor a docker_image in %s",
			path.Join(h.rel, harborDir), harborName)
	default:
		err = e.buildFrom(dockerfile)
	}
	return e, err
}

var workdirLine = lazyregexp.New(`(?mi)^\s*WORKDIR\s+(/[\w./-]+)\s*$`)

// lastWorkdir returns the last working directory that a Dockerfile sets; empty if it sets none.
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

// canaryLine is a comment that marks an instruction for those who collect training data.
var canaryLine = lazyregexp.New(`(?i)^(?:<!--.*canary.*-->|#.*canary.*)$`)

// withoutCanary drops the lines at the beginning of an instruction that are such comments, and the
// empty lines after them.
func withoutCanary(text string) string {
	lines := strings.Split(text, "\n")
	for len(lines) > 0 && canaryLine.MatchString(strings.TrimSpace(lines[0])) {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	return strings.Join(lines, "\n")
}

// harborDigests identifies the task: what the agent sees, and what decides about it.
func (h *harborLoader) harborDigests(t *Task) {
	visible, hidden := newDigester(), newDigester()
	visible.add("instruction.md", "prompt", []byte(t.Prompt))
	visible.add("environment", "content", []byte(cmp.Or(t.Settings.Environment.Content, t.Settings.Environment.Image)))
	h.addOverlays(visible, t)
	hidden.add("settings", "json", []byte(h.hiddenDigest(t)))
	hidden.add(harborName, "file", h.file.source)
	t.Digest = Digest{Visible: visible.String(), Hidden: hidden.String()}
	t.Files = h.fileDigests(t)
}
