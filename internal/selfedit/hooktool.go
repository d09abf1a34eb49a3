package selfedit

import (
	"path"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// What interpreters, build tools, linters and the like load of a project is known to themselves
// only: modules beside a module, tests, settings, plugins. If a hook runs one, then no file that it
// could load is writable; documents are, unless the command names them.

// documents are what no tool loads, but for some that are called so.
var (
	documents    = []string{".md", ".mdx", ".markdown", ".txt", ".rst", ".adoc", ".csv", ".tsv"}
	notDocuments = lazyregexp.New(`^(?:requirements|constraints|cmakelists).*\.txt$`)
)

// loadable reports whether a tool that a hook runs in the project could load the target.
func (r *reading) loadable() bool {
	base := path.Base(r.target)
	return r.root != "" && !slices.Contains(documents, path.Ext(base)) || notDocuments.MatchString(base)
}

// simple are programs that load nothing but what they are given by name.
var simple = []string{
	"[", "[[", ":", "alias", "awk", "basename", "break", "cat", "cd", "chmod", "cmp", "command", "continue",
	"cp", "curl", "cut", "date", "declare", "diff", "dirname", "echo", "egrep", "exit", "export", "expr",
	"false", "fgrep", "find", "fit-selfedit", "fit-trace", "git", "grep", "head", "hostname", "id", "jq",
	"kill", "let", "ln", "local", "logger", "ls", "mkdir", "mktemp", "mv", "notify-send", "popd", "printenv",
	"printf", "pushd", "pwd", "read", "realpath", "return", "rg", "rm", "rmdir", "say", "sed", "seq", "set",
	"sha256sum", "shift", "sleep", "sort", "stat", "tail", "tee", "test", "touch", "tr", "trap", "true",
	"type", "uname", "uniq", "unset", "wait", "wc", "which", "whoami",
}

// starters run the program that follows them.
var starters = []string{
	"builtin", "env", "exec", "ionice", "nice", "nohup", "parallel", "setsid", "stdbuf", "sudo", "time", "timeout",
	"xargs",
}

var notProgram = lazyregexp.New(`^(?:-.*|\w+=.*|[\d.]+[smhd]?|\{\})$`)

// loads reports whether a command runs a tool that is not one of the project's scripts.
func loads(words []string) bool {
	for _, word := range words {
		name := path.Base(word)
		switch {
		case notProgram.MatchString(word) || slices.Contains(starters, name):
			continue
		case strings.Contains(word, unknown), slices.Contains(simple, name), slices.Contains(shells, name):
			return false
		case !strings.Contains(word, "/"):
			return true
		}
		return path.IsAbs(word) || strings.HasSuffix(path.Dir(word), "bin") || name == "mvnw" || name == "gradlew"
	}
	return false
}

// git looks at the directories from which git is told to run programs.
func (r *reading) git(words []string) {
	for _, word := range words {
		option, dir, found := strings.Cut(foldName(word), "=")
		if found && (option == "core.hookspath" || option == "--exec-path") {
			dir = strings.Trim(path.Clean(strings.ReplaceAll(dir, unknown, "")), "./~")
			r.found = r.found || strings.Contains(r.target, "/"+dir+"/")
		}
	}
}
