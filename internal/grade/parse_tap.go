package grade

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/display"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

var (
	tapPoint = lazyregexp.New(`^(not )?ok\b(?:\s+(\d+))?(?:\s+-)?\s*(.*)$`)
	tapPlan  = lazyregexp.New(`^1\.\.(\d+)(?:\s*#\s*(.*))?$`)
	tapWord  = lazyregexp.New(`(?i)\s*(?:^|[^\\])#\s*(skip\S*|todo)\b(.*)$`)
)

// parseTAP reads the Test Anything Protocol, versions 12 to 14. Subtests are the indented lines
// before their parent; only tests without subtests are listed, under the names of all their
// parents. The report is complete when the plan is there and as many points as it says.
func parseTAP(data []byte) testReport {
	p := tapParser{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(make([]byte, 64<<10), 4<<20)
	for lines.Scan() {
		p.line(strings.TrimRight(lines.Text(), " \t\r"))
	}
	if lines.Err() != nil {
		p.report.problem("the report cannot be read: %v", lines.Err())
	}
	for level := len(p.levels) - 1; level > 0; level-- {
		p.report.problem("a subtest has no end")
	}
	if len(p.levels) > 0 {
		p.report.Complete = p.levels[0].finished(&p.report)
		for _, test := range p.levels[0].tests {
			p.report.add(test.Name, test.Status, test.Message)
		}
	}
	return p.report
}

// tapLevel is one plan with its points.
type tapLevel struct {
	planned, points int
	hasPlan         bool
	tests           []testResult
}

func (l *tapLevel) finished(report *testReport) bool {
	if l.hasPlan && l.points != l.planned {
		report.problem("the plan announces %d tests, but there are %d", l.planned, l.points)
	}
	return l.hasPlan
}

type tapParser struct {
	report testReport
	levels []*tapLevel
	inYAML bool
	yaml   int
	total  int
	// said is whether the lines that come say more about the point before, of this level.
	said bool
}

// tapSays finds the diagnostics of a point that say what was expected and seen.
var tapSays = lazyregexp.New(`^(?:error|message|expected|actual|wanted|got)\s*:\s*\S`)

// say adds a diagnostic to the last point of a level, if it failed.
func (p *tapParser) say(level int, text string) {
	if level >= len(p.levels) || len(p.levels[level].tests) == 0 {
		return
	}
	test := &p.levels[level].tests[len(p.levels[level].tests)-1]
	if test.Status == testFailed && len(test.Message) < maxRaw {
		test.Message = display.FirstBytes(strings.TrimSpace(test.Message+" "+strings.TrimSpace(text)), maxRaw)
	}
}

func (p *tapParser) line(line string) {
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	if p.inYAML {
		if text == "..." && indent == p.yaml {
			p.inYAML = false
		}
		if p.said = p.said && indent > p.yaml || tapSays.MatchString(text); p.inYAML && p.said {
			p.say(p.yaml/4, strings.TrimSuffix(text, ": |-"))
		}
		return
	}
	if text == "---" && indent >= 2 {
		p.inYAML, p.yaml, p.said = true, indent, false
		return
	}
	level := indent / 4
	if indent%4 != 0 || level > 50 {
		return
	}
	switch {
	case p.said && strings.HasPrefix(text, "# ") && !strings.HasPrefix(text, "# Subtest"):
		p.say(level, text[2:])
		return
	case strings.HasPrefix(text, "Bail out!"):
		p.report.problem("the tests were aborted: %s", display.FirstBytes(text, maxRaw))
	case tapPlan.MatchString(text):
		p.plan(level, tapPlan.FindStringSubmatch(text))
	case tapPoint.MatchString(text):
		p.point(level, tapPoint.FindStringSubmatch(text))
		p.said = true
		return
	}
	p.said = false
}

func (p *tapParser) at(level int) *tapLevel {
	for len(p.levels) <= level {
		p.levels = append(p.levels, &tapLevel{})
	}
	return p.levels[level]
}

func (p *tapParser) plan(level int, match []string) {
	l := p.at(level)
	if l.hasPlan {
		p.report.problem("there are two plans")
	}
	planned, err := strconv.Atoi(match[1])
	if err != nil {
		p.report.problem("the plan has no number")
	}
	l.planned, l.hasPlan = planned, true
	if strings.HasPrefix(strings.ToLower(match[2]), "skip") {
		p.report.add("all tests", testSkipped, match[2])
	}
}

func (p *tapParser) point(level int, match []string) {
	if p.total++; p.total > maxReportTests {
		p.report.problem("the report has too many tests")
		return
	}
	l := p.at(level)
	l.points++
	if match[2] != "" && match[2] != strconv.Itoa(l.points) {
		p.report.problem("test number %s is at position %d", display.CutBytes(match[2], 20), l.points)
	}
	status, name := testPassed, match[3]
	if match[1] != "" {
		status = testFailed
	}
	message := ""
	if word := tapWord.Get().FindStringSubmatchIndex(name); word != nil {
		message = strings.TrimSpace(name[word[4]:word[5]])
		if strings.EqualFold(name[word[2]:word[3]], "todo") {
			status = testTodo
		} else {
			status = testSkipped
		}
		hash := strings.LastIndex(name[:word[2]], "#")
		name = name[:hash]
	}
	name = strings.ReplaceAll(strings.TrimSpace(name), `\#`, "#")
	l.tests = append(l.tests, p.close(level, testResult{Name: name, Status: status, Message: message})...)
}

// close ends the subtests of a point: they take its place, unless only the point itself is bad.
func (p *tapParser) close(level int, parent testResult) []testResult {
	if len(p.levels) <= level+1 {
		return []testResult{parent}
	}
	if len(p.levels) > level+2 {
		p.report.problem("a subtest has no end")
	}
	sub := p.levels[level+1]
	p.levels = p.levels[:level+1]
	if !sub.finished(&p.report) {
		p.report.problem("a subtest has no plan")
	}
	for i := range sub.tests {
		sub.tests[i].Name = parent.Name + nameSeparator + sub.tests[i].Name
	}
	if parent.Status != testPassed || len(sub.tests) == 0 {
		return append(sub.tests, parent)
	}
	return sub.tests
}
