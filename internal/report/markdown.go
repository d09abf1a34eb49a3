package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/display"
)

// The amounts of detail of a Markdown report.
const (
	Full    = "full"
	Compact = "compact"
)

// Markdown writes the report as Markdown, for step summaries and comments. Full detail needs a
// report that was built with the single runs.
func (r *Report) Markdown(w io.Writer, k []int, detail string) error {
	m := &markdown{k: r.WorthShowing(k, 1)}
	full := detail != Compact && len(r.Groups) > 0
	if full {
		m.line("# Benchmark report\n")
	}
	if len(r.Groups) == 0 {
		m.line("⚠️ **no results** | 0 runs%s\n", skippedText(r.Totals.Skipped))
	}
	for i := range r.Groups {
		m.group(&r.Groups[i], full, len(r.Groups) > 1)
	}
	if r.Sequential != nil {
		m.line("> %s\n", r.Sequential.text())
	}
	return m.end(w, r.Warnings)
}

type markdown struct {
	out strings.Builder
	k   []int
}

func (m *markdown) line(format string, args ...any) { fmt.Fprintf(&m.out, format+"\n", args...) }

func (m *markdown) row(cells ...string) { m.line("| %s |", strings.Join(cells, " | ")) }

func (m *markdown) header(cells ...string) {
	m.row(cells...)
	m.line("|%s", strings.Repeat(" --- |", len(cells)))
}

// paragraphs writes lines as paragraphs of their own.
func (m *markdown) paragraphs(lines []string) {
	for _, line := range lines {
		m.line("%s\n", cell(line))
	}
}

// facts writes the lines under a table.
func (m *markdown) facts(facts []string) {
	m.line("")
	for _, fact := range facts {
		m.line("- %s", cell(fact))
	}
	m.line("")
}

func (m *markdown) warnings(warnings []string) {
	for _, warning := range warnings {
		m.line("> ⚠️ %s\n", cell(warning))
	}
}

// end writes everything, with the last warnings.
func (m *markdown) end(w io.Writer, warnings []string) error {
	m.warnings(warnings)
	m.line("%s\n", Validity)
	_, err := io.WriteString(w, strings.TrimRight(m.out.String(), "\n")+"\n")
	return err
}

func skippedText(skipped int) string {
	if skipped == 0 {
		return ""
	}
	return fmt.Sprintf(" | %d skipped", skipped)
}

func (m *markdown) group(g *Group, full, named bool) {
	if named {
		m.line("## Arm %s\n", cell(g.Name))
	}
	if g.Scope != "" {
		m.line("%s\n", cell(g.Scope))
	}
	m.paragraphs(FirstLines(g))
	t := &g.Totals
	sign := icon(t.TasksPassing == t.Tasks && t.Tasks > 0)
	m.line("%s **%d/%d tasks passing** | %d runs%s%s\n", sign, t.TasksPassing, t.Tasks, t.Runs, missingText(t),
		skippedText(t.Skipped))
	if g.PassRate != nil {
		text := fmt.Sprintf("Pass rate over tasks: **%s** (%.0f%% CI, %s)", percent(g.PassRate),
			100*g.PassRate.Level, g.PassRate.Method)
		m.line("%s\n", strings.Join(append([]string{text}, g.boundsLines()...), "; "))
	}
	for _, text := range []string{errorsText(g.Errors), limitsText(g.Limits), g.Load.text()} {
		if text != "" {
			m.line("⚠️ %s\n", cell(text))
		}
	}
	for i := range g.Causes {
		m.line("⚠️ %s\n", cell(strings.Join(g.Causes[i].Lines(), " →")))
	}
	for i := range g.Cheats {
		m.line("⚠️ %s\n", cell(strings.Join(g.Cheats[i].lines(), " →")))
	}
	lines := slices.Concat(flowLines(g), g.treatmentLines(), g.Judge.lines())
	for _, line := range lines {
		m.line("- %s", cell(line))
	}
	if len(lines) > 0 {
		m.line("")
	}
	if full {
		m.header("Cost", "Cost per pass", "Median duration with grading", "Median Turns")
		m.row(t.spent(), t.perPass(), display.Millis(t.MedianDurationMs), strconv.Itoa(t.MedianTurns))
		m.line("")
		m.meta(g.Provenance)
		m.line("## Pass@k\n")
	}
	if g.Imported != "" {
		m.line("%s\n", cell(g.Imported))
	}
	m.passTable(g)
	m.line("\n%s, %s%s\n", Count(t.Tasks, "task"), Count(t.Runs, "run"), skippedText(t.Skipped))
	m.warnings(g.Warnings)
	if full {
		m.line("## Task Details\n")
		for i := range g.Tasks {
			m.task(&g.Tasks[i], g.MeanScore != nil)
		}
	}
}

func missingText(t *Totals) string {
	text := ""
	if t.Missing > 0 {
		text = fmt.Sprintf(" | %d of %d missing", t.Missing, t.Planned)
	}
	if t.Disqualified > 0 {
		text += fmt.Sprintf(" | %d disqualified", t.Disqualified)
	}
	if t.Retried > 0 {
		text += fmt.Sprintf(" | %d retried", t.Retried)
	}
	return text
}

func (m *markdown) meta(p Provenance) {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf("%s: `%s`", name, strings.ReplaceAll(display.Line(value), "`", "'")))
		}
	}
	add("Agent", strings.TrimSpace(p.Agent+" "+p.AgentVersion))
	add("Model", p.Model)
	add("Supervisor", p.Supervisor)
	add("Judge", p.Judge)
	add("Skill set", short(p.SkillSetHash))
	add("Family", short(p.FamilyRevision))
	add("Isolation", p.Isolation)
	add("Network", sharedNetwork(p.Network))
	if len(parts) > 0 {
		m.line("%s\n", strings.Join(parts, " | "))
	}
}

// passTable writes the table of the reference, with a last line over all tasks and its intervals.
func (m *markdown) passTable(g *Group) {
	scored := g.scoresSayMore()
	head := []string{"taskId", "n", "c"}
	for _, k := range m.k {
		head = append(head, fmt.Sprintf("pass@%d", k))
	}
	if scored {
		head = append(head, "score")
		for _, k := range m.k {
			head = append(head, fmt.Sprintf("score@%d", k))
		}
	}
	m.header(head...)
	for i := range g.Tasks {
		t := &g.Tasks[i]
		cells := []string{cell(t.TaskID), strconv.Itoa(t.N), strconv.Itoa(t.C)}
		for _, k := range m.k {
			cells = append(cells, t.PassAtK[strconv.Itoa(k)].text())
		}
		if scored {
			cells = append(cells, scoreCells(t, m.k)...)
		}
		m.row(cells...)
	}
	if g.PassRate == nil {
		return
	}
	cells := []string{"**all tasks**", strconv.Itoa(g.Totals.Runs), strconv.Itoa(g.Totals.Passed)}
	for _, k := range m.k {
		cells = append(cells, atKText(g.PassAtK[strconv.Itoa(k)]))
	}
	if scored {
		cells = append(cells, intervalText(g.MeanScore))
		for _, k := range m.k {
			cells = append(cells, atKText(g.ScoreAtK[strconv.Itoa(k)]))
		}
	}
	m.row(cells...)
}

func scoreCells(t *Task, ks []int) []string {
	if t.MeanScore == nil {
		cells := []string{dash}
		for range ks {
			cells = append(cells, dash)
		}
		return cells
	}
	cells := []string{fmt.Sprintf("%.4f", *t.MeanScore)}
	for _, k := range ks {
		cells = append(cells, t.ScoreAtK[strconv.Itoa(k)].text())
	}
	return cells
}

func (m *markdown) task(t *Task, scored bool) {
	m.line("### %s\n", cell(t.TaskID))
	status := fmt.Sprintf("%s **%d/%d runs passed**", icon(t.N > 0 && t.C == t.N), t.C, t.N)
	if t.Rate != nil {
		status += fmt.Sprintf(" (%s)", percent(t.Rate))
	}
	if t.Missing > 0 {
		status += fmt.Sprintf(", %d missing", t.Missing)
	}
	m.line("%s\n", status)
	if line := m.atKLine(t); line != "" {
		m.line("%s\n", line)
	}
	if t.Agreement != nil {
		m.line("Judge: %s\n", cell(t.Agreement.text()))
	}
	if len(t.Runs) == 0 {
		return
	}
	m.runs(t.Runs, scored)
	m.checks(t.Runs)
	m.commentary(t.Runs)
	m.errors(t.Runs)
}

// atKLine shows the limits of pass@k, for which the table has no room.
func (m *markdown) atKLine(t *Task) string {
	var parts []string
	for _, k := range m.k {
		if key := strconv.Itoa(k); k > 1 && t.PassAtK[key].Err == "" {
			parts = append(parts, fmt.Sprintf("pass@%d %s", k, t.atKText(key)))
		}
	}
	return strings.Join(parts, ", ")
}

func (m *markdown) runs(runs []Run, scored bool) {
	head := []string{"Run", "Verdict", "Checks", "Judge"}
	if scored {
		head = append(head, "Score")
	}
	m.header(append(head, "Cost", "Turns", "Duration")...)
	for _, run := range runs {
		cells := []string{
			strconv.Itoa(run.RunIndex), verdictIcon(run.Verdict), verdictIcon(run.Grade),
			verdictIcon(run.Judge),
		}
		if scored {
			score := dash
			if run.Score != nil {
				score = fmt.Sprintf("%.4f", *run.Score)
			}
			cells = append(cells, score)
		}
		m.row(append(cells, display.Cost(run.CostUSD), strconv.Itoa(run.Turns), display.Millis(run.DurationMs))...)
	}
	m.line("")
}

func (m *markdown) checks(runs []Run) {
	total, tests := 0, false
	for _, run := range runs {
		total += len(run.Rows)
		for _, row := range run.Rows {
			tests = tests || row.Source == "tests"
		}
	}
	if total == 0 {
		return
	}
	m.line("#### Checks\n")
	var head []string
	if len(runs) > 1 {
		head = append(head, "Run")
	}
	head = append(head, "Check")
	if tests {
		head = append(head, "Source")
	}
	m.header(append(head, "Result", "Message")...)
	for _, run := range runs {
		for _, row := range run.Rows {
			var cells []string
			if len(runs) > 1 {
				cells = append(cells, strconv.Itoa(run.RunIndex))
			}
			cells = append(cells, cell(row.Check))
			if tests {
				cells = append(cells, row.Source)
			}
			result := dash // a diagnostic row decides nothing
			if row.Pass != nil {
				result = icon(*row.Pass)
			}
			m.row(append(cells, result, cell(row.Message))...)
		}
	}
	m.line("")
}

func (m *markdown) commentary(runs []Run) {
	first := true
	for _, run := range runs {
		if run.Summary == "" {
			continue
		}
		if first {
			m.line("#### Judge Commentary\n")
			first = false
		}
		prefix := ""
		if len(runs) > 1 {
			prefix = fmt.Sprintf("Run %d: ", run.RunIndex)
		}
		m.line("> %s%s\n", prefix, cell(run.Summary))
	}
}

func (m *markdown) errors(runs []Run) {
	first := true
	for _, run := range runs {
		for _, note := range run.Notes {
			if first {
				m.line("#### Errors\n")
				first = false
			}
			m.line("- Run %d: %s", run.RunIndex, cell(note))
		}
	}
	if !first {
		m.line("")
	}
}
