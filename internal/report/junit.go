package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/report/failure"
	"github.com/fit-eval/fit/ledger"
)

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string           `xml:"name,attr"`
	Tests      int              `xml:"tests,attr"`
	Failures   int              `xml:"failures,attr"`
	Errors     int              `xml:"errors,attr"`
	Time       string           `xml:"time,attr"`
	Properties *junitProperties `xml:"properties,omitempty"`
	Cases      []junitCase      `xml:"testcase"`
}

// junitProperties are what holds for a whole suite.
type junitProperties struct {
	List []junitProperty `xml:"property"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes the report in the XML that build servers read: an arm is a suite, a run is a test.
func (r *Report) JUnit(w io.Writer) error {
	var all junitSuites
	for i := range r.Groups {
		all.Suites = append(all.Suites, r.Groups[i].junit())
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (g *Group) junit() junitSuite {
	suite := junitSuite{Name: display.Text(g.Name), Properties: g.junitProperties()}
	total := int64(0)
	for i := range g.records {
		record := &g.records[i]
		one := junitCase{
			Class: display.Text(g.Name + "." + record.TaskID),
			Name:  display.Text(fmt.Sprintf("%s run %d", record.TaskID, record.RunIndex)),
			Time:  seconds(record.DurationMs),
		}
		total += record.DurationMs
		notes := display.Text(strings.Join(append(failingChecks(record), notesOf(record)...), "\n"))
		switch record.Verdict {
		case ledger.Fail:
			suite.Failures++
			one.Failure = &junitMessage{Message: "the run did not pass", Text: notes}
		case ledger.Error:
			suite.Errors++
			one.Error = &junitMessage{Message: display.Text(record.ErrorClass), Text: notes}
		}
		suite.Cases = append(suite.Cases, one)
	}
	for i := range g.Tasks {
		t := &g.Tasks[i]
		for _, run := range t.absent {
			suite.Errors++
			suite.Cases = append(suite.Cases, junitCase{
				Class: display.Text(g.Name + "." + t.TaskID),
				Name:  display.Text(fmt.Sprintf("%s run %d", t.TaskID, run)),
				Time:  seconds(0),
				Error: &junitMessage{Message: "missing", Text: "the plan has this run, but the results do not"},
			})
		}
	}
	suite.Tests = len(suite.Cases)
	suite.Time = seconds(total)
	return suite
}

// junitProperties say in what the arm differs, what its models were given, and why nothing is
// claimed about it; nil where there is nothing to say.
func (g *Group) junitProperties() *junitProperties {
	found := &junitProperties{}
	add := func(name, value string) {
		found.List = append(found.List, junitProperty{Name: name, Value: display.Text(value)})
	}
	add("validity", ValidityPage)
	if g.Scope != "" {
		add("selection", g.Scope)
	}
	for _, text := range g.Differs {
		add("differs", text)
	}
	if g.Treatment != nil {
		for _, line := range g.Treatment.Lines {
			add("treatment", strings.TrimPrefix(line, "treatment: "))
		}
	}
	for _, reason := range g.Withheld {
		add("withheld", reason.Sentence())
	}
	return found
}

func failingChecks(r *ledger.Record) []string {
	var failing []string
	for _, row := range failure.RowsOf(r) {
		if row.Pass != nil && !*row.Pass {
			failing = append(failing, fmt.Sprintf("%s %s: %s", row.Source, row.Check, row.Message))
		}
	}
	return failing
}

func seconds(ms int64) string { return fmt.Sprintf("%.3f", float64(ms)/1000) }
