package grade

import (
	"context"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"

	"github.com/fit-eval/fit/task"
	"github.com/fit-eval/fit/workspace"
)

// goFiles are globs of what decides how a Go package's tests are built: its test files, and where
// dependencies come from. They are put back as they were in the base. The agent's own tests may
// define TestMain, or names that the hidden ones need.
func goFiles(suite *task.Suite) []string {
	globs := []string{"vendor", "vendor/**", "go.work", "go.work.sum"}
	for _, check := range suite.Checks {
		glob := path.Join(path.Dir(check.File), "*_test.go")
		if !slices.Contains(globs, glob) {
			globs = append(globs, glob)
		}
	}
	return globs
}

// maxModuleFile bounds a go.mod.
const maxModuleFile = 1 << 20

// replacedModule says whether the agent's go.mod takes a module from elsewhere that the base's does
// not. Hidden tests use modules too, and one that was replaced could find everything equal.
func (s *suiteRun) replacedModule(ctx context.Context) (string, error) {
	own := moduleFile(s.root)
	if s.fromBase || len(replacements(own)) == 0 {
		return "", nil
	}
	value, err := s.Baseline.once(ctx, "go.mod "+taskKey(s.Task), func() (any, error) {
		copied, err := s.Source.Copy(ctx, workspace.CopyConfig{FromBase: true})
		if err != nil {
			return "", err
		}
		defer func() { _ = copied.Remove() }()
		root, err := os.OpenRoot(copied.Dir)
		if err != nil {
			return "", err
		}
		defer root.Close()
		return moduleFile(root), nil
	})
	if err != nil {
		return "", err
	}
	base, _ := value.(string)
	known := replacements(base)
	for _, line := range replacements(own) {
		if !slices.Contains(known, line) {
			return "go.mod replaces a module: " + display.CutBytes(display.Text(line), 200), nil
		}
	}
	return "", nil
}

func moduleFile(root *os.Root) string {
	info, err := root.Lstat("go.mod")
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	file, err := root.Open("go.mod")
	if err != nil {
		return ""
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxModuleFile))
	if err != nil {
		return ""
	}
	return string(content)
}

// replacements lists the replace directives of a go.mod, each with single blanks.
func replacements(mod string) []string {
	var found []string
	inBlock := false
	for line := range strings.SplitSeq(mod, "\n") {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case inBlock && words[0] == ")":
			inBlock = false
		case inBlock:
			found = append(found, strings.Join(words, " "))
		case strings.HasPrefix(words[0], "replace(") || words[0] == "replace" && len(words) > 1 &&
			strings.HasPrefix(words[1], "("):
			inBlock = true
		case words[0] == "replace":
			found = append(found, strings.Join(words[1:], " "))
		}
	}
	return found
}
