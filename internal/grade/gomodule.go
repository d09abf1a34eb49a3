package grade

import (
	"context"
	"errors"
	"fmt"
	"go/version"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"

	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
)

// goFiles are globs of what decides how a Go package's tests are built: its test files, and where
// dependencies come from. They are put back as they were in the base. The agent's own tests may
// define TestMain, or names that the hidden ones need. So are assembler and object files, which can
// name everything that is linked with them.
func goFiles(suite *task.Suite) []string {
	globs := []string{"vendor", "vendor/**", "go.work", "go.work.sum", "**/*.s", "**/*.syso"}
	for _, check := range suite.Checks {
		glob := path.Join(path.Dir(check.File), "*_test.go")
		if !slices.Contains(globs, glob) {
			globs = append(globs, glob)
		}
	}
	return globs
}

// maxModuleFile bounds a go.mod.
const maxModuleFile = 16 << 20

// changedModule returns what the agent's go.mod changes for the hidden tests, or what is wrong with
// the file. Hidden tests use modules too, and a replaced one could make every
// comparison succeed. Before version 1.22 of the language all rounds of a loop shared one variable:
// parallel subtests would all test the last case.
func (s *suiteRun) changedModule(ctx context.Context) (string, error) {
	if s.fromBase {
		return "", nil
	}
	own, err := moduleFile(s.root)
	if err != nil {
		return "go.mod " + err.Error(), nil //nolint:nilerr // it is the agent's
	}
	if len(replacements(own)) == 0 && !loopsShare(own) {
		return "", nil
	}
	base, err := s.Baseline.texts.Get(ctx, "go.mod "+taskKey(s.Task), func() (string, error) {
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
		return moduleFile(root)
	})
	if err != nil {
		return "", err
	}
	if loopsShare(own) && !loopsShare(base) {
		return "go.mod lowers the version of the language below 1.22, which changes what tests do", nil
	}
	known := replacements(base)
	for _, line := range replacements(own) {
		if !slices.Contains(known, line) {
			return "go.mod replaces a module: " + display.CutBytes(display.Text(line), 200), nil
		}
	}
	return "", nil
}

// moduleFile returns the whole go.mod of a copy, through links as the go command reads it; empty
// where there is none.
func moduleFile(root *os.Root) (string, error) {
	info, err := root.Stat("go.mod")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cannot be read: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxModuleFile:
		return "", fmt.Errorf("is not a file of at most %d bytes", maxModuleFile)
	}
	content, err := root.ReadFile("go.mod")
	return string(content), err
}

// loopsShare reports whether a go.mod asks for a version of the language in which all rounds of a
// loop share one variable.
func loopsShare(mod string) bool {
	for line := range strings.SplitSeq(mod, "\n") {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "go" {
			return version.Compare("go"+words[1], "go1.22") < 0
		}
	}
	return true
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
