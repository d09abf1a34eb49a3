package grade

import (
	"context"

	"github.com/fit-eval/fit/internal/task"
)

// expect finds out which tests a check must report, from sources that no agent has touched: the
// family's declaration; for Go the parsed source; otherwise a run of the check on the reference
// solution, or on the base where there is none; and where that names no tests, the names that can
// be read in the source.
func (s *suiteRun) expect(ctx context.Context, check task.Check) (expectation, error) {
	known := s.suite.Runner.Own && s.language.compiled || s.suite.Runner.Parser == task.ParserExitNonce
	if len(check.Tests) > 0 || known {
		return expectation{names: check.Tests}, nil
	}
	shown, err := s.Baseline.test(ctx, s.grading, check)
	if err != nil {
		return expectation{}, err
	}
	if shown.abortReason == "" && shown.cannotRun == "" && shown.report.Complete && shown.report.Problem == "" &&
		len(shown.report.Tests) > 0 {
		return expectation{names: shown.report.names()}, nil
	}
	source, _, err := hiddenFile(s.suite.Dir, check.File)
	if err != nil {
		// Staging fails next and says so.
		return expectation{}, nil //nolint:nilerr // see above
	}
	if s.language.names == nil {
		return expectation{}, nil
	}
	return expectation{leaves: s.language.names(string(source))}, nil
}
