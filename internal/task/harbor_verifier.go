package task

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/document"
)

// Verifier describes how a Harbor task, or one step of it, is graded: a program writes rewards to a
// file.
type Verifier struct {
	// Tests are the directories that become /tests, later ones over earlier ones; test.sh in it is
	// run.
	Tests   []string
	User    string
	Env     map[string]string
	Timeout time.Duration
	// Solution is a directory with solve.sh, which becomes /solution; empty: there is none.
	Solution    string
	SolutionEnv map[string]string
	// SolutionLacks says why the solution cannot be run here; empty if it can.
	SolutionLacks string
	// Environment is the container of a verifier that has its own, with /tests in it; nil means
	// that it runs in the agent's.
	Environment *Environment
	Network     bool // it has the machine's network
	// Artifacts are taken from the agent's container, after Collect was run in it.
	Artifacts []Artifact
	Collect   []Collect
	// Secrets are the values of Env and SolutionEnv that are redacted, by name.
	Secrets map[string]string
	// Final says that the last step decides about a task with steps, in place of the mean of all.
	Final bool
}

// Artifact is a file or directory of the agent's container that is kept.
type Artifact struct {
	Source      string   // an absolute path
	Destination string   // where it is kept; empty: by its own path
	Exclude     []string // globs of names that are left out
}

// Collect is a command that prepares artifacts.
type Collect struct {
	Command string
	User    string
	Timeout time.Duration
}

// Secrets returns the values of a task that must not appear in anything that is written, by name.
func (t *Task) Secrets() map[string]string {
	secrets := map[string]string{}
	for _, variable := range t.Env {
		if variable.Secret {
			secrets[variable.Name] = variable.Value
		}
	}
	if e := t.Settings.Environment; e != nil {
		for i := range e.Services {
			maps.Copy(secrets, e.Services[i].Secrets)
		}
	}
	verifiers := []*Verifier{t.Verifier}
	for i := range t.Steps {
		verifiers = append(verifiers, t.Steps[i].Verifier)
	}
	for _, v := range verifiers {
		if v != nil {
			maps.Copy(secrets, v.Secrets)
		}
	}
	return secrets
}

func (v *harborVerifier) separate() bool {
	return v.Mode == "separate" || v.Mode == "" && v.Environment != nil
}

// instruction reads the prompt of the task or of a step.
func (h *harborLoader) instruction(dir string) (string, error) {
	name := path.Join(h.rel, dir, "instruction.md")
	text, ok := h.text(name)
	if text = withoutCanary(text); !ok || strings.TrimSpace(text) == "" {
		return "", mistake(name, "missing or empty: it is the agent's prompt")
	}
	return text, nil
}

// tested makes sure that there is something to run. A verifier with its own container has its tests
// in the image.
func (h *harborLoader) tested(dir string, v *Verifier) error {
	if v.Environment != nil || slices.ContainsFunc(v.Tests, func(tests string) bool {
		return isFile(filepath.Join(tests, "test.sh"))
	}) {
		return nil
	}
	return mistake(path.Join(h.rel, dir, "tests/test.sh"), "missing: it verifies the task")
}

// verifier returns how the task is graded.
func (h *harborLoader) verifier(dir string) (*Verifier, error) {
	v, err := h.verifierOf(dir, &h.file.Verifier, h.file.Artifacts)
	if err != nil {
		return nil, err
	}
	var secrets map[string]string
	if v.SolutionEnv, secrets, err = h.values("solution.env", h.file.Solution.Env); err != nil {
		v.SolutionLacks = err.Error() // which is no matter to an agent
		return v, nil
	}
	maps.Copy(v.SolutionEnv, secrets)
	maps.Copy(v.Secrets, secrets)
	return v, nil
}

// verifierOf returns a verifier of the task (dir is ".") or of a step.
func (h *harborLoader) verifierOf(dir string, file *harborVerifier, artifacts []any) (*Verifier, error) {
	v := &Verifier{
		User:    harborUser(file.User),
		Timeout: harborSeconds(file.TimeoutSec, harborVerifierTimeout),
		Network: h.open(cmp.Or(file.NetworkMode, h.file.Verifier.NetworkMode)),
	}
	for _, tests := range slices.Compact([]string{h.path("tests"), h.path(path.Join(dir, "tests"))}) {
		if isDir(tests) {
			v.Tests = append(v.Tests, tests)
		}
	}
	var err error
	if v.Env, v.Secrets, err = h.values("verifier.env", file.Env); err != nil {
		return nil, err
	}
	maps.Copy(v.Env, v.Secrets)
	if isFile(h.path(path.Join(dir, "solution/solve.sh"))) {
		v.Solution = h.path(path.Join(dir, "solution"))
	}
	if v.Artifacts, err = h.artifacts(artifacts); err != nil {
		return nil, err
	}
	for _, collect := range file.Collect {
		if err := h.service("verifier.collect", collect.Service); err != nil {
			return nil, err
		}
		v.Collect = append(v.Collect, Collect{
			Command: collect.Command,
			User:    harborUser(collect.User),
			Timeout: harborSeconds(collect.TimeoutSec, harborCollectTimeout),
		})
	}
	switch file.Mode {
	case "", "separate":
	case "shared":
		if file.Environment != nil {
			return nil, h.wrong("environment_mode", "verifier.environment_mode is shared, and there is a "+
				"verifier.environment: remove one of them")
		}
	default:
		return nil, h.wrong("environment_mode", "verifier.environment_mode = %q is neither shared nor separate",
			file.Mode)
	}
	if file.separate() {
		v.Environment, err = h.ownEnvironment(dir, file)
	}
	return v, err
}

// ownEnvironment returns the container of a separate verifier: its image has the tests.
func (h *harborLoader) ownEnvironment(dir string, file *harborVerifier) (*Environment, error) {
	own := file.Environment
	if own == nil {
		own = &harborEnvironment{}
	}
	if err := own.unsupported("verifier.environment"); err != nil {
		return nil, err
	}
	if own.Healthcheck != nil || len(own.MCPServers) > 0 || own.SkillsDir != "" {
		return nil, refuse("its verifier's container has a healthcheck, tool servers or skills (verifier.environment)")
	}
	e := &Environment{
		Image:          own.DockerImage,
		Images:         h.loader.file.Images,
		Workdir:        own.Workdir,
		KeepEntrypoint: true,
		BuildTimeout:   harborSeconds(&own.BuildTimeoutSec, 10*time.Minute),
	}
	var secrets map[string]string
	var err error
	if e.Env, secrets, err = h.values("verifier.environment.env", own.Env); err != nil {
		return nil, err
	}
	if len(secrets) > 0 {
		return nil, refuse("verifier.environment.env has secrets: give them in verifier.env")
	}
	if e.Image = e.replaced(e.Image); e.Image != "" {
		return e, nil
	}
	tests := path.Join(dir, "tests")
	if !isFile(h.path(tests + "/Dockerfile")) {
		tests = "tests"
	}
	if !isFile(h.path(tests + "/Dockerfile")) {
		return nil, mistake(path.Join(h.rel, tests), "the verifier has a container of its own, and there is neither a "+
			"Dockerfile here nor verifier.environment.docker_image in %s", harborName)
	}
	return e, e.buildFrom(h.path(tests + "/Dockerfile"))
}

// artifacts are paths, or tables with a source.
func (h *harborLoader) artifacts(list []any) ([]Artifact, error) {
	var found []Artifact
	for _, one := range list {
		var artifact Artifact
		switch one := one.(type) {
		case string:
			artifact.Source = one
		case map[string]any:
			artifact.Source, _ = one["source"].(string)
			artifact.Destination, _ = one["destination"].(string)
			globs, _ := one["exclude"].([]any)
			for _, glob := range globs {
				artifact.Exclude = append(artifact.Exclude, fmt.Sprint(glob))
			}
			service, _ := one["service"].(string)
			if err := h.service("artifacts", service); err != nil {
				return nil, err
			}
		}
		if clean := path.Clean(artifact.Source); !path.IsAbs(clean) || clean == "/" {
			return nil, h.wrong("artifacts", "artifacts: %q is not an absolute path in the container", artifact.Source)
		}
		artifact.Source = path.Clean(artifact.Source)
		if to := artifact.Destination; to != "" && !filepath.IsLocal(filepath.FromSlash(to)) {
			return nil, h.wrong("destination", "artifacts: the destination %q leads out of the directory of artifacts",
				to)
		}
		found = append(found, artifact)
	}
	return found, nil
}

// service accepts the one service that there is.
func (h *harborLoader) service(table, name string) error {
	if name == "" || name == harborService {
		return nil
	}
	return refuse("%w", h.wrong(`"`+name+`"`, "%s: it needs the service %q; the only service that is run is %s", table,
		name, harborService))
}

// wrong returns an error about task.toml, at the first line that contains a text.
func (h *harborLoader) wrong(text, format string, args ...any) error {
	return &document.Error{
		File: path.Join(h.rel, harborName),
		Line: h.file.lineOf(text),
		Msg:  fmt.Sprintf(format, args...),
	}
}
