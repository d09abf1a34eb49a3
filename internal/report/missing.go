package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// Planned is the size of an experiment.
type Planned struct {
	Arms []string
	// Runs are the indices of the runs of each task, the same for every arm.
	Runs map[string][]int
	// Absent names parts of the experiment that are not among the results, such as "shard 2/3".
	Absent []string
	// Grown says in words when runs or tasks were added after results had been recorded, and
	// ArmsAdded when arms were.
	Grown     []string
	ArmsAdded []string
	// Scope says in words which tasks the results hold for, if not for all of a family.
	Scope string
	// Controls are the arms that are controls.
	Controls Controls
	// Number says which experiment on its family this is with one key; empty where nobody counted.
	Number string
	// Limits says in words how far the agents of an arm may go.
	Limits map[string]string
	// TaskLimits says the same of tasks that have limits of their own, for all arms.
	TaskLimits map[string]string
	// Declared says in what the arms differ; nil where nobody knows.
	Declared *Declared
	// Question is what was to be answered.
	Question Question
	// Changed says why the plan, or what was started, is not known: the plan is not the one that
	// the records name, or the journal is gone; empty where they are known.
	Changed string
}

// compared returns the arms that are compared: a control is not an arm of the question.
func (p *Planned) compared() []string {
	return slices.DeleteFunc(slices.Clone(p.Arms), func(arm string) bool {
		return arm == p.Controls.Shadow || arm == p.Controls.Known
	})
}

// Size is the size of an experiment, with the number of attempts recorded when it was enlarged.
type Size struct {
	Records int `json:"records"`
	Tasks   int `json:"tasks"`
	Runs    int `json:"runs"`
	Arms    int `json:"arms"`
	// AtMs is when it was enlarged; 0 is unknown.
	AtMs int64 `json:"atMs,omitempty"`
}

// Grow notes how an experiment was enlarged: the sizes that it had, the oldest first, and the one
// that it has.
func (p *Planned) Grow(sizes ...Size) {
	for i, before := range sizes[:len(sizes)-1] {
		now, after := sizes[i+1], "after "+Count(before.Records, "attempt")
		if before.Records == 0 {
			continue // nobody had seen anything
		}
		if before.AtMs > 0 {
			after = "on " + time.UnixMilli(before.AtMs).UTC().Format(time.DateTime) + " " + after
		}
		if now.Runs != before.Runs || now.Tasks != before.Tasks {
			p.Grown = append(p.Grown, fmt.Sprintf("%s from %d tasks × %d runs to %d × %d", after, before.Tasks,
				before.Runs, now.Tasks, now.Runs))
		}
		if now.Arms != before.Arms {
			p.ArmsAdded = append(p.ArmsAdded, fmt.Sprintf("%s from %d to %d", after, before.Arms, now.Arms))
		}
	}
}

// grown returns what readers must know about the size of the experiment.
func (p *Planned) grown() []string {
	if p == nil {
		return nil
	}
	var warnings []string
	if len(p.Grown) > 0 {
		warnings = append(warnings, fmt.Sprintf("the sample size was changed after results were recorded (%s): "+
			"adding runs "+
			"until something is significant inflates the false-positive rate, so p-values are multiplied by %d; "+
			"--stop-early is a valid alternative",
			strings.Join(p.Grown, "; "), stats.LooksFactor(len(p.Grown)+1)))
	}
	if len(p.ArmsAdded) > 0 {
		effect := "whether they ran side by side is seen in the times of their runs"
		q := p.Question
		if q.Arms = p.compared(); len(q.Arms) > 2 {
			effect = fmt.Sprintf("adding arms until one wins inflates the false-positive rate, so claims hold only "+
				"where all %d are compared together, with p-values corrected for %d comparisons; a pair compared "+
				"alone is corrected for them, too", len(q.Arms), q.pairs())
		}
		warnings = append(warnings, fmt.Sprintf("the number of arms was changed after results were recorded (%s): %s",
			strings.Join(p.ArmsAdded, "; "), effect))
	}
	return warnings
}

// armsWithout returns the planned arms that no record is about.
func (p *Planned) armsWithout(records []ledger.Record) []string {
	if p == nil {
		return nil
	}
	there := map[string]bool{}
	for i := range records {
		there[records[i].Arm] = true
	}
	return slices.DeleteFunc(slices.Clone(p.Arms), func(arm string) bool { return there[arm] })
}

// Unsure counts runs whose outcome is not certain.
type Unsure struct {
	A UnsureRuns `json:"a"`
	B UnsureRuns `json:"b"`
}

// UnsureRuns are those of one side.
type UnsureRuns struct {
	// Missing runs were planned and have no verdict.
	Missing int `json:"missing"`
	// Retried runs have a verdict, but only after an error in the middle of the agent's work, or
	// one that the agent may have forged.
	Retried int `json:"retried"`
	// Unplanned are tasks that only the other arm has, and UnplannedRuns its runs of them.
	Unplanned     int `json:"unplanned,omitempty"`
	UnplannedRuns int `json:"unplannedRuns,omitempty"`
	// Unverified runs are those of both kinds in which the agent may have forged an error.
	Unverified int `json:"unverified"`
}

func (u Unsure) runs() int { return u.A.runs() + u.B.runs() }

func (u UnsureRuns) runs() int { return u.Missing + u.Retried + u.UnplannedRuns }

// text names the uncertain runs; empty if there are none.
func (u Unsure) text() string {
	var parts []string
	if n := u.A.Missing + u.B.Missing; n > 0 {
		parts = append(parts, Count(n, "missing run"))
	}
	if n := u.A.Retried + u.B.Retried; n > 0 {
		parts = append(parts, Count(n, "retried run"))
	}
	if n := u.A.Unplanned + u.B.Unplanned; n > 0 {
		parts = append(parts, Count(n, "task")+" of one arm only")
	}
	text := strings.Join(parts, " and ")
	if n := u.A.Unverified + u.B.Unverified; n > 0 {
		text += fmt.Sprintf(" (%d with an unverified error)", n)
	}
	return text
}

// unsure counts the runs of a group whose outcome is not certain.
func (g *Group) unsure() UnsureRuns {
	return UnsureRuns{Missing: g.Totals.Missing, Retried: g.Totals.Retried, Unverified: g.Totals.Unverified}
}

// errorsText shows the errors of a group by class, the most frequent first.
func errorsText(errors map[string]int) string {
	total, parts := byCount(errors)
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("%s ended in errors: %s", Count(total, "attempt"), parts)
}

// byCount lists names with their counts, the most frequent first, and adds the counts up.
func byCount(errors map[string]int) (total int, list string) {
	classes := slices.SortedFunc(maps.Keys(errors), func(a, b string) int {
		return cmp.Or(errors[b]-errors[a], strings.Compare(a, b))
	})
	var parts []string
	for _, class := range classes {
		total += errors[class]
		parts = append(parts, fmt.Sprintf("%s %d", class, errors[class]))
	}
	return total, strings.Join(parts, ", ")
}
