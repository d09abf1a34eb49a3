// Package skilltest makes the part of a report that is about a skill: the decision over its test
// cases, each assertion with and without the skill, and what the skill costs.
//
//	answer, err := skilltest.Read(ctx, dir, skilltest.Options{…})
//	err = answer.Text(os.Stdout)
package skilltest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/forecast"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// input is what an answer is made of.
type input struct {
	Test *Test
	// Without and With are the arms: the baseline, and the one with the skill.
	Without, With *report.Group
	Comparison    *report.Comparison
	Records       []ledger.Record
}

// The readings of an assertion.
const (
	inBoth      = "both"    // it passes in both arms and says nothing
	InNeither   = "neither" // it fails in both arms: broken, or too hard
	OnlyWith    = "with"    // here the skill helps
	onlyWithout = "without" // here it harms
	flaky       = "flaky"   // it passes in some runs of an arm and fails in others
	unknown     = "unknown" // an arm has no run with a verdict
)

// Assertion is one check of one case.
type Assertion struct {
	Case string `json:"case"`
	Name string `json:"name"` // of the row
	Text string `json:"text"`
	// Shown says on what a sentence was judged, the outputs or the trace; empty: code decides.
	Shown string `json:"shown,omitempty"`
	// Without and With count the runs.
	Without Count  `json:"without"`
	With    Count  `json:"with"`
	Reading string `json:"reading"`
}

// Count is how many of some runs passed.
type Count struct {
	Passed int `json:"passed"`
	Runs   int `json:"runs"`
}

func (c *Count) add(passed bool) {
	c.Runs++
	if passed {
		c.Passed++
	}
}

// Needed is what a decision would take.
type Needed struct {
	// Effect is the difference of pass rates that is to be found.
	Effect  float64  `json:"effect"`
	Cases   int      `json:"cases"`
	Runs    int      `json:"runs"`
	CostUSD *float64 `json:"costUsd,omitempty"`
}

// Silent counts the runs of cases in which the skill should stay unopened.
type Silent struct {
	Cases  int `json:"cases"`
	Runs   int `json:"runs"`
	Opened int `json:"opened"`
	// Unknown counts further runs of which nobody knows whether they opened it.
	Unknown int `json:"unknown,omitempty"`
}

// Answer is what a test of a skill comes to.
type Answer struct {
	Version    int                `json:"version"`
	Skill      string             `json:"skill"`
	Comparison *report.Comparison `json:"comparison"`
	Assertions []Assertion        `json:"assertions"`
	Silent     *Silent            `json:"silent,omitempty"`
	// DescriptionTokens are added to every call, BodyTokens to those after the skill was opened.
	DescriptionTokens int `json:"descriptionTokens"`
	BodyTokens        int `json:"bodyTokens"`
	// Unjudged counts the verdicts that are missing, one for each run and sentence of its case, and
	// UnjudgedCases names the cases that were not run because they have nothing else.
	Unjudged      int      `json:"unjudged,omitempty"`
	UnjudgedCases []string `json:"unjudgedCases,omitempty"`
	Leaks         []Leak   `json:"leaks,omitempty"`
	// Feedback is what a person said about cases, by their ids.
	Feedback map[string]string `json:"feedback,omitempty"`
	// Needed is set where nothing was decided.
	Needed *Needed `json:"needed,omitempty"`
	// Summaries are the means over the runs of each arm.
	Summaries map[string]Summary `json:"summaries"`

	cases   []Case
	records []ledger.Record
	texts   map[[2]string]string // of assertions, by case and row
}

// build makes the answer.
func build(in input) *Answer {
	a := &Answer{
		Version:           1,
		Skill:             in.Test.Skill,
		Comparison:        in.Comparison,
		Assertions:        []Assertion{},
		DescriptionTokens: in.Test.DescriptionTokens,
		BodyTokens:        in.Test.BodyTokens,
		UnjudgedCases:     in.Test.LeftOut,
		Leaks:             in.Test.Leaks,
		Summaries:         summarise(in.Records),
		cases:             in.Test.Cases,
		records:           in.Records,
		texts:             map[[2]string]string{},
	}
	with := in.With.Provenance.Arm
	byRow := map[[2]string]*Assertion{}
	var order [][2]string
	for i := range in.Records {
		r := &in.Records[i]
		c := in.Test.find(r.TaskID)
		for _, row := range rowsOf(r) {
			key := [2]string{r.TaskID, row.Test}
			if byRow[key] == nil {
				text := cmp.Or(row.Sentence, c.Labels[row.Test], row.Test)
				a.texts[key] = text
				byRow[key] = &Assertion{
					Case:  r.TaskID,
					Name:  row.Test,
					Text:  text,
					Shown: row.Shown,
				}
				order = append(order, key)
			}
			if r.Arm == with {
				byRow[key].With.add(row.Pass)
			} else {
				byRow[key].Without.add(row.Pass)
			}
		}
		a.Unjudged += unjudged(r, len(c.Sentences))
		a.countSilent(r, c.Silent && r.Arm == with)
	}
	slices.SortStableFunc(order, func(x, y [2]string) int { return naturally(x[0], y[0]) })
	for _, key := range order {
		one := byRow[key]
		one.Reading = readingOf(one.With, one.Without)
		a.Assertions = append(a.Assertions, *one)
	}
	for i := range in.Test.Cases {
		if in.Test.Cases[i].Silent && a.Silent != nil {
			a.Silent.Cases++
		}
	}
	a.need(&in)
	return a
}

// unjudged counts the sentences of a run that nobody judged. A run that failed has none to judge.
func unjudged(r *ledger.Record, sentences int) int {
	if r.Verdict == ledger.Error && r.ErrorClass != ledger.ErrorJudge {
		return 0
	}
	for _, row := range readRows(r) {
		if row.Shown != "" {
			sentences--
		}
	}
	return sentences
}

// rowsOf returns the decided rows of a run: its checks and its sentences. A run without a verdict
// has none.
func rowsOf(r *ledger.Record) []results.SentenceRow {
	if r.Verdict == ledger.Error {
		return nil
	}
	return readRows(r)
}

func readRows(r *ledger.Record) []results.SentenceRow {
	if r.HiddenTests == nil {
		return nil
	}
	var rows []results.SentenceRow
	for _, raw := range r.HiddenTests.Details {
		var row results.SentenceRow
		if json.Unmarshal(raw, &row) == nil && row.Test != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// countSilent counts a run of a case in which the skill should stay unopened.
func (a *Answer) countSilent(r *ledger.Record, silent bool) {
	if !silent {
		return
	}
	if a.Silent == nil {
		a.Silent = &Silent{}
	}
	switch opened := opened(r, a.Skill); {
	case opened == nil:
		a.Silent.Unknown++
	case *opened:
		a.Silent.Opened++
		fallthrough
	default:
		a.Silent.Runs++
	}
}

// opened reports whether a run opened the skill; nil is unknown.
func opened(r *ledger.Record, name string) *bool {
	if r.Treatment == nil {
		return nil
	}
	for _, p := range r.Treatment.Pieces {
		if p.Kind == ledger.PieceSkill && p.Name == name {
			return p.Opened
		}
	}
	return nil
}

func readingOf(with, without Count) string {
	always := func(c Count) bool { return c.Passed == c.Runs }
	never := func(c Count) bool { return c.Passed == 0 }
	switch {
	case with.Runs == 0 || without.Runs == 0:
		return unknown
	case always(with) && always(without):
		return inBoth
	case never(with) && never(without):
		return InNeither
	case always(with) && never(without):
		return OnlyWith
	case never(with) && always(without):
		return onlyWithout
	}
	return flaky
}

// naturally orders ids that are numbers by value.
func naturally(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b))*boolInt(isNumber(a) && isNumber(b)), cmp.Compare(a, b))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func isNumber(text string) bool {
	for _, r := range text {
		if r < '0' || r > '9' {
			return false
		}
	}
	return text != ""
}

// defaultEffect is the difference that is planned for where none was observed.
const defaultEffect = 0.2

// need says what a decision would take, where there is none.
func (a *Answer) need(in *input) {
	claim := in.Comparison.Decision.Claim
	if claim == stats.Improved || claim == stats.Regressed || claim == stats.Equivalent {
		return
	}
	effect := in.Comparison.Decision.Effect
	if effect < 0 {
		effect = -effect
	}
	if effect == 0 || effect > 1 {
		effect = defaultEffect
	}
	f := forecast.Forecast{Effect: effect}
	needed := &Needed{Effect: effect, Cases: stats.MinClaimTasks, Runs: in.Test.Runs}
	if f.UsePilot(in.Without, in.With) == nil && f.Compute(forecast.Config{Runs: in.Test.Runs}) == nil {
		needed.Cases, needed.CostUSD = max(f.TasksNeeded, stats.MinClaimTasks), f.CostUSD
	}
	a.Needed = needed
}

// sentence says what a decision would take.
func (n *Needed) sentence(cases int) string {
	text := fmt.Sprintf("what a decision takes: about %d cases with %s each, to find a difference of %.0f percentage "+
		"points", n.Cases, report.Count(n.Runs, "run"), 100*n.Effect)
	if cases < stats.MinClaimTasks {
		text = fmt.Sprintf("%s cannot show a difference, however large it is: it could be chance (at least %d are "+
			"needed); ", report.Count(cases, "case"), stats.MinClaimTasks) + text
	}
	return text
}
