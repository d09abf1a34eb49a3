package report

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
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
	if r.Sequential != nil {
		fmt.Fprintf(w, "note: %s\n", r.Sequential.text())
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "note: %s\n", harmless(warning))
	}
	return nil
}

func (g *Group) text(w io.Writer, ks []int) error {
	t := &g.Totals
	fmt.Fprintf(w, "%s: %s", harmless(g.Name), harmless(g.Provenance.Agent))
	if g.Provenance.Model != "" {
		fmt.Fprintf(w, ", %s", harmless(g.Provenance.Model))
	}
	fmt.Fprintf(w, "\n%d of %d runs passed", t.Passed, t.Runs)
	if t.Missing > 0 {
		fmt.Fprintf(w, ", %d of %d missing", t.Missing, t.Planned)
	}
	fmt.Fprintf(w, " · %s · median %s, %d turns\n", t.spent(), duration(t.MedianDurationMs), t.MedianTurns)
	if g.PassRate != nil {
		fmt.Fprintf(w, "pass rate over %s: %s\n", Count(len(g.Tasks), "task"), percent(g.PassRate))
	}
	if g.Bounds != nil {
		fmt.Fprintf(w, "whatever the missing runs would have been: %.1f to %.1f %%\n", 100*g.Bounds.Worst, 100*g.Bounds.Best)
	}
	for _, line := range g.Judge.lines() {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprint(table, "task\tn\tc\tpass rate")
	for _, k := range ks {
		fmt.Fprintf(table, "\tpass@%d", k)
	}
	if g.MeanScore != nil {
		fmt.Fprint(table, "\tscore")
	}
	fmt.Fprintln(table)
	for i := range g.Tasks {
		one := &g.Tasks[i]
		fmt.Fprintf(table, "%s\t%d\t%d\t%s", harmless(one.TaskID), one.N, one.C, percent(one.Rate))
		for _, k := range ks {
			fmt.Fprintf(table, "\t%s", one.atKText(strconv.Itoa(k)))
		}
		if g.MeanScore != nil {
			fmt.Fprintf(table, "\t%s", scoreCells(one, nil)[0])
		}
		fmt.Fprintln(table)
	}
	if g.PassRate != nil {
		fmt.Fprintf(table, "all tasks\t%d\t%d\t%s", t.Runs, t.Passed, percent(g.PassRate))
		for _, k := range ks {
			fmt.Fprintf(table, "\t%s", atKText(g.PassAtK[strconv.Itoa(k)]))
		}
		if g.MeanScore != nil {
			fmt.Fprintf(table, "\t%s", intervalText(g.MeanScore))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, warning := range g.Warnings {
		fmt.Fprintf(w, "note: %s\n", harmless(warning))
	}
	return nil
}
