package skilltest

import (
	"bytes"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/ledger"
)

// CaseRuns is a test case with all its runs.
type CaseRuns struct {
	Case
	Feedback   string      `json:"feedback,omitempty"`
	Assertions []Assertion `json:"assertions"`
	Runs       []RunRows   `json:"runs"`
}

// RunRows is a run of a case with what was found about each assertion.
type RunRows struct {
	Arm     string `json:"arm"`
	Run     int    `json:"run"`
	Verdict string `json:"verdict"`
	Rows    []Row  `json:"rows"`
}

// Row is what was found about one assertion in one run.
type Row struct {
	Text string `json:"text"`
	// Pass is nil where nobody decided.
	Pass *bool `json:"pass"`
	// Shown says on what a sentence is judged, and By who decided; empty: code decides.
	Shown string `json:"shown,omitempty"`
	By    string `json:"by,omitempty"`
	// Evidence lists the citations that hold.
	Evidence []string `json:"evidence,omitempty"`
	Why      string   `json:"why,omitempty"`
}

// ByCase returns the cases with their runs, the baseline first.
func (a *Answer) ByCase() []CaseRuns {
	all := make([]CaseRuns, 0, len(a.cases))
	for i := range a.cases {
		c := CaseRuns{
			Case:       a.cases[i],
			Feedback:   a.Feedback[a.cases[i].ID],
			Assertions: []Assertion{},
			Runs:       []RunRows{},
		}
		for k := range a.Assertions {
			if a.Assertions[k].Case == c.ID {
				c.Assertions = append(c.Assertions, a.Assertions[k])
			}
		}
		for _, arm := range []string{a.Comparison.A.Arm, a.Comparison.B.Arm} {
			for k := range a.records {
				if r := &a.records[k]; r.TaskID == c.ID && r.Arm == arm {
					c.Runs = append(c.Runs, RunRows{
						Arm:     arm,
						Run:     r.RunIndex,
						Verdict: r.Verdict,
						Rows:    a.rows(r, &c.Case),
					})
				}
			}
		}
		slices.SortStableFunc(c.Runs, func(x, y RunRows) int { return x.Run - y.Run })
		all = append(all, c)
	}
	return all
}

// rows returns the rows of a run, and after them the sentences that nobody decided.
func (a *Answer) rows(r *ledger.Record, c *Case) []Row {
	rows, decided := []Row{}, map[string]bool{}
	for _, row := range rowsOf(r) {
		decided[row.Test] = true
		rows = append(rows, Row{
			Text:     a.texts[[2]string{r.TaskID, row.Test}],
			Pass:     new(row.Pass),
			Shown:    row.Shown,
			By:       row.By,
			Evidence: row.Evidence,
			Why:      row.Why(),
		})
	}
	for i, sentence := range c.Sentences {
		if !decided[results.SentenceName(i)] {
			rows = append(rows, Row{Text: sentence.Text, Shown: sentence.Shown})
		}
	}
	return rows
}

// Facts returns what a person reads below the table of assertions.
func (a *Answer) Facts() []string {
	var text bytes.Buffer
	a.facts(&text)
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}
