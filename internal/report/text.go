package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/fit-eval/fit/internal/display"
)

// Text writes the report for a terminal.
func (r *Report) Text(w io.Writer, k []int) error {
	if len(r.Groups) == 0 {
		fmt.Fprintln(w, "no results")
	}
	for i := range r.Groups {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := r.Groups[i].text(w, k); err != nil {
			return err
		}
	}
	if p := r.Totals.Probes; p != nil {
		fmt.Fprintf(w, "checking the models before the first run: %s, %s\n", Count(p.Replies, "call"),
			display.FineDollars(p.KnownCostUSD))
	}
	if r.Sequential != nil {
		fmt.Fprintf(w, "note: %s\n", r.Sequential.text())
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "note: %s\n", display.Line(warning))
	}
	fmt.Fprintln(w, Validity)
	return nil
}

func (g *Group) text(w io.Writer, ks []int) error {
	g.headText(w)
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	g.tableText(table, ks)
	if err := table.Flush(); err != nil {
		return err
	}
	g.failuresText(w)
	for _, warning := range g.Warnings {
		fmt.Fprintf(w, "note: %s\n", display.Line(warning))
	}
	return nil
}

// headText writes the facts about all runs of a group together.
func (g *Group) headText(w io.Writer) {
	t := &g.Totals
	fmt.Fprintf(w, "%s: %s", display.Line(g.Name), display.Line(cmp.Or(g.Provenance.Agent, "agent not known")))
	if g.Provenance.Model != "" {
		fmt.Fprintf(w, ", %s", display.Line(g.Provenance.Model))
	}
	if g.Provenance.Network != "" {
		fmt.Fprintf(w, ", network %s", display.Line(sharedNetwork(g.Provenance.Network)))
	}
	if g.Scope != "" {
		fmt.Fprintf(w, "\n%s", display.Line(g.Scope))
	}
	for _, line := range append(FirstLines(g), g.Imported) {
		if line != "" {
			fmt.Fprintf(w, "\n%s", display.Line(line))
		}
	}
	fmt.Fprintf(w, "\n%d of %s passed", t.Passed, Count(t.Runs, "run"))
	if t.Missing > 0 {
		fmt.Fprintf(w, ", %d of %d missing", t.Missing, t.Planned)
	}
	if t.Disqualified > 0 {
		fmt.Fprintf(w, ", %d disqualified", t.Disqualified)
	}
	if t.Retried > 0 {
		fmt.Fprintf(w, ", %d retried", t.Retried)
	}
	fmt.Fprintf(w, " · %s%s\n", t.spent(), t.mediansText(g.Imported != ""))
	if g.PassRate != nil {
		tasks := Count(len(g.Tasks), "task")
		if n := g.tasksMeasured(); n < len(g.Tasks) {
			tasks = fmt.Sprintf("%d of %s", n, tasks)
		}
		fmt.Fprintf(w, "pass rate over %s: %s\n", tasks, percent(g.PassRate))
	}
	for _, k := range slices.Sorted(maps.Keys(g.AtLeastK)) {
		if at := g.AtLeastK[k]; at.Defined() {
			fmt.Fprintf(w, "tasks with at least %s: %s\n", Count(at.K, "passed run"), percent(&at.Interval))
		}
	}
	lines := slices.Concat(flowLines(g), g.boundsLines(),
		[]string{errorsText(g.Errors), limitsText(g.Limits), g.Load.text()})
	for _, text := range lines {
		if text != "" {
			fmt.Fprintln(w, display.Line(text))
		}
	}
	for i := range g.Causes {
		fmt.Fprintln(w, strings.Join(g.Causes[i].Lines(), "\n"))
	}
	for i := range g.Cheats {
		fmt.Fprintln(w, strings.Join(g.Cheats[i].lines(), "\n"))
	}
	for _, line := range append(g.treatmentLines(), g.Judge.lines()...) {
		fmt.Fprintln(w, display.Line(line))
	}
}

// treatmentLines say in what the arm differs, what its models were given, and why nothing is
// claimed about it.
func (g *Group) treatmentLines() []string {
	var lines []string
	if len(g.Differs) > 0 {
		lines = append(lines, "differs from the baseline in: "+strings.Join(g.Differs, ", "))
	}
	if g.Treatment != nil {
		lines = append(lines, g.Treatment.Lines...)
	}
	for _, reason := range g.Withheld {
		lines = append(lines, "claims and gates are withheld: "+reason.Sentence())
	}
	return lines
}

// scoresSayMore reports whether scores are more than pass rates.
func (g *Group) scoresSayMore() bool {
	return slices.ContainsFunc(g.Tasks, func(t Task) bool {
		return t.MeanScore != nil && t.Rate != nil && *t.MeanScore != t.Rate.Est
	})
}

// WorthShowing returns those of ks that are at least least and at most the highest number of runs
// of a task. From 2 on they say more than the pass rate does.
func (r *Report) WorthShowing(ks []int, least int) []int {
	most := 0
	for i := range r.Groups {
		for j := range r.Groups[i].Tasks {
			most = max(most, r.Groups[i].Tasks[j].N)
		}
	}
	return slices.DeleteFunc(slices.Clone(ks), func(k int) bool { return k < least || k > most })
}

// tableText writes one row for each task and one for all of them.
func (g *Group) tableText(w io.Writer, ks []int) {
	scored := g.scoresSayMore()
	row := func(first string, atK func(k string) string, score func() string) {
		fmt.Fprint(w, first)
		for _, k := range ks {
			fmt.Fprint(w, "\t", atK(strconv.Itoa(k)))
		}
		if scored {
			fmt.Fprint(w, "\t", score())
		}
		fmt.Fprintln(w)
	}
	row("task\tn\tc\tpass rate", func(k string) string { return "pass@" + k }, func() string { return "score" })
	for i := range g.Tasks {
		one := &g.Tasks[i]
		row(fmt.Sprintf("%s\t%d\t%d\t%s", display.Line(one.TaskID), one.N, one.C, percent(one.Rate)), one.atKText,
			func() string { return scoreCells(one, nil)[0] })
	}
	if g.PassRate != nil {
		all := func(k string) string { return atKText(g.PassAtK[k]) }
		row(fmt.Sprintf("all tasks\t%d\t%d\t%s", g.Totals.Runs, g.Totals.Passed, percent(g.PassRate)), all,
			func() string { return intervalText(g.MeanScore) })
	}
}
