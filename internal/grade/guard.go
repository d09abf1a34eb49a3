package grade

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/workspace"
)

// shells are the interpreters that are small enough to be copied for every attempt.
var shells = []string{"sh", "bash", "dash", "ksh", "zsh"}

// guardShell returns a command with its shell replaced by a copy that no program may read, and the
// directory of that copy. The kernel keeps other processes of the same user out of the memory and
// the descriptors of a program whose file they cannot read. So a program that a hook or a suite
// starts cannot rewrite the script that checks it. Commands of other interpreters are returned as
// they are.
func (g *grading) guardShell(argv []string, dir string, place workspace.Place,
) (guarded []string, readable string, err error) {
	if place.Isolation.Container != nil {
		return argv, "", nil // the image's shell is not the machine's
	}
	searchPath := place.Env["PATH"]
	shell, rest := shellOf(argv, dir)
	if shell == "" {
		return argv, "", nil
	}
	found := lookIn(searchPath, shell)
	if found == "" {
		return argv, "", nil
	}
	readable = filepath.Join(g.scratch, "shell")
	copied := filepath.Join(readable, filepath.Base(shell))
	if _, err := os.Lstat(copied); err == nil {
		return append([]string{copied}, rest...), readable, nil
	}
	// The directory and the file are accessible to any user that the sandbox runs programs as.
	if err := os.MkdirAll(readable, 0o755); err != nil {
		return nil, "", err
	}
	program, err := os.ReadFile(found)
	if err != nil {
		return nil, "", err
	}
	if err := errors.Join(os.WriteFile(copied, program, 0o700), os.Chmod(copied, 0o111)); err != nil {
		return nil, "", err
	}
	return append([]string{copied}, rest...), readable, nil
}

// shellOf finds the shell that runs a command, by its name or by the first line of its script, and
// returns it with its arguments. It is empty for a command of another kind.
func shellOf(argv []string, dir string) (shell string, rest []string) {
	if slices.Contains(shells, filepath.Base(argv[0])) {
		return argv[0], argv[1:]
	}
	script := argv[0]
	if !strings.Contains(script, "/") {
		return "", nil
	}
	if !filepath.IsAbs(script) {
		script = filepath.Join(dir, script)
	}
	words := strings.Fields(firstLine(script))
	if len(words) > 1 && filepath.Base(words[0]) == "env" {
		words = words[1:]
	}
	if len(words) == 0 || len(words) > 2 || !slices.Contains(shells, filepath.Base(words[0])) {
		return "", nil
	}
	return words[0], slices.Concat(words[1:], argv)
}

// firstLine returns the text after #! in a script; empty for any other file.
func firstLine(name string) string {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	line, _, whole := bytes.Cut(head[:n], []byte("\n"))
	text, script := bytes.CutPrefix(line, []byte("#!"))
	if !script || !whole {
		return ""
	}
	return string(text)
}

// lookIn finds a program in a search path.
func lookIn(searchPath, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	for _, dir := range filepath.SplitList(searchPath) {
		found, err := exec.LookPath(filepath.Join(dir, name))
		if err == nil && filepath.IsAbs(found) {
			return found
		}
	}
	return ""
}

// gitSettings are the files of a repository that can make git run programs. They are put back as
// they were before a hook or a command of the family runs.
var gitSettings = []string{
	"**/.git", "**/.git/config", "**/.git/config.worktree", "**/.git/commondir", "**/.git/hooks/**",
	"**/.git/info/attributes", "**/.git/modules/**/config", "**/.git/worktrees/**/config.worktree",
}

// gitEnvironment keeps git from settings of the user and of the machine, and from running programs
// that a repository names.
func gitEnvironment() map[string]string {
	return map[string]string{
		"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": sandbox.NoGitConfig, "GIT_TERMINAL_PROMPT": "0",
		"GIT_CONFIG_COUNT": "5",
		"GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "false",
		"GIT_CONFIG_KEY_1": "core.hooksPath", "GIT_CONFIG_VALUE_1": os.DevNull,
		"GIT_CONFIG_KEY_2": "core.pager", "GIT_CONFIG_VALUE_2": "cat",
		"GIT_CONFIG_KEY_3": "safe.bareRepository", "GIT_CONFIG_VALUE_3": "explicit",
		"GIT_CONFIG_KEY_4": "safe.directory", "GIT_CONFIG_VALUE_4": "*",
	}
}

// hookEnvironment keeps the programs that a hook or a command of the family starts from running
// what lies in their working directory, which is the work: git, and Python, which finds the
// family's own modules beside the hook.
func hookEnvironment(place workspace.Place) map[string]string {
	env := gitEnvironment()
	for name, value := range map[string]string{
		"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1", "PYTHONPATH": place.Env["HOOKS_DIR"],
	} {
		if _, set := place.Env[name]; !set { // by the task
			env[name] = value
		}
	}
	return env
}
