package grade

import (
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

func (s logStatus) word() string {
	if s == "" {
		return "is missing"
	}
	return strings.ToLower(string(s))
}

// logReport is the test results in a log. A test that is reported as failed has failed, whatever
// else is said about it: the tested code can print lines, too.
type logReport map[string]logStatus

func (r logReport) add(test string, status logStatus) {
	if before := r[test]; before == logFailed || before == logError && status != logFailed {
		return
	}
	r[test] = status
}

// parseLog reads the log of tests. The parsers read what those of SWE-bench read.
func parseLog(parser, log string) map[string]logStatus {
	report := logReport{}
	line := map[string]func(logReport, string){
		"pytest":         pytestLine,
		"pytest_options": pytestOptionsLine,
		"pytest_v2":      pytestV2Line,
		"matplotlib":     matplotlibLine,
		"seaborn":        seabornLine,
		"sympy":          sympyLine,
		"gotest":         byPattern(goLogLine, 1, 2),
		"cargo":          byPattern(cargoLogLine, 2, 1),
		"jest":           byPattern(jestLogLine, 1, 2),
		"vitest":         byPattern(vitestLogLine, 1, 2),
		"tap":            tapLine,
	}[parser]
	if parser == "django" {
		line = (&djangoLog{}).line
	}
	if line == nil {
		return report
	}
	for text := range strings.Lines(log) {
		line(report, strings.TrimRight(text, "\r\n"))
	}
	return report
}

// statusFirst reads a line that begins with a status: "PASSED tests/a.py::b", "FAILED a - why".
func statusFirst(line string) (test string, status logStatus) {
	for _, known := range logStatuses {
		if !strings.HasPrefix(line, string(known)) {
			continue
		}
		if known == logFailed {
			line = strings.ReplaceAll(line, " - ", " ")
		}
		if words := strings.Fields(line); len(words) > 1 && words[0] == string(known) {
			return words[1], known
		}
	}
	return "", ""
}

func pytestLine(r logReport, line string) {
	if test, status := statusFirst(line); test != "" {
		r.add(test, status)
	}
}

// pytestOptionsLine shortens paths in the parameters of tests, which differ between machines.
func pytestOptionsLine(r logReport, line string) {
	test, status := statusFirst(line)
	if test == "" {
		return
	}
	if name, option, ok := strings.Cut(test, "["); ok && strings.HasSuffix(option, "]") {
		option = strings.TrimSuffix(option, "]")
		if strings.HasPrefix(option, "/") && !strings.HasPrefix(option, "//") && !strings.Contains(option, "*") {
			option = option[strings.LastIndexByte(option, '/'):]
		}
		test = name + "[" + option + "]"
	}
	r.add(test, status)
}

var colours = lazyregexp.New(`\[\d+m`)

// pytestV2Line reads logs with colours, and those of older versions, where the status comes last.
func pytestV2Line(r logReport, line string) {
	line = strings.Map(func(c rune) rune {
		if c < ' ' {
			return -1
		}
		return c
	}, colours.Get().ReplaceAllString(line, ""))
	if test, status := statusFirst(line); test != "" {
		r.add(test, status)
		return
	}
	if words := strings.Fields(line); len(words) >= 2 {
		for _, status := range logStatuses {
			if words[1] == string(status) && strings.HasSuffix(line, words[1]) {
				r.add(words[0], status)
			}
		}
	}
}

var mouseButtons = strings.NewReplacer("MouseButton.LEFT", "1", "MouseButton.RIGHT", "3")

func matplotlibLine(r logReport, line string) { pytestLine(r, mouseButtons.Replace(line)) }

func seabornLine(r logReport, line string) {
	words := strings.Fields(line)
	switch {
	case len(words) < 2:
	case words[0] == string(logFailed), words[0] == string(logPassed):
		r.add(words[1], logStatus(words[0]))
	case words[1] == string(logPassed):
		r.add(words[0], logPassed)
	}
}

var sympyFailure = lazyregexp.New(`^_+ (.+\.py:.+?) _+$`)

func sympyLine(r logReport, line string) {
	if match := sympyFailure.FindStringSubmatch(line); match != nil {
		r.add(match[1], logFailed)
		return
	}
	words := strings.Fields(line)
	if len(words) < 2 || !strings.HasPrefix(words[0], "test_") {
		return
	}
	switch words[len(words)-1] {
	case "E":
		r.add(words[0], logError)
	case "F":
		r.add(words[0], logFailed)
	case "ok":
		r.add(words[0], logPassed)
	}
}

var (
	goLogLine     = lazyregexp.New(`^\s*--- (PASS|FAIL|SKIP): (.+) \(.+\)$`)
	cargoLogLine  = lazyregexp.New(`^\s*test\s+(\S+)\s+\.\.\.\s+(\w+)`)
	jestLogLine   = lazyregexp.New(`^\s*(✓|✕|○)\s(.+?)(?:\s\(\d+(?:\.\d+)?\s*m?s\))?$`)
	vitestLogLine = lazyregexp.New(`^\s*(✓|×|↓)\s(.+?)(?:\s\d+\s*m?s|\s\[skipped\])?$`)
	tapLogLine    = lazyregexp.New(`^\s*(ok|not ok) \d+ (.+)$`)
)

var logWords = map[string]logStatus{
	"PASS": logPassed, "FAIL": logFailed, "SKIP": logSkipped,
	"ok": logPassed, "FAILED": logFailed, "ignored": logSkipped, "not ok": logFailed,
	"✓": logPassed, "✕": logFailed, "×": logFailed, "○": logSkipped, "↓": logSkipped,
}

// byPattern reads lines by an expression whose groups are the status and the name of a test.
func byPattern(pattern *lazyregexp.Regexp, status, name int) func(logReport, string) {
	return func(r logReport, line string) {
		if match := pattern.FindStringSubmatch(line); match != nil {
			if word := logWords[match[status]]; word != "" {
				r.add(match[name], word)
			}
		}
	}
}

// tapLine reads a line of the Test Anything Protocol. Its dash may be a part of the name in a list
// of tests.
func tapLine(r logReport, line string) {
	match := tapLogLine.FindStringSubmatch(line)
	if match == nil {
		return
	}
	name, status := match[2], logWords[match[1]]
	if before, directive, found := strings.Cut(name, " # "); found {
		if name = before; strings.HasPrefix(strings.ToUpper(directive), "SKIP") {
			status = logSkipped
		}
	}
	r.add(name, status)
	if plain, dashed := strings.CutPrefix(name, "- "); dashed {
		r.add(plain, status)
	}
}

// djangoLog reads the log of Django's own runner, where the outcome of a test may come some lines
// after its name.
type djangoLog struct{ waiting string }

func (d *djangoLog) line(r logReport, line string) {
	line = strings.TrimSpace(line)
	if strings.Contains(line, "--version is equivalent to version") {
		r.add("--version is equivalent to version", logPassed)
	}
	if test, _, found := strings.Cut(line, " ... "); found {
		d.waiting = test
	}
	for _, suffix := range []string{" ... ok", " ... OK", " ...  OK"} {
		if test, found := strings.CutSuffix(line, suffix); found {
			r.add(test, logPassed)
		}
	}
	if test, _, found := strings.Cut(line, " ... skipped"); found {
		r.add(test, logSkipped)
	}
	for suffix, status := range map[string]logStatus{" ... FAIL": logFailed, " ... ERROR": logError} {
		if test, found := strings.CutSuffix(line, suffix); found {
			r.add(test, status)
		}
	}
	for prefix, status := range map[string]logStatus{"FAIL:": logFailed, "ERROR:": logError} {
		if words := strings.Fields(line); strings.HasPrefix(line, prefix) && len(words) > 1 {
			r.add(words[1], status)
		}
	}
	if line == "ok" && d.waiting != "" {
		r.add(d.waiting, logPassed)
		d.waiting = ""
	}
}
