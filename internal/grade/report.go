package grade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/redact"
)

// The bounds of reports.
const (
	maxReport      = 16 << 20
	maxReportTests = 100_000
	maxTestName    = 1000
	maxMessage     = 500
	// maxRaw bounds a text that is not redacted yet. It leaves room for the longest secret behind
	// the bounds above, so that no part of one is kept.
	maxRaw = 16 << 10
)

// testStatus is how one test ended.
type testStatus int

// The statuses of tests. Only testPassed is good: a test that was skipped or is still to be written
// has proved nothing.
const (
	testFailed testStatus = iota
	testPassed
	testSkipped
	testTodo
)

// String names the status.
func (s testStatus) String() string {
	switch s {
	case testPassed:
		return "passed"
	case testSkipped:
		return "skipped"
	case testTodo:
		return "to do"
	}
	return "failed"
}

// testResult is one test as a report has it.
type testResult struct {
	Name    string
	Status  testStatus
	Message string
	// suite is set for a group of tests that failed. Groups that pass are not reported.
	suite bool
}

// testReport is the report of a test command, in any format.
type testReport struct {
	Tests []testResult
	// Complete is set when the format has an end and the end is there.
	Complete bool
	// Problem says why the report cannot be trusted; empty if it can.
	Problem string
}

func (r *testReport) add(name string, status testStatus, message string) {
	if len(r.Tests) >= maxReportTests {
		r.Problem = "the report has too many tests"
		return
	}
	r.Tests = append(r.Tests, testResult{
		Name: display.FirstBytes(name, maxRaw), Status: status,
		Message: display.FirstBytes(message, maxRaw),
	})
}

// tidy redacts the texts of a report, makes them safe to show and cuts them, in this order: a
// secret that was cut is no longer recognised.
func (r *testReport) tidy(redactor *redact.Redactor) {
	shown := func(text string, limit int) string {
		return display.CutBytes(display.Text(redactor.String(text)), limit)
	}
	for i := range r.Tests {
		test := &r.Tests[i]
		test.Name, test.Message = shown(test.Name, maxTestName), shown(test.Message, maxMessage)
	}
	r.Problem = shown(r.Problem, 2*maxMessage)
}

// lastIsSuite marks the last test as a group of tests.
func (r *testReport) lastIsSuite(suite bool) {
	if len(r.Tests) > 0 {
		r.Tests[len(r.Tests)-1].suite = suite
	}
}

// problem keeps the first thing that is wrong.
func (r *testReport) problem(format string, args ...any) {
	if r.Problem == "" {
		r.Problem = fmt.Sprintf(format, args...)
	}
}

// evidence is the result of one run of one check.
type evidence struct {
	report testReport
	// abortReason says why the run did not end by itself; otherwise status is its exit code.
	abortReason string
	status      int
	// note is the end of what was printed, for people.
	note string
	// told is set where the check itself says why it failed, though not in a report: what does not
	// compile, and where.
	told bool
	// byStatus is set for a check that has no report but its exit code.
	byStatus bool
	// cannotRun says why the check could not be run, such as a missing tool.
	cannotRun string
	// died is set for a run that was killed by a signal or failed without a report, which may be
	// chance or the agent's fault.
	died bool
	// accident is set for a run that printed the last words of a program that was killed; its
	// report may be complete.
	accident bool
	// timedOut, startMs and endMs are those of the process.
	timedOut       bool
	startMs, endMs int64
}

// broke reports whether the run did not end by itself.
func (e evidence) broke() bool { return e.abortReason != "" || e.cannotRun != "" }

// doubtful reports whether a run that failed may have met an accident: it or a program of it was
// killed, it did not end by itself, or it ended without saying all that it had to say.
func (e evidence) doubtful() bool {
	return e.accident || e.died || e.broke() || e.byStatus || !e.told && !e.report.Complete
}

// tells reports whether the same without the agent's work, with a reference solution or not, would
// be a fault of the grader or of the machine.
func (e evidence) tells(solved bool) bool {
	return e.broke() || solved && (e.silent() || e.accident) || e.silent() && e.accident
}

// silent reports whether the run failed without reporting any test.
func (e evidence) silent() bool {
	return e.status != 0 && len(e.report.Tests) == 0 && !e.report.Complete
}

// expectation lists what a check must report.
type expectation struct {
	// names are all tests, each as often as it must be reported.
	names []string
	// leaves are the last parts of names of tests that must be among those reported, where all
	// names are not known.
	leaves []string
}

// failure returns why evidence does not prove that a check passed; empty means that it does.
func (e evidence) failure(want expectation) string {
	switch {
	case e.cannotRun != "":
		return e.cannotRun
	case e.abortReason != "":
		return e.abortReason
	case e.status != 0:
		return e.withNote(fmt.Sprintf("exit %d", e.status))
	case e.report.Problem != "":
		return e.withNote(e.report.Problem)
	case !e.report.Complete:
		return e.withNote("the tests did not finish")
	case len(e.report.Tests) == 0:
		return e.withNote("no test ran")
	}
	if bad := e.report.bad(); bad != "" {
		return bad
	}
	if wrong := want.compare(e.report.Tests); wrong != "" {
		return e.withNote(wrong)
	}
	return ""
}

// withNote adds the names of failed tests, or what was printed last.
func (e evidence) withNote(reason string) string {
	if bad := e.report.bad(); bad != "" {
		return display.CutBytes(reason+": "+bad, 2*maxMessage)
	}
	if e.note != "" {
		return reason + ": " + e.note
	}
	return reason
}

// bad names tests that did not pass.
func (r testReport) bad() string {
	var lines []string
	more := 0
	for _, test := range r.Tests {
		if test.Status == testPassed {
			continue
		}
		if len(lines) == 3 {
			more++
			continue
		}
		line := display.CutBytes(test.Name, 120) + " " + test.Status.String()
		if test.Message != "" {
			line += " (" + display.CutBytes(strings.Join(strings.Fields(test.Message), " "), 160) + ")"
		}
		lines = append(lines, line)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, ", ")
}

// compare finds the first test that was not reported exactly as often as it must be. More tests
// than expected do no harm as long as they pass.
func (want expectation) compare(tests []testResult) string {
	seen := map[string]int{}
	leaves := map[string]int{}
	for _, test := range tests {
		seen[test.Name]++
		if own := leaf(test.Name); own != test.Name {
			leaves[own]++
		}
	}
	counts := map[string]int{}
	for _, name := range want.names {
		counts[display.CutBytes(display.Text(name), maxTestName)]++
	}
	for _, name := range want.names {
		name = display.CutBytes(display.Text(name), maxTestName)
		times := seen[name]
		if times == 0 {
			times = leaves[name] // a declaration may leave out the names of suites
		}
		switch times {
		case counts[name]:
		case 0:
			return fmt.Sprintf("the test %q was not reported", display.CutBytes(name, 120))
		default:
			return fmt.Sprintf("the test %q was reported %d times instead of %d", display.CutBytes(name, 120), times,
				counts[name])
		}
	}
	for _, name := range want.leaves {
		if leaves[name]+seen[name] == 0 {
			return fmt.Sprintf("the test %q was not reported", display.CutBytes(name, 120))
		}
	}
	return ""
}

// nameSeparator separates a suite from its tests in names.
const nameSeparator = " > "

func leaf(name string) string {
	if i := strings.LastIndex(name, nameSeparator); i >= 0 {
		return name[i+len(nameSeparator):]
	}
	return name
}

// names returns the tests of a report, for comparison with another report.
func (r testReport) names() []string {
	var names []string
	for _, test := range r.Tests {
		if !test.suite {
			names = append(names, test.Name)
		}
	}
	slices.Sort(names)
	return names
}
