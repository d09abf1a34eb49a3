package versus

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/report"
)

const dash = "—"

// Robot writes the report as one JSON document for programs. Terminal control characters are
// escaped.
func (r *EvalReport) Robot(w io.Writer) error { return robot(w, r) }

// Robot writes the comparison as one JSON document for programs.
func (c *Comparison) Robot(w io.Writer) error { return robot(w, c) }

func robot(w io.Writer, document any) error { return jsonenc.Write(terminal{w}, document) }

// terminal escapes terminal control characters in the JSON that is written.
type terminal struct{ io.Writer }

func (t terminal) Write(document []byte) (int, error) {
	if _, err := t.Writer.Write(display.JSON(document)); err != nil {
		return 0, err
	}
	return len(document), nil
}

// Text writes the report for a terminal.
func (r *EvalReport) Text(w io.Writer) error { return write(w, r.sections(), textTable, display.Line) }

// Text writes the comparison for a terminal.
func (c *Comparison) Text(w io.Writer) error { return write(w, c.sections(), textTable, display.Line) }

// section is a part of a report: a table, or lines.
type section struct {
	title string
	head  []string
	rows  [][]string
	lines []string
}

// sections returns the parts in the order in which people read them: how well each arm did, what
// may be claimed, why runs failed, when milestones were reached, and the cost.
func (r *EvalReport) sections() []section {
	first := append([]string{r.Statement}, r.first...)
	return append(commonSections(first, r.PerAgent, r.Pairs), r.judgeSection(), r.agentsSection(),
		section{title: "Notes", lines: r.Warnings}, section{lines: []string{report.Validity}})
}

func (c *Comparison) sections() []section {
	first := append([]string{c.Statement}, c.first...)
	return append(commonSections(first, c.PerAgent, c.Pairs), section{title: "Notes", lines: c.Warnings},
		section{lines: []string{report.Validity}})
}

func commonSections(first []string, agents []AgentSummary, pairs []Pair) []section {
	sections := []section{{lines: first}, agentSection(agents)}
	sections = append(sections, pairSections(pairs)...)
	return append(sections, treatmentSection(agents, pairs), errorSection(agents), milestoneSection(pairs),
		promptSection(pairs))
}

// treatmentSection says what the models were given, and in what arms differ.
func treatmentSection(agents []AgentSummary, pairs []Pair) section {
	s := section{title: "Treatment"}
	for i := range agents {
		a := &agents[i]
		if len(a.Differs) > 0 {
			s.lines = append(s.lines, fmt.Sprintf("%s differs from the first in: %s", a.Arm,
				strings.Join(a.Differs, ", ")))
		}
		if len(pairs) == 1 {
			continue // its lines have both arms
		}
		for _, line := range a.Treatment.Lines {
			s.lines = append(s.lines, a.Arm+": "+strings.TrimPrefix(line, "treatment: "))
		}
	}
	for i := range pairs {
		if len(pairs) == 1 {
			s.lines = append(s.lines, pairs[i].Treatment.Lines...)
		}
		if text := report.RequestsText(pairs[i].Requests); text != "" {
			s.lines = append(s.lines, pairs[i].A+", "+pairs[i].B+": "+text)
		}
		if pairs[i].Same {
			s.lines = append(s.lines, fmt.Sprintf("%s and %s are the same: an A/A experiment", pairs[i].A, pairs[i].B))
		}
	}
	return s
}

func agentSection(agents []AgentSummary) section {
	s := section{
		title: "Agents",
		head: []string{
			"agent", "pass rate", "score", "corrected correctness", "blended", "agent time", "median cost",
			"integrity flags", "runs", "excluded", "retried", "at a limit",
		},
	}
	for i := range agents {
		a := &agents[i]
		s.rows = append(s.rows, []string{
			a.Arm, report.BoundedPercent(a.PassRate, a.Bounds), scoreText(a), correctedText(a), blendedText(a),
			millis(a.Efficiency.WallClockMs),
			display.FineCost(a.Efficiency.CostUSD), countsText(a.Integrity), fmt.Sprint(a.NRuns), excludedText(a),
			countText(a.Retried), countsText(a.Limits),
		})
	}
	return s
}

// scoreText shows the score where it is something else than the pass rate.
func scoreText(a *AgentSummary) string {
	if a.Score == nil || a.PassRate == nil || a.Score.Est == a.PassRate.Est {
		return dash
	}
	if bounds, uncertain := a.BoundsOf["score"]; uncertain {
		return report.BoundedPercent(a.Score, &bounds)
	}
	return report.BoundedPercent(a.Score, nil)
}

// correctedText shows the corrected rate of correctness, or why there is none.
func correctedText(a *AgentSummary) string {
	for _, c := range a.Corrected {
		if c.Dimension != evidence.Correctness {
			continue
		}
		text := fmt.Sprintf("%s (observed %.1f%% of %d)", c.Status, 100*c.ObservedRate, c.N)
		if c.CorrectedRate != nil && c.CI95Low != nil && c.CI95High != nil {
			text = fmt.Sprintf("%.1f%% [%.1f, %.1f]", 100**c.CorrectedRate, 100**c.CI95Low, 100**c.CI95High)
		}
		if c.WorstRate != nil && c.BestRate != nil {
			text += fmt.Sprintf(", %.1f to %.1f%% with the %d undecided", 100**c.WorstRate, 100**c.BestRate,
				c.Undecided)
		}
		return text
	}
	return dash
}

func blendedText(a *AgentSummary) string {
	if a.Blended == nil {
		return dash
	}
	text := fmt.Sprintf("%.3f", *a.Blended)
	if bounds := a.BlendedBounds; bounds != nil {
		text += fmt.Sprintf(" (%.3f to %.3f with what is not certain)", bounds.Worst, bounds.Best)
	}
	if a.Coverage != nil && *a.Coverage < 1-1e-9 {
		text += fmt.Sprintf(" (coverage %.2f)", *a.Coverage)
	}
	return text
}

func countText(n int) string {
	if n == 0 {
		return dash
	}
	return fmt.Sprint(n)
}

func excludedText(a *AgentSummary) string {
	text := countText(a.ExcludedEnv)
	if other := a.Missing - a.ExcludedEnv; other > 0 {
		text += fmt.Sprintf(" + %d missing", other)
	}
	return text
}

func pairSections(pairs []Pair) []section {
	claims := section{
		title: "Pairs",
		head:  []string{"pair", "claim", "difference", "p (Holm)", "min. detectable", "why"},
	}
	judged := section{
		title: "Dimensions, by the panel",
		head:  []string{"pair", "dimension", "tasks", "observed", "corrected", "claim", "why"},
	}
	for i := range pairs {
		p := &pairs[i]
		name := p.A + " against " + p.B
		row := []string{name, p.claimText(p.Claim), dash, dash, dash, strings.Join(p.Obstacles, "; ")}
		if p.Diff != nil {
			row[2], row[3] = points(p.Diff), fmt.Sprintf("%.4f", p.Diff.PAdj)
		}
		if p.MDE != nil {
			row[4] = report.Detectable(*p.MDE)
		}
		claims.rows = append(claims.rows, row)
		for j := range p.Dimensions {
			d := &p.Dimensions[j]
			corrected := d.Status
			if d.Corrected != nil {
				corrected = points(d.Corrected)
			}
			judged.rows = append(judged.rows, []string{
				name, d.Dimension, fmt.Sprint(d.NTasks), points(&d.Observed), corrected, p.claimText(d.Claim),
				strings.Join(d.Obstacles, "; "),
			})
		}
	}
	return []section{claims, judged, pairwiseSection(pairs), ratioSection(pairs)}
}

// ratioSection says what the first of two arms took, compared with the second, and how often each
// was drawn again.
func ratioSection(pairs []Pair) section {
	s := section{title: "What it took", head: []string{"pair", "quantity", "ratio"}}
	for i := range pairs {
		p := &pairs[i]
		for at, ratio := range []*report.Ratio{p.Cost, p.Time, p.Turns} {
			if ratio != nil {
				what := []string{"cost", "agent time", "turns"}[at]
				s.rows = append(s.rows, []string{p.A + " against " + p.B, what, ratio.Text()})
			}
		}
		for _, r := range []*report.Retries{p.Retries, p.FailedCalls} {
			if text := r.Text(); text != "" {
				s.lines = append(s.lines, text)
			}
		}
	}
	return s
}

func (p *Pair) claimText(claim string) string {
	switch claim {
	case claimEquivalent:
		return p.A + " and " + p.B + " are equivalent"
	case claimA:
		return p.A + " > " + p.B
	case claimB:
		return p.B + " > " + p.A
	}
	return claim
}

// points shows a difference of rates.
func points(d *Difference) string {
	if d.Lo == nil || d.Hi == nil {
		return fmt.Sprintf("%+.1f points", 100*d.Est)
	}
	return fmt.Sprintf("%+.1f points [%+.1f, %+.1f]", 100*d.Est, 100**d.Lo, 100**d.Hi)
}

func errorSection(agents []AgentSummary) section {
	s := section{
		title: "Why runs failed",
		head:  []string{"agent", "causes", "disqualified", "timeouts", "unseen edits"},
	}
	for i := range agents {
		a := &agents[i]
		if len(a.Errors)+a.Disqualified+a.Timeouts+a.UnseenEdits > 0 {
			s.rows = append(s.rows, []string{
				a.Arm, countsText(a.Errors), fmt.Sprint(a.Disqualified), fmt.Sprint(a.Timeouts),
				fmt.Sprint(a.UnseenEdits),
			})
		}
	}
	return s
}

// countsText lists counts, the largest first.
func countsText(counts map[string]int) string {
	if len(counts) == 0 {
		return dash
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, counts[name])
	}
	return strings.Join(names, ", ")
}

func milestoneSection(pairs []Pair) section {
	s := section{
		title: "Milestones (median difference; not reached is not counted as 0)",
		head:  []string{"pair", "milestone", "time", "turns", "both", "censored"},
	}
	for i := range pairs {
		p := &pairs[i]
		for _, gap := range p.Milestones {
			if gap.Both == 0 && gap.CensoredA == gap.CensoredB {
				continue // neither reached it
			}
			time, turns := dash, dash
			if gap.DeltaElapsedMs != nil {
				time = fmt.Sprintf("%+.1f s", math.Round(*gap.DeltaElapsedMs/100)/10+0) // never -0.0
			}
			if gap.DeltaTurn != nil {
				turns = fmt.Sprintf("%+g", *gap.DeltaTurn)
			}
			s.rows = append(s.rows, []string{
				p.A + " against " + p.B, gap.Kind, time, turns, fmt.Sprint(gap.Both),
				fmt.Sprintf("%d, %d", gap.CensoredA, gap.CensoredB),
			})
		}
	}
	return s
}

// agentsSection says what exactly was compared, and the total cost.
func (r *EvalReport) agentsSection() section {
	s := section{
		title: "What was compared",
		head:  []string{"agent", "id", "version", "model", "login", "program", "SHA-256"},
	}
	for _, a := range r.Agents {
		sum := a.SHA256
		if len(sum) > 12 {
			sum = sum[:12]
		}
		s.rows = append(s.rows, []string{a.Arm, a.ID, a.Version, a.Model, a.AuthMode, a.Binary, sum})
	}
	for i := range r.Pairs {
		if fact := r.Pairs[i].Machines.Fact(); fact != "" {
			s.lines = append(s.lines, r.Pairs[i].A+", "+r.Pairs[i].B+": "+fact)
		}
	}
	if r.Isolation != "" {
		s.lines = append(s.lines, "workspace: "+r.Isolation)
	}
	if r.Network != "" {
		s.lines = append(s.lines, "network: "+r.Network)
	}
	weights := strings.ReplaceAll(r.Weights.String(), ",", ", ")
	s.lines = append(s.lines, "weights (weight/heuristic's part): "+weights, r.Cost.text())
	return s
}

func (c *Cost) text() string {
	text := "cost: agents " + display.CostOver(c.AgentsUSD, c.AgentsKnownUSD)
	if c.Replies == 0 {
		return text
	}
	judges := display.CostOver(c.JudgesUSD, c.JudgesKnownUSD)
	text += fmt.Sprintf(", judges %s for %s", judges, report.Count(c.Replies, "reply"))
	if c.PerReplyUSD != nil {
		text += fmt.Sprintf(" (%s each)", display.FineDollars(*c.PerReplyUSD))
	}
	if c.JudgesShare != nil {
		text += fmt.Sprintf(", %.1f%% of the agents' cost", 100**c.JudgesShare)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c.PerDimension)) {
		parts = append(parts, name+" "+costText(c.PerDimension[name]))
	}
	return text + "; by dimension: " + strings.Join(parts, ", ")
}

func millis(ms *float64) string {
	if ms == nil {
		return dash
	}
	return display.Millis(int64(*ms))
}

// withValues leaves out the columns of a table in which no row has a value.
func withValues(head []string, rows [][]string) ([]string, [][]string) {
	var kept []int
	for i := range head {
		hasValue := func(row []string) bool { return row[i] != "" && row[i] != dash }
		if slices.ContainsFunc(rows, hasValue) {
			kept = append(kept, i)
		}
	}
	pick := func(cells []string) []string {
		picked := make([]string, len(kept))
		for at, i := range kept {
			picked[at] = cells[i]
		}
		return picked
	}
	fewer := make([][]string, len(rows))
	for at, row := range rows {
		fewer[at] = pick(row)
	}
	return pick(head), fewer
}

// write writes the sections that have something in them.
func write(w io.Writer, sections []section, table func(io.Writer, section) error, safe func(string) string) error {
	for i, s := range sections {
		if len(s.rows)+len(s.lines) == 0 {
			continue
		}
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		s.head, s.rows = withValues(s.head, s.rows)
		for at, row := range s.rows {
			s.rows[at] = slices.Clone(row)
			for c := range row {
				s.rows[at][c] = safe(row[c])
			}
		}
		for at := range s.lines {
			s.lines[at] = safe(s.lines[at])
		}
		if err := table(w, s); err != nil {
			return err
		}
	}
	return nil
}

func textTable(w io.Writer, s section) error {
	if s.title != "" {
		fmt.Fprintln(w, s.title)
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	if len(s.rows) > 0 {
		fmt.Fprintln(table, strings.Join(s.head, "\t"))
	}
	for _, row := range s.rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, line := range s.lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
