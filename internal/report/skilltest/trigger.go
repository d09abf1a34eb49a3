package skilltest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// triggerFile is the file of a run directory that says which queries were put to which skill.
const triggerFile = "trigger.json"

// The parts of the queries: one is for changing the description by, the other for choosing.
const (
	splitTrain      = "train"
	splitValidation = "validation"
)

// Trigger is a test of when a skill is opened.
type Trigger struct {
	Version int     `json:"version"`
	Skill   string  `json:"skill"`
	Digest  string  `json:"digest"` // of the skill, and of its queries
	Against string  `json:"against,omitempty"`
	Queries []Query `json:"queries"`
}

// Query is one query.
type Query struct {
	ID     string `json:"id"` // of its task
	Text   string `json:"query"`
	Should bool   `json:"shouldTrigger"`
}

// Split is the part that the query belongs to. It depends on the text alone, so that it stays where
// it is whatever is added.
func (q *Query) Split() string {
	sum := sha256.Sum256([]byte(q.Text))
	if (int(sum[0])<<8|int(sum[1]))%5 < 3 {
		return splitTrain
	}
	return splitValidation
}

// Same reports whether two tests put the same queries to the same skill.
func (t *Trigger) Same(other *Trigger) bool {
	return t.Digest == other.Digest && t.Against == other.Against
}

// ReadTrigger reads what a run directory is a test of.
func ReadTrigger(dir string) (*Trigger, error) {
	return readStored[Trigger](dir, triggerFile, "trigger")
}

// Write writes the file into a run directory.
func (t *Trigger) Write(dir string) error { return writeJSON(filepath.Join(dir, triggerFile), t) }

// Fired is how often a query opened the skill.
type Fired struct {
	Query
	Split string `json:"split"`
	// With counts the runs that opened the skill, Former those that opened the former version.
	With   Count  `json:"with"`
	Former *Count `json:"former,omitempty"`
	// Missing counts the runs with the skill that are not known to have opened it or not.
	Missing int `json:"missing,omitempty"`
}

// Right reports whether the skill was opened in more than half of the runs where it should be, or
// in less than half where it should not.
func (f *Fired) Right() bool {
	if f.Should {
		return 2*f.With.Passed > f.With.Runs
	}
	return 2*f.With.Passed < f.With.Runs
}

// Rates are the rates of one part of the queries; nil where it has none.
type Rates struct {
	// Recall is how often the skill is opened where it should be, FalseFire where it should not.
	Recall    *stats.Interval `json:"recall"`
	FalseFire *stats.Interval `json:"falseFire"`
	Positive  int             `json:"positive"`
	Negative  int             `json:"negative"`
	// RecallWithin and FalseFireWithin bound the rates, whatever happened in missing runs; nil if
	// none is missing.
	RecallWithin    *[2]float64 `json:"recallWithin,omitempty"`
	FalseFireWithin *[2]float64 `json:"falseFireWithin,omitempty"`
}

// TriggerAnswer is what a test of triggers comes to.
type TriggerAnswer struct {
	Version int     `json:"version"`
	Skill   string  `json:"skill"`
	Queries []Fired `json:"queries"`
	// Rates are those of the parts, and of all.
	Rates map[string]Rates `json:"rates"`
	// Missing counts the planned runs that are not known to have opened the skill or not.
	Missing int `json:"missing"`
	// Comparison is that with the former version: in how many runs each did what it should.
	Comparison *report.Comparison `json:"comparison,omitempty"`
}

// ReadTriggered makes the answer of a run directory.
func ReadTriggered(ctx context.Context, dir string, options Options) (*TriggerAnswer, error) {
	test, err := ReadTrigger(dir)
	if err != nil {
		return nil, err
	}
	found, err := results.Load([]string{dir}, false, nil)
	if err != nil {
		return nil, err
	}
	found.Allow = options.Allow
	a := &TriggerAnswer{Version: 1, Skill: test.Skill, Rates: map[string]Rates{}}
	at := map[string]int{}
	for i, q := range test.Queries {
		at[q.ID] = i
		one := Fired{Query: q, Split: q.Split()}
		if test.Against != "" {
			one.Former = &Count{}
		}
		a.Queries = append(a.Queries, one)
	}
	for _, r := range ledger.Last(found.Records) {
		k, known := at[r.TaskID]
		if !known || r.Verdict == ledger.Error {
			continue
		}
		count := &a.Queries[k].With
		if r.Arm == ArmFormer && a.Queries[k].Former != nil {
			count = a.Queries[k].Former
		}
		count.add((r.Verdict == ledger.Pass) == a.Queries[k].Should)
	}
	a.countMissing(found.Planned)
	for _, split := range []string{"all", splitTrain, splitValidation} {
		if a.Rates[split], err = a.rates(split); err != nil {
			return nil, err
		}
	}
	if test.Against != "" {
		_, _, a.Comparison, err = compareArms(ctx, found, dir, options)
	}
	return a, err
}

// countMissing counts the planned runs that decided nothing.
func (a *TriggerAnswer) countMissing(planned *report.Planned) {
	if planned == nil {
		return
	}
	for i := range a.Queries {
		q := &a.Queries[i]
		runs := len(planned.Runs[q.ID])
		q.Missing = max(runs-q.With.Runs, 0)
		a.Missing += q.Missing
		if q.Former != nil {
			a.Missing += max(runs-q.Former.Runs, 0)
		}
	}
}

// rates computes the rates of a part.
func (a *TriggerAnswer) rates(split string) (Rates, error) {
	queries := map[bool][]*Fired{}
	for i := range a.Queries {
		if q := &a.Queries[i]; split == "all" || q.Split == split {
			queries[q.Should] = append(queries[q.Should], q)
		}
	}
	rates := Rates{Positive: len(queries[true]), Negative: len(queries[false])}
	var err error
	if rates.Recall, rates.RecallWithin, err = rateOf(queries[true]); err != nil {
		return rates, err
	}
	rates.FalseFire, rates.FalseFireWithin, err = rateOf(queries[false])
	return rates, err
}

// rateOf computes how often queries opened the skill, and within which bounds that is, if runs are
// missing. Runs of one query are not independent.
func rateOf(queries []*Fired) (rate *stats.Interval, within *[2]float64, err error) {
	var outcomes [][]float64
	var low, high []float64
	missing := 0
	for _, q := range queries {
		all := float64(max(q.With.Runs+q.Missing, 1))
		low, high = append(low, float64(q.With.Passed)/all), append(high, float64(q.With.Passed+q.Missing)/all)
		missing += q.Missing
		if q.With.Runs == 0 {
			continue
		}
		one := make([]float64, q.With.Runs)
		for k := range q.With.Passed {
			one[k] = 1
		}
		outcomes = append(outcomes, one)
	}
	if missing > 0 {
		within = &[2]float64{stats.Mean(low), stats.Mean(high)}
	}
	if len(outcomes) == 0 {
		return nil, within, nil
	}
	interval, err := stats.PassRate(outcomes, 1-stats.DefaultAlpha)
	return &interval, within, err
}

// Text writes the answer for a terminal.
func (a *TriggerAnswer) Text(w io.Writer) error {
	if a.Comparison != nil {
		if err := a.Comparison.Text(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "query of %s\tpart\tshould open\topened", display.Line(a.Skill))
	if a.Comparison != nil {
		fmt.Fprint(table, "\tformer")
	}
	fmt.Fprintln(table, "\t")
	right := 0
	for i := range a.Queries {
		q := &a.Queries[i]
		should, mark := "no", ""
		if q.Should {
			should = "yes"
		}
		switch {
		case q.With.Runs == 0:
			mark = "unknown"
		case q.Right():
			right++
		default:
			mark = "wrong"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s", display.CutBytes(display.Line(q.Text), shownText), q.Split, should,
			q.With)
		if q.Former != nil {
			fmt.Fprintf(table, "\t%s", *q.Former)
		}
		fmt.Fprintf(table, "\t%s\n", mark)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	table = tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "part\tqueries\trecall\tfalse-fire rate")
	for _, split := range []string{splitTrain, splitValidation, "all"} {
		r := a.Rates[split]
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", split, r.Positive+r.Negative, percent(r.Recall, r.Positive),
			percent(r.FalseFire, r.Negative))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d of %s are decided as they should be, by more than half of their runs; "+
		"95%% confidence intervals\n",
		right, report.Count(len(a.Queries), "query"))
	if a.Missing > 0 {
		fmt.Fprintf(w, "unknown: %s, in which it is unknown whether the skill was opened%s\n",
			report.Count(a.Missing, "run"), a.Rates["all"].within())
	}
	return nil
}

// within says in words what the rates can be, whatever happened in missing runs.
func (r Rates) within() string {
	text := ""
	for _, one := range []struct {
		name   string
		bounds *[2]float64
	}{{"recall", r.RecallWithin}, {"the false-fire rate", r.FalseFireWithin}} {
		if one.bounds != nil {
			text += fmt.Sprintf("; with them %s is between %.0f%% and %.0f%%", one.name, 100*one.bounds[0],
				100*one.bounds[1])
		}
	}
	return text
}

func percent(i *stats.Interval, queries int) string {
	switch {
	case queries == 0:
		return "no queries"
	case i == nil:
		return "unknown"
	}
	return fmt.Sprintf("%.0f%% [%.0f, %.0f]", 100*i.Est, 100*i.Lo, 100*i.Hi)
}
