package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/stats"
)

// Text writes the comparison for a terminal: the sentence first.
func (c *Comparison) Text(w io.Writer) error {
	if c.Imported != "" {
		fmt.Fprintln(w, display.Line(c.Imported))
	}
	fmt.Fprintln(w, c.Decision.Sentence)
	for _, line := range c.FirstLines {
		fmt.Fprintln(w, display.Line(line))
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "task\t%s\t%s\tdifference\tp (Holm)\n", display.Line(c.armA()), display.Line(c.armB()))
	for _, t := range c.Tasks {
		fmt.Fprintf(
			table,
			"%s\t%s\t%s\t%s\t%s\n",
			display.Line(t.TaskID),
			meanText(t.MeanA, t.NA),
			meanText(t.MeanB, t.NB),
			deltaText(t),
			pText(t.PAdj),
		)
	}
	// Its last cell is in no column, so that it does not widen that of the differences.
	fmt.Fprintf(table, "all tasks\t%s\t%s\t%s\n", BoundedPercent(c.RateA, c.BoundsA),
		BoundedPercent(c.RateB, c.BoundsB), effectText(&c.Decision))
	if err := table.Flush(); err != nil {
		return err
	}
	writeFacts(w, c.facts(), c.Warnings)
	return nil
}

// writeFacts writes the lines under the tables.
func writeFacts(w io.Writer, facts, warnings []string) {
	fmt.Fprintln(w)
	for _, fact := range facts {
		fmt.Fprintln(w, display.Line(fact))
	}
	for _, warning := range warnings {
		fmt.Fprintf(w, "note: %s\n", display.Line(warning))
	}
	fmt.Fprintln(w, Validity)
}

// Validity is the line of every report that leads to the page on what a claim rests on.
const Validity = "what a claim rests on, and what remains: " + ValidityPage

// ValidityPage is where documents that programs read say the same.
const ValidityPage = "docs/validity.md"

// Markdown writes the comparison as Markdown.
func (c *Comparison) Markdown(w io.Writer) error {
	m := &markdown{}
	m.line("## %s against %s\n", cell(c.armB()), cell(c.armA()))
	if c.Imported != "" {
		m.line("%s\n", cell(c.Imported))
	}
	m.line("**%s**\n", cell(c.Decision.Sentence))
	m.paragraphs(c.FirstLines)
	m.header("taskId", cell(c.armA()), cell(c.armB()), "difference", "p (Holm)")
	for _, t := range c.Tasks {
		m.row(cell(t.TaskID), meanText(t.MeanA, t.NA), meanText(t.MeanB, t.NB), deltaText(t), pText(t.PAdj))
	}
	m.row("**all tasks**", BoundedPercent(c.RateA, c.BoundsA), BoundedPercent(c.RateB, c.BoundsB),
		effectText(&c.Decision), "")
	m.facts(c.facts())
	return m.end(w, c.Warnings)
}

// facts returns the lines under the table.
func (c *Comparison) facts() []string {
	d := &c.Decision
	facts := []string{fmt.Sprintf("claim: %s · p = %.4g (%s) · %s, %s", d.Claim, d.PAdj,
		d.MethodText(), Count(d.NTasks, "task"), Count(d.NRuns, "run"))}
	facts = append(facts, "minimum detectable difference (80% power, variance uncertain): "+Detectable(d.MDE))
	facts = append(facts, c.flow...)
	if answer := d.NonInferior; answer != nil {
		facts = append(facts, answer.Text())
	}
	for _, obstacle := range d.Obstacles {
		facts = append(facts, "no claim because: "+obstacle)
	}
	if len(c.Differs) > 0 {
		facts = append(facts, fmt.Sprintf("%s differs from %s in: %s", c.armB(), c.armA(),
			strings.Join(c.Differs, ", ")))
	}
	if text := RequestsText(c.Requests); text != "" {
		facts = append(facts, text)
	}
	facts = append(facts, c.Treatment.Lines...)
	facts = append(facts, c.unsureFacts()...)
	for _, ratio := range []struct {
		name string
		r    *Ratio
	}{{"cost", c.Cost}, {"agent time", c.Time}, {"turns", c.Turns}} {
		if ratio.r == nil {
			continue
		}
		facts = append(facts, ratio.name+": "+ratio.r.Text())
	}
	for _, side := range []struct {
		name  string
		judge *JudgeReport
	}{{c.armA(), c.JudgeA}, {c.armB(), c.JudgeB}} {
		for _, line := range side.judge.lines() {
			facts = append(facts, side.name+": "+line)
		}
	}
	if fact := c.Machines.Fact(); fact != "" {
		facts = append(facts, fact)
	}
	return append(facts, fmt.Sprintf("spent: %s and %s", display.Cost(c.CostA), display.Cost(c.CostB)))
}

// unsureFacts say what is missing, why, and what it could change.
func (c *Comparison) unsureFacts() []string {
	var facts []string
	for _, side := range []struct {
		name   string
		errors map[string]int
		limits map[string]int
	}{{c.armA(), c.ErrorsA, c.LimitsA}, {c.armB(), c.ErrorsB, c.LimitsB}} {
		for _, text := range []string{errorsText(side.errors), limitsText(side.limits)} {
			if text != "" {
				facts = append(facts, side.name+": "+text)
			}
		}
	}
	for _, r := range []*Retries{c.Retries, c.FailedCalls} {
		if text := r.Text(); text != "" {
			facts = append(facts, text)
		}
	}
	if b := c.Bounds; b != nil {
		facts = append(facts, fmt.Sprintf("worst/best case over %s: difference %+.1f to %+.1f points",
			Count(c.Unsure.runs(), "uncertain run"), 100*b.Worst, 100*b.Best))
	}
	return facts
}

// Detectable formats a minimum detectable difference of rates.
func Detectable(difference float64) string {
	if difference > 1 {
		return "none (experiment too small)"
	}
	return fmt.Sprintf("%.1f percentage points", 100*difference)
}

// Text shows a ratio, and what it does not know.
func (r *Ratio) Text() string {
	text := r.All.text()
	if common := r.CommonlySolved; common != nil {
		text += fmt.Sprintf(", on the %s that both solved %s", Count(common.NTasks, "task"), common.text())
	}
	return text + censoredText(r.Censored)
}

func (f *Factor) text() string {
	if f.Lo == nil || f.Hi == nil {
		return fmt.Sprintf("×%.2f", f.Est)
	}
	return fmt.Sprintf("×%.2f [%.2f, %.2f]", f.Est, *f.Lo, *f.Hi)
}

func meanText(mean float64, n int) string {
	if n == 0 {
		return dash
	}
	return fmt.Sprintf("%.0f%% (n=%d)", 100*mean, n)
}

func deltaText(t TaskDelta) string {
	if t.NA == 0 || t.NB == 0 {
		return dash
	}
	return fmt.Sprintf("%+.0f", 100*t.Delta)
}

func pText(p *float64) string {
	if p == nil {
		return dash
	}
	return fmt.Sprintf("%.3f", *p)
}

func effectText(d *stats.Decision) string {
	text := fmt.Sprintf("%+.1f", 100*d.Effect)
	if d.Lo != nil && d.Hi != nil {
		text += fmt.Sprintf(" [%+.1f, %+.1f]", 100**d.Lo, 100**d.Hi)
	}
	if d.NUnpaired > 0 { // the rates beside it are of more
		text += fmt.Sprintf(" (%s of both)", Count(d.NTasks, "task"))
	}
	return text
}

// armA and armB name the arms in tables: by their directory where they have the same name.
func (c *Comparison) armA() string { return armName(c.A.Arm, c.B.Arm, c.nameA) }
func (c *Comparison) armB() string { return armName(c.B.Arm, c.A.Arm, c.nameB) }

func armName(arm, other, full string) string {
	if arm == other {
		return cmp.Or(full, arm)
	}
	return arm
}
