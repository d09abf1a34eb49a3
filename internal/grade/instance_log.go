package grade

import (
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// logStatus is SWE-bench's status of a test; empty if it was not reported.
type logStatus string

const (
	logPassed  logStatus = "PASSED"
	logFailed  logStatus = "FAILED"
	logError   logStatus = "ERROR"
	logSkipped logStatus = "SKIPPED"
	logXFail   logStatus = "XFAIL"
)

var logStatuses = []logStatus{logFailed, logPassed, logSkipped, logError, logXFail}

// passed reports whether a test passed, or failed as it should.
func (s logStatus) passed() bool { return s == logPassed || s == logXFail }

func (s logStatus) word() string {
	if s == "" {
		return "is missing"
	}
	return strings.ToLower(string(s))
}

// logReport is the test results in a log.
type logReport struct {
	statuses map[string]logStatus
	tests    []string // in the order of their first result
}

// add records a result. A test that is reported as failed has failed, whatever else is said about
// it: the tested code can print lines, too. SWE-bench takes the last line.
func (r *logReport) add(test string, status logStatus) {
	before, known := r.statuses[test]
	switch {
	case !known:
		r.tests = append(r.tests, test)
	case before == logFailed || before == logError && status != logFailed:
		return
	}
	r.statuses[test] = status
}

// statusOf returns the status of a test of a list. Some ids of SWE-bench Verified are cut inside
// their brackets: they stand for all tests that begin so, if these agree on whether they passed.
func (r *logReport) statusOf(test string) logStatus {
	status, known := r.statuses[test]
	if known || strings.Count(test, "[") <= strings.Count(test, "]") {
		return status
	}
	for _, name := range r.tests {
		switch found := r.statuses[name]; {
		case !strings.HasPrefix(name, test):
		case status == "":
			status = found
		case status.passed() != found.passed():
			return ""
		}
	}
	return status
}

// lineEnds are what SWE-bench takes for the end of a line.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// parseLog reads the log of tests by the rules of one of SWE-bench's parsers.
func parseLog(parser, log string) *logReport {
	report := &logReport{statuses: map[string]logStatus{}}
	line := map[string]func(*logReport, string){
		"pytest":         pytestLine,
		"pytest_options": pytestOptionsLine,
		"pytest_v2":      pytestV2Line,
		"django":         (&djangoLog{}).line,
		"matplotlib":     matplotlibLine,
		"seaborn":        seabornLine,
		"sympy":          sympyLine,
		"gotest":         byPattern(goLogLine, 1, 2),
		"cargo":          byPattern(cargoLogLine, 2, 1),
		"jest":           byPattern(jestLogLine, 1, 2),
		"vitest":         byPattern(vitestLogLine, 1, 2),
		"tap":            byPattern(tapLogLine, 1, 2),
	}[parser]
	if line == nil {
		return report
	}
	log = lineEnds.Replace(log)
	for text := range strings.SplitSeq(log, "\n") {
		line(report, text)
	}
	if parser == "django" {
		djangoInterrupted(report, log)
	}
	return report
}

// statusFirst reads the words of a line that begins with a status, such as "PASSED tests/a.py::b".
func statusFirst(line string) (words []string, status logStatus) {
	for _, known := range logStatuses {
		if strings.HasPrefix(line, string(known)) {
			words, status = strings.Fields(line), known
		}
	}
	switch {
	case len(words) < 2 || words[0] != string(status):
		return nil, status
	case status == logSkipped && skipCount.MatchString(words[1]):
		return nil, status
	}
	return words[1:], status
}

// skipCount is how many tests a line of a summary is about; other lines name them.
var skipCount = lazyregexp.New(`^\[\d+\]$`)

// pytestTest reads the name of a test, which ends at a space, and its status.
func pytestTest(line string) (test string, status logStatus) {
	if strings.HasPrefix(line, string(logFailed)) {
		line = strings.ReplaceAll(line, " - ", " ")
	}
	words, status := statusFirst(line)
	if len(words) == 0 {
		return "", ""
	}
	return words[0], status
}

func pytestLine(r *logReport, line string) {
	if test, status := pytestTest(line); test != "" {
		r.add(test, status)
	}
}

// pytestOptionsLine shortens paths in the parameters of tests, which differ between machines.
func pytestOptionsLine(r *logReport, line string) {
	test, status := pytestTest(line)
	if test == "" {
		return
	}
	open, end := strings.IndexByte(test, '['), strings.LastIndexByte(test, ']')
	if open >= 0 && open < end {
		option := test[open+1 : end]
		if strings.HasPrefix(option, "/") && !strings.HasPrefix(option, "//") && !strings.Contains(option, "*") {
			option = option[strings.LastIndexByte(option, '/'):]
		}
		test = test[:open] + "[" + option + "]"
	}
	r.add(test, status)
}

var colours = lazyregexp.New(`\[\d+m`)

// pytestV2Line reads logs with colours, names with spaces, and logs of older versions, where the
// status comes last.
func pytestV2Line(r *logReport, line string) {
	line = strings.Map(func(c rune) rune {
		if c < ' ' {
			return -1
		}
		return c
	}, colours.Get().ReplaceAllString(line, ""))
	if strings.HasPrefix(line, string(logFailed)) {
		line, _, _ = strings.Cut(line, " - ")
	}
	if words, status := statusFirst(line); status != "" {
		if len(words) > 0 {
			r.add(strings.Join(words, " "), status)
		}
		return
	}
	words := strings.Fields(line)
	if last := len(words) - 1; last > 0 && strings.HasSuffix(line, words[last]) &&
		slices.Contains(logStatuses, logStatus(words[last])) {
		r.add(strings.Join(words[:last], " "), logStatus(words[last]))
	}
}

var mouseButtons = strings.NewReplacer("MouseButton.LEFT", "1", "MouseButton.RIGHT", "3")

func matplotlibLine(r *logReport, line string) { pytestLine(r, mouseButtons.Replace(line)) }

func seabornLine(r *logReport, line string) {
	words := strings.Fields(line)
	switch {
	case len(words) < 2:
	case strings.HasPrefix(line, string(logFailed)):
		r.add(words[1], logFailed)
	case strings.Contains(line, " PASSED "):
		if words[1] == string(logPassed) {
			r.add(words[0], logPassed)
		}
	case strings.HasPrefix(line, string(logPassed)):
		r.add(words[1], logPassed)
	}
}

var sympyFailure = lazyregexp.New(`_* (.*\.py:.*) _*`)

func sympyLine(r *logReport, line string) {
	if match := sympyFailure.FindStringSubmatch(line); match != nil {
		r.add(match[1], logFailed)
	}
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "test_") {
		return
	}
	for _, end := range []struct {
		suffix string
		status logStatus
	}{{" E", logError}, {" F", logFailed}, {" ok", logPassed}} {
		if strings.HasSuffix(line, end.suffix) {
			r.add(strings.Fields(line)[0], end.status)
		}
	}
}

// The lines of results, without the space around them.
var (
	goLogLine     = lazyregexp.New(`^--- (PASS|FAIL|SKIP): (.+) \(.+\)$`)
	cargoLogLine  = lazyregexp.New(`^test\s+(\S+)\s+\.\.\.\s+(ok|FAILED)$`)
	jestLogLine   = lazyregexp.New(`^(✓|✕|○)\s(.+?)(?:\s\(\d+\s*m?s\))?$`)
	vitestLogLine = lazyregexp.New(`^(✓|×|↓)\s(.+?)(?:\s\d+\s*m?s?|\s\[skipped\])?$`)
	tapLogLine    = lazyregexp.New(`^(ok|not ok) \d+ (.+)$`)
)

var logWords = map[string]logStatus{
	"PASS": logPassed, "FAIL": logFailed, "SKIP": logSkipped,
	"ok": logPassed, "FAILED": logFailed, "not ok": logFailed,
	"✓": logPassed, "✕": logFailed, "×": logFailed, "○": logSkipped, "↓": logSkipped,
}

// byPattern reads lines by an expression whose groups are the status and the name of a test.
func byPattern(pattern *lazyregexp.Regexp, status, name int) func(*logReport, string) {
	return func(r *logReport, line string) {
		if match := pattern.FindStringSubmatch(strings.TrimSpace(line)); match != nil {
			r.add(match[name], logWords[match[status]])
		}
	}
}

// djangoLog reads the log of Django's own runner, where the outcome of a test may come some lines
// after its name.
type djangoLog struct{ waiting string }

// djangoMigration is printed before the name of a test, on its line.
const djangoMigration = "Applying sites.0002_alter_domain_unique..."

func (d *djangoLog) line(r *logReport, line string) {
	line = strings.TrimSpace(line)
	if strings.Contains(line, "--version is equivalent to version") {
		r.add("--version is equivalent to version", logPassed)
	}
	if test, _, found := strings.Cut(line, " ... "); found {
		d.waiting = test
	}
	for _, suffix := range []string{" ... ok", " ... OK", " ...  OK"} {
		if test, found := strings.CutSuffix(line, suffix); found {
			if rest, migrated := strings.CutPrefix(test, djangoMigration); migrated &&
				strings.HasPrefix(rest, "test_no_migrations") {
				test = rest
			}
			r.add(test, logPassed)
		}
	}
	if test, _, found := strings.Cut(line, " ... skipped"); found {
		r.add(test, logSkipped)
	}
	for word, status := range map[string]logStatus{"FAIL": logFailed, "ERROR": logError} {
		if strings.HasSuffix(line, " ... "+word) {
			test, _, _ := strings.Cut(line, " ... "+word)
			r.add(test, status)
		}
		if words := strings.Fields(line); strings.HasPrefix(line, word+":") && len(words) > 1 {
			r.add(words[1], status)
		}
	}
	if strings.HasPrefix(line, "ok") && d.waiting != "" {
		r.add(d.waiting, logPassed)
	}
}

// djangoPrint is what the runner prints between a test that passes and its "ok".
var djangoPrint = lazyregexp.New(`(?m)^(.*?)\s\.\.\.\sTesting against Django installed in (?s:.*?) silenced\)\.\nok$`)

func djangoInterrupted(r *logReport, log string) {
	for _, match := range djangoPrint.Get().FindAllStringSubmatch(log, -1) {
		r.add(match[1], logPassed)
	}
}
