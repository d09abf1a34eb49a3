package evidence

import (
	"path"
	"strings"

	"github.com/fit-eval/fit/internal/glob"
)

// classifier sorts the files of a task's diffs.
type classifier struct {
	tests     []glob.Pattern
	protected []glob.Pattern
	verify    []glob.Pattern
	scripts   map[string]bool // that the verify command names
}

// newClassifier compiles a task's globs. Those that are malformed match nothing: whoever read the
// task has refused them.
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

// readers are programs that look for the result in the files they are given. Those files are what
// the agent was asked for, not a part of the check.
var readers = []string{"grep", "egrep", "fgrep", "rg", "cat", "head", "tail", "wc", "jq", "ls", "stat", "[", "[["}

// addScripts adds the files that the verify command names and that the check is made of.
func (c *classifier) addScripts(task *Task) {
	for _, simple := range strings.FieldsFunc(task.VerifyCommand,
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
	for _, pattern := range patterns {
		if pattern.Match(name) {
			return true
		}
	}
	return false
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
	for _, dir := range strings.Split(path.Dir(name), "/") {
		if isOneOf(dir, "test", "tests", "__tests__", "spec", "testdata") {
			return true
		}
	}
	return false
}

// isProtected reports whether a test must not be taken away. Without globs every test is protected.
func (c *classifier) isProtected(name string) bool {
	return len(c.protected) == 0 || matches(c.protected, name)
}

// class is what a file counts as.
func (c *classifier) class(name string) string {
	switch {
	case c.isTest(name):
		return classTest
	case isGenerated(name):
		return classGenerated
	}
	return ClassSource
}

// isGenerated knows lock files, vendored and generated files.
func isGenerated(name string) bool {
	base := path.Base(name)
	switch base {
	case "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "npm-shrinkwrap.json", "bun.lock", "go.sum", "Cargo.lock",
		"poetry.lock", "uv.lock", "Pipfile.lock", "Gemfile.lock", "composer.lock":
		return true
	}
	for _, dir := range strings.Split(path.Dir(name), "/") {
		if isOneOf(dir, "vendor", "node_modules", "third_party", "dist", "build", "__pycache__", ".venv") {
			return true
		}
	}
	return strings.HasSuffix(base, ".pb.go") || strings.HasSuffix(base, "_pb2.py") || strings.HasSuffix(base,
		".min.js") ||
		strings.HasSuffix(base, ".min.css") || strings.Contains(base, ".generated.") ||
		strings.HasSuffix(base, "_generated.go") || strings.HasSuffix(base, ".pyc")
}
