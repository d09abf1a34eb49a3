package evidence

import (
	"path"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/tree"
)

// classifier sorts the files of a task's diffs.
type classifier struct {
	tests     []glob.Pattern
	protected []glob.Pattern
	verify    []glob.Pattern
	scripts   map[string]bool // that the verify command names
}

// newClassifier compiles a task's globs. Malformed ones match nothing: loading the task has refused
// them.
func newClassifier(task *Task) *classifier {
	c := &classifier{
		tests:     compile(task.TestGlobs),
		protected: compile(task.ProtectedGlobs),
		verify:    compile(task.VerifyFiles),
		scripts:   map[string]bool{},
	}
	c.addScripts(task)
	return c
}

// readers are programs that look for the result in the files they are given. Those files are the
// agent's result, not a part of the check.
var readers = []string{"grep", "egrep", "fgrep", "rg", "cat", "head", "tail", "wc", "jq", "ls", "stat", "[", "[["}

// addScripts adds the files that the verify commands name and that the check is made of.
func (c *classifier) addScripts(task *Task) {
	all := strings.Join(append([]string{task.VerifyCommand}, task.AlsoVerify...), "\n")
	for _, simple := range strings.FieldsFunc(all,
		func(r rune) bool { return strings.ContainsRune(";&|()\n", r) }) {
		reading, comparing := false, false
		for at, word := range strings.FieldsFunc(simple,
			func(r rune) bool { return strings.ContainsRune(" \t'\"=", r) }) {
			reading = reading || isOneOf(word, readers...) || at == 0 && word == "test"
			comparing = comparing || isOneOf(word, "diff", "cmp")
			word = path.Clean(word)
			if !strings.ContainsAny(word, "./") || word == "." || strings.HasPrefix(word, "..") {
				continue
			}
			if !reading && (!comparing || !strings.Contains(task.Prompt, path.Base(word))) {
				c.scripts[word] = true
			}
		}
	}
}

func compile(sources []string) []glob.Pattern {
	var patterns []glob.Pattern
	for _, source := range sources {
		if pattern, err := glob.Compile(source); err == nil {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

func matches(patterns []glob.Pattern, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern glob.Pattern) bool { return pattern.Match(name) })
}

// isTest reports whether a file is a test: by the task's globs or, without them, by its name.
func (c *classifier) isTest(name string) bool {
	if len(c.tests) > 0 {
		return matches(c.tests, name)
	}
	base := path.Base(name)
	stem := strings.TrimSuffix(base, path.Ext(base))
	switch {
	case strings.HasSuffix(stem, "_test"), strings.HasSuffix(stem, ".test"), strings.HasSuffix(stem, ".spec"),
		strings.HasSuffix(stem, "_spec"), strings.HasPrefix(base, "test_"),
		strings.HasSuffix(stem, "Test") && path.Ext(base) == ".java":
		return true
	}
	return inDirectory(name, "test", "tests", "__tests__", "spec", "testdata")
}

// inDirectory reports whether a file is below a directory with one of these names.
func inDirectory(name string, dirs ...string) bool {
	return slices.ContainsFunc(strings.Split(path.Dir(name), "/"),
		func(dir string) bool { return slices.Contains(dirs, dir) })
}

// isProtected reports whether a test must not be taken away. Without globs every test is protected.
func (c *classifier) isProtected(name string) bool {
	return len(c.protected) == 0 || matches(c.protected, name)
}

// class returns what a file counts as.
func (c *classifier) class(name string) string {
	switch {
	case c.isTest(name):
		return classTest
	case Generated(name):
		return classGenerated
	}
	return ClassSource
}

// Generated reports whether a tool made a file: it counts in no total of a change.
func Generated(name string) bool { return isGenerated(name) || tree.Leftover(name) != "" }

// isGenerated reports whether a file is a lock file, vendored or generated. Its text is not audited
// for answers; that of other leftovers of tools is, for an agent may write there as well.
func isGenerated(name string) bool {
	base := path.Base(name)
	switch base {
	case "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "npm-shrinkwrap.json", "bun.lock", "go.sum", "Cargo.lock",
		"poetry.lock", "uv.lock", "Pipfile.lock", "Gemfile.lock", "composer.lock":
		return true
	}
	endings := []string{".pb.go", "_pb2.py", ".min.js", ".min.css", "_generated.go"}
	return inDirectory(name, "vendor", "node_modules", "third_party", "dist", "build", "__pycache__", ".venv") ||
		path.Ext(base) == ".pyc" ||
		strings.Contains(base, ".generated.") ||
		slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(base, ending) })
}
