package grade

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/ledger"
)

// Linter is a shell command that prints a line for each violation in the files that replace
// {files}.
type Linter struct {
	Command string
	Timeout time.Duration
}

// The exit codes of a shell that cannot run a command.
const notExecutable, notFound = 126, 127

// Lint runs a linter on copies: of the base, and of what the agent left.
func Lint(ctx context.Context, cfg Config, linter Linter, changed []workspace.FileChange) (ledger.Lint, error) {
	g, err := newGrading(cfg)
	if err != nil {
		return ledger.Lint{}, err
	}
	defer g.close()
	var before, after []string
	for _, file := range changed {
		if file.Before != "" {
			before = append(before, file.Path)
		}
		if file.After != "" {
			after = append(after, file.Path)
		}
	}
	var result ledger.Lint
	result.Before, _, result.Error, err = g.without(false).lint(ctx, linter, before)
	if err == nil && result.Error == "" {
		result.After, result.ExitCode, result.Error, err = g.lint(ctx, linter, after)
	}
	return result, err
}

// lint counts the violations in some files of a copy.
func (g *grading) lint(ctx context.Context, linter Linter, files []string,
) (count, status int, problem string, err error) {
	if len(files) == 0 {
		return 0, 0, "", nil
	}
	var printed bytes.Buffer
	shown, err := g.tryAlone(ctx, func(ctx context.Context, s *suiteRun) (evidence, error) {
		var all capture
		done, err := s.run(ctx, program{
			argv:    []string{"sh", "-c", strings.ReplaceAll(linter.Command, "{files}", shellWords(files))},
			env:     gitEnvironment(),
			dir:     s.copied.Dir,
			place:   s.place,
			timeout: linter.Timeout,
			watch:   &all,
		})
		printed.Write(all.data)
		return s.evidenceOf("lint", done), err
	})
	switch {
	case err != nil:
		return 0, 0, "", err
	case shown.broke():
		return 0, 0, g.Redactor.String(shown.abortReason + shown.cannotRun), nil
	case shown.status == notExecutable || shown.status == notFound:
		return 0, 0, g.Redactor.String(fmt.Sprintf("lintCommand exits with %d: %s", shown.status, shown.note)), nil
	}
	for line := range bytes.Lines(printed.Bytes()) {
		if len(bytes.TrimSpace(line)) > 0 {
			count++
		}
	}
	return count, shown.status, "", nil
}

// shellWords returns file names quoted for a shell; none can be taken for an option.
func shellWords(names []string) string {
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = "'./" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}
