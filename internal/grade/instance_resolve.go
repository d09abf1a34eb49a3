package grade

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// machineTrouble are texts in a log that point to the machine and not to the code.
var machineTrouble = lazyregexp.New(`(?i)no space left on device|temporary failure in name resolution|` +
	`could not resolve host|cannot allocate memory|network is unreachable|read-only file system`)

// suiteRan are the signs of a suite that ran at least one test.
var suiteRan = lazyregexp.New(`(?m)Executed [1-9]\d* of \d+|TOTAL: [1-9]\d* (?:SUCCESS|FAILED)|[1-9]\d* passing|` +
	`Tests:\s+[1-9]|Test Suites:\s+(?:\d+ \w+, )*[1-9]\d* total|^# tests [1-9]|[1-9]\d* specs?, \d+ failures?|': ok$`)

// voidMarkers are what SWE-bench prints where the tests did not run as they should.
var voidMarkers = lazyregexp.New(`>>>>> (?:Patch Apply Failed|Reset Failed|Tests Errored|Tests Timed Out)`)

// results reads the log of the tests. Some runners print outside of the markers: the whole log
// counts if there is nothing between them. It says why a log is void; the test command's status is
// not looked at.
func (r *instanceRun) results(parser string) (results *logReport, void string) {
	if marker := voidMarkers.Get().Find(r.log); marker != nil {
		return parseLog("", ""), fmt.Sprintf("the log says %q", marker)
	}
	results = parseLog(parser, string(r.tests))
	if len(results.tests) == 0 {
		results = parseLog(parser, string(r.log))
	}
	if len(results.tests) == 0 && !suiteRan.Get().Match(r.log) {
		void = "the log has no test and no sign that any ran"
	}
	return results, void
}

// resolve applies the rules of SWE-bench 5: a test that must begin to pass has to be reported as
// passed; one that must keep passing may also be skipped; one that is not reported fails. Where
// only failures count, every test that is not reported as failed passes. A log without a failure
// does not count if the test command failed.
func (g *grading) resolve(shown instanceRun) graded {
	n, report := g.Task.Instance, g.instance
	results, void := shown.results(n.LogParser)
	failures := false
	for _, status := range results.statuses {
		failures = failures || status == logFailed || status == logError
	}
	if report.Ambiguous = void == "" && shown.status != 0 && !failures; report.Ambiguous {
		void = fmt.Sprintf("the test command exits with %d, but its log has no test that failed", shown.status)
	}
	report.TestsStatus = map[string]TestsStatus{"FAIL_TO_FAIL": noTests(), "PASS_TO_FAIL": noTests()}
	var found graded
	report.Resolved = void == ""
	for _, list := range []struct {
		name  string
		tests []string
	}{{failToPass, n.FailToPass}, {passToPass, n.PassToPass}} {
		outcome := noTests()
		var bad []string
		for _, test := range list.tests {
			status := results.statusOf(test)
			passed := status.passed() || list.name == passToPass && status == logSkipped
			if n.FailOnly {
				passed = results.statuses[test] != logFailed
			}
			if passed && void == "" {
				outcome.Success = append(outcome.Success, test)
				continue
			}
			outcome.Failure = append(outcome.Failure, test)
			bad = append(bad, display.CutBytes(display.Text(test), maxTestName)+" "+status.word())
		}
		report.TestsStatus[list.name] = outcome
		report.Resolved = report.Resolved && len(bad) == 0
		found.rows = append(found.rows, testRow(list.name, true, 0, len(bad) == 0 && void == "",
			g.Redactor.String(cmp.Or(void, badTests(bad, len(list.tests))))))
	}
	report.InfraFailure = !report.Resolved && machineTrouble.MatchString(string(shown.log))
	return found
}

func noTests() TestsStatus { return TestsStatus{Success: []string{}, Failure: []string{}} }

// badTests says which tests do not pass.
func badTests(bad []string, all int) string {
	if len(bad) == 0 {
		return ""
	}
	more := ""
	if len(bad) > 3 {
		more = fmt.Sprintf(", and %d more", len(bad)-3)
	}
	return fmt.Sprintf("%d of %d do not pass: %s%s", len(bad), all, strings.Join(bad[:min(len(bad), 3)], ", "), more)
}
