package codex

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/glob"
)

// findProgram looks for the program. After an installation with npm, PATH has a script that starts
// the native program; started directly, the native program is ready in half the time.
func findProgram(ctx context.Context, host agent.Host) (agent.Installation, error) {
	if native := nativeProgram(agent.LookPath(host.Environ, "codex")); native != "" {
		host.Environ = append(slices.Clone(host.Environ), "PATH="+filepath.Dir(native))
	}
	return program().Find(ctx, host)
}

func program() agent.Program {
	return agent.Program{
		Agent:     agentID,
		Name:      "codex",
		Hint:      installHint,
		Oldest:    [2]int{0, 150},
		ReadPaths: readPaths,
		Login:     loginOf,
	}
}

// nativeProgram finds the native program that belongs to npm's script; empty if there is none.
func nativeProgram(script string) string {
	real, err := filepath.EvalSymlinks(script)
	if script == "" || err != nil || filepath.Base(real) != "codex.js" {
		return ""
	}
	root := filepath.Dir(filepath.Dir(real))
	platform := "codex-" + platformName()
	for _, vendor := range []string{
		filepath.Join(filepath.Dir(root), platform, "vendor"),
		filepath.Join(root, "node_modules", "@openai", platform, "vendor"),
		filepath.Join(root, "vendor"),
	} {
		found := glob.Below(vendor, architecture()+"-*/bin/codex")
		if len(found) == 1 && agent.LookPath([]string{"PATH=" + filepath.Dir(found[0])}, "codex") != "" {
			return found[0]
		}
	}
	return ""
}

// platformName returns npm's name of this platform.
func platformName() string {
	if runtime.GOARCH == "amd64" {
		return runtime.GOOS + "-x64"
	}
	return runtime.GOOS + "-" + runtime.GOARCH
}

// architecture returns the name of this platform in the directories of the native programs.
func architecture() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}

// readPaths returns the directories that hold the program and what belongs to it: all of its
// packages if npm installed them.
func readPaths(real string, _ []string) []string {
	for dir := filepath.Dir(real); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "@openai" {
			return []string{dir}
		}
	}
	return []string{real}
}
