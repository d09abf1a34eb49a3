package grade

import (
	"context"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/task"
)

// expect finds out which tests a check must report, from sources that no agent has touched: the
// family's declaration; for Go the parsed source; otherwise a run of the check on the reference
// solution, or on the base where there is none; and where that names no tests, the names that can
// be read in the source.
func (s *suiteRun) expect(ctx context.Context, check task.Check) (expectation, error) {
	if len(check.Tests) > 0 || usesOwnRunner(s.suite.Runner, task.LanguageGo) ||
		s.suite.Runner.Parser == task.ParserExitNonce {
		return expectation{names: check.Tests}, nil
	}
	known, err := s.Baseline.test(ctx, s.grading, check)
	if err != nil {
		return expectation{}, err
	}
	if known.abortReason == "" && known.cannotRun == "" && known.report.Complete && known.report.Problem == "" &&
		len(known.report.Tests) > 0 {
		return expectation{names: known.report.names()}, nil
	}
	source, _, err := hiddenFile(s.suite.Dir, check.File)
	if err != nil {
		// Staging fails next and says so.
		return expectation{}, nil //nolint:nilerr // see above
	}
	return expectation{leaves: namesInSource(s.suite.Runner.Language, string(source))}, nil
}

var (
	nodeTestName = lazyregexp.New(
		"(?m)^\\s*(?:await\\s+)?(?:test|it)\\(\\s*(?:'([^'\\\\\\n]+)'|\"([^\"\\\\\\n]+)\"|`([^`\\\\$\\n]+)`)\\s*,",
	)
	pythonTestName = lazyregexp.New(`(?m)^\s*(?:async\s+)?def\s+(test\w*)\s*\(`)
	blockComment   = lazyregexp.New(`(?s)/\*.*?\*/`)
)

// namesInSource finds names of tests that are in a source as plain text at the beginning of a
// line.
func namesInSource(language, source string) []string {
	var names []string
	switch language {
	case task.LanguageNode:
		for _, match := range nodeTestName.FindAllStringSubmatch(blockComment.Get().ReplaceAllString(source, ""), -1) {
			names = append(names, strings.Join(match[1:], ""))
		}
	case task.LanguagePython:
		for _, match := range pythonTestName.FindAllStringSubmatch(source, -1) {
			names = append(names, match[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
