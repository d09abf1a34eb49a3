package grade

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// machineTrouble are texts in a log that point to the machine and not to the code.
var machineTrouble = lazyregexp.New(`(?i)no space left on device|temporary failure in name resolution|` +
	`could not resolve host|cannot allocate memory|network is unreachable|read-only file system`)

// resolve applies the rules of SWE-bench 5: a test that must begin to pass has to be reported as
// passed; one that must keep passing may also be skipped; one that is not reported fails. Where
// only failures count, every test that is not reported as failed passes. A log without a failure
// does not count if the test command failed.
func (g *grading) resolve(shown instanceRun) graded {
	n, report := g.Task.Instance, g.instance
	statuses := parseLog(n.LogParser, string(shown.tests))
	failures := false
	for _, status := range statuses {
		failures = failures || status == logFailed || status == logError
	}
	report.Ambiguous = shown.status != 0 && !failures
	report.TestsStatus = map[string]TestsStatus{"FAIL_TO_FAIL": noTests(), "PASS_TO_FAIL": noTests()}
	var found graded
	report.Resolved = !report.Ambiguous
	for _, list := range []struct {
		name  string
		tests []string
	}{{failToPass, n.FailToPass}, {passToPass, n.PassToPass}} {
		outcome := noTests()
		var bad []string
		for _, test := range list.tests {
			status := statuses[test]
			passed := status == logPassed || status == logXFail || list.name == passToPass && status == logSkipped
			if n.FailOnly {
				passed = status != logFailed
			}
			if passed && !report.Ambiguous {
				outcome.Success = append(outcome.Success, test)
				continue
			}
			outcome.Failure = append(outcome.Failure, test)
			bad = append(bad, display.CutBytes(display.Text(test), maxTestName)+" "+status.word())
		}
		report.TestsStatus[list.name] = outcome
		report.Resolved = report.Resolved && len(bad) == 0
		found.rows = append(found.rows, testRow(list.name, true, 0, len(bad) == 0 && !report.Ambiguous,
			g.Redactor.String(badTests(bad, len(list.tests), report.Ambiguous, shown.status))))
	}
	report.InfraFailure = !report.Resolved && machineTrouble.MatchString(string(shown.log))
	return found
}

func noTests() TestsStatus { return TestsStatus{Success: []string{}, Failure: []string{}} }

// badTests says which tests do not pass.
func badTests(bad []string, all int, ambiguous bool, status int) string {
	switch {
	case ambiguous:
		return fmt.Sprintf("the test command exits with %d, but its log has no test that failed", status)
	case len(bad) == 0:
		return ""
	}
	more := ""
	if len(bad) > 3 {
		more = fmt.Sprintf(", and %d more", len(bad)-3)
	}
	return fmt.Sprintf("%d of %d do not pass: %s%s", len(bad), all, strings.Join(bad[:min(len(bad), 3)], ", "), more)
}
