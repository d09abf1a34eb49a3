package sandbox

import (
	"maps"
	"slices"
	"strings"
)

// RunMarker is the environment variable that marks the processes of one run. Without a supervisor,
// orphans are found by it.
const RunMarker = "EVAL_RUN_ID"

// Environment is the environment of a child, built from empty. It only ever holds
// what was put into it by name.
type Environment map[string]string

// EnvironmentConfig describes the common part of a child's environment.
type EnvironmentConfig struct {
	// Parent is the environment to take allow-listed variables from, as os.Environ
	// gives it.
	Parent []string
	// Home and TmpDir, if set, replace the parent's.
	Home   string
	TmpDir string
	// RunID, if set, marks every process of the run.
	RunID string
}

// inherited are the variables that every child may take from the parent.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TMPDIR",
	"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

// NoGitConfig is the path that git reads instead of the user's settings. No file can exist there.
// With /dev/null itself, git config --global run by root would replace the device with a file.
const NoGitConfig = "/dev/null/none"

// fixed are the variables that have the same value in every child, so that runs can
// be compared and git neither reads the user's settings nor asks a question.
var fixed = map[string]string{
	"TZ":                  "UTC",
	"TERM":                "dumb",
	"CI":                  "1",
	"NO_COLOR":            "1",
	"GIT_CONFIG_GLOBAL":   NoGitConfig,
	"GIT_CONFIG_NOSYSTEM": "1",
	"GIT_TERMINAL_PROMPT": "0",
	"GIT_AUTHOR_NAME":     "fit",
	"GIT_AUTHOR_EMAIL":    "fit@localhost",
	"GIT_COMMITTER_NAME":  "fit",
	"GIT_COMMITTER_EMAIL": "fit@localhost",
}

// NewEnvironment returns the part of the environment that is common to all children.
// It holds no credential: an agent's own variables are added by name with Allow, and
// values that are decided elsewhere with a plain assignment.
func NewEnvironment(c EnvironmentConfig) Environment {
	e := maps.Clone(Environment(fixed))
	e.Allow(c.Parent, inherited...)
	for name, value := range map[string]string{
		"HOME": c.Home, "TMPDIR": c.TmpDir, RunMarker: c.RunID,
	} {
		if value != "" {
			e[name] = value
		}
	}
	return e
}

// CommonNames lists every name that NewEnvironment may set, sorted.
func CommonNames() []string {
	names := append(slices.Collect(maps.Keys(fixed)), inherited...)
	names = append(names, RunMarker)
	slices.Sort(names)
	return names
}

// Allow copies the named variables from the parent, if they are set there.
func (e Environment) Allow(parent []string, names ...string) {
	for _, variable := range parent {
		name, value, found := strings.Cut(variable, "=")
		if found && slices.Contains(names, name) {
			e[name] = value
		}
	}
}

// Assign sets variables that are given as NAME=value; anything else is left out.
func (e Environment) Assign(variables ...string) {
	for _, variable := range variables {
		if name, value, found := strings.Cut(variable, "="); found {
			e[name] = value
		}
	}
}

// List returns the environment as NAME=value, sorted and without duplicates, ready for
// SpawnSpec.Env.
func (e Environment) List() []string {
	list := make([]string, 0, len(e))
	for _, name := range slices.Sorted(maps.Keys(e)) {
		list = append(list, name+"="+e[name])
	}
	return list
}
