package grade

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/display"
)

// parseJUnit reads JUnit XML as pytest and most other tools write it. Tests are named class > name.
// The counts of a suite, where it has them, must agree with its tests. The report is complete when
// the document is.
func parseJUnit(data []byte) testReport {
	p := junitParser{}
	decoder := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			p.report.problem("the report is not valid XML: %s", display.FirstBytes(err.Error(), maxRaw))
			return p.report
		}
		switch element := token.(type) {
		case xml.StartElement:
			p.start(element)
		case xml.EndElement:
			p.end(element)
		case xml.CharData:
			p.chars(element)
		case xml.Directive:
			// No tool writes a document type, and entities only serve to blow up a reader.
			p.report.problem("the report declares a document type")
			return p.report
		}
		if p.depth > 100 {
			p.report.problem("the report is nested too deeply")
			return p.report
		}
	}
	p.report.Complete = p.suites > 0 && p.depth == 0
	return p.report
}

type junitParser struct {
	report testReport
	depth  int
	suites int
	counts []junitCount
	test   *testResult
	inside bool // of an element that holds a message
}

// junitCount holds the counts that a suite declares, and the actual ones.
type junitCount struct{ said, found int }

func (p *junitParser) start(element xml.StartElement) {
	p.depth++
	attribute := func(name string) string {
		for _, a := range element.Attr {
			if a.Name.Local == name {
				return a.Value
			}
		}
		return ""
	}
	switch element.Name.Local {
	case "testsuites":
		p.suites++
	case "testsuite":
		p.suites++
		said, err := strconv.Atoi(attribute("tests"))
		if err != nil {
			said = -1
		}
		p.counts = append(p.counts, junitCount{said: said})
	case "testcase":
		if p.test != nil {
			p.report.problem("a test is inside of another one")
			return
		}
		name := attribute("name")
		if class := attribute("classname"); class != "" {
			name = class + nameSeparator + name
		}
		p.test = &testResult{Name: name, Status: testPassed}
	case "failure", "error":
		p.bad(testFailed, attribute("message"))
		if p.test == nil {
			p.report.problem("the report has an error outside the tests")
		}
	case "skipped":
		p.bad(testSkipped, attribute("message"))
	}
}

func (p *junitParser) bad(status testStatus, message string) {
	if p.test == nil {
		return
	}
	if p.test.Status != testFailed {
		p.test.Status = status
	}
	if p.test.Message == "" {
		p.test.Message = display.FirstBytes(message, maxRaw)
	}
	p.inside = true
}

func (p *junitParser) chars(text xml.CharData) {
	if p.inside && p.test != nil && p.test.Message == "" {
		p.test.Message = display.FirstBytes(strings.TrimSpace(string(text)), maxRaw)
	}
}

func (p *junitParser) end(element xml.EndElement) {
	p.depth--
	switch element.Name.Local {
	case "failure", "error", "skipped":
		p.inside = false
	case "testcase":
		if p.test == nil {
			return
		}
		p.report.add(p.test.Name, p.test.Status, p.test.Message)
		for i := range p.counts {
			p.counts[i].found++
		}
		p.test = nil
	case "testsuite":
		last := p.counts[len(p.counts)-1]
		p.counts = p.counts[:len(p.counts)-1]
		if last.said >= 0 && last.said != last.found {
			p.report.problem("a suite announces %d tests, but there are %d", last.said, last.found)
		}
	}
}
