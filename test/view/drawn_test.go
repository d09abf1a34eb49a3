package view

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// These show numbers the way pages do.

type limits struct{ Est, Lo, Hi *float64 }

func money(usd *float64) string {
	switch {
	case usd == nil:
		return "unknown"
	case *usd == 0:
		return "$0.00"
	case *usd < 0.01:
		return fmt.Sprintf("$%#.2g", *usd)
	case *usd < 0.1:
		return fmt.Sprintf("$%.3f", *usd)
	case *usd < 10:
		return fmt.Sprintf("$%.2f", *usd)
	}
	return fmt.Sprintf("$%.0f", *usd)
}

func elapsed(ms float64) string {
	switch {
	case ms < 1000:
		return fmt.Sprintf("%d ms", int(ms+0.5))
	case ms < 60_000:
		seconds := ms / 1000
		if math.Mod(ms, 500) == 250 { // a quarter: the page rounds it up, fmt to the even digit
			seconds = math.Nextafter(seconds, 60)
		}
		return fmt.Sprintf("%.1f s", seconds)
	case ms < 3_600_000:
		return fmt.Sprintf("%d m %02d s", int(ms/1000+0.5)/60, int(ms/1000+0.5)%60)
	}
	return fmt.Sprintf("%d h %02d m", int(ms/1000+0.5)/3600, int(ms/1000+0.5)/60%60)
}

func percent(rate float64) string { return fmt.Sprintf("%.1f%%", 100*rate) }

func inShort(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1fK", float64(n)/1000)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func ratio(f *factor) string { return fmt.Sprintf("×%.2f [%.2f, %.2f]", f.Est, f.Lo, f.Hi) }

type factor struct {
	Est, Lo, Hi float64
	NTasks      int
}

type ratios struct{ All, CommonlySolved *factor }

type group struct {
	Provenance struct{ Arm, ArmHash, Agent, Model string }
	PassRate   *limits
	Totals     struct {
		Runs, Passed, Planned, Attempts int
		CostUsd                         *float64
		CostPerPass                     *limits
		MedianDurationMs                float64
		MedianTurns                     float64
	}
	Errors map[string]int
	Causes []struct {
		Class, WayOut string
		Runs          int
	}
	Cheats []struct {
		What, WayOut string
		Runs         int
	}
	Tasks []struct {
		TaskID string
		Checks []struct {
			Check     string
			Gate      bool
			N, Passed int
		}
	}
}

type reported struct {
	Groups []group
	Totals struct {
		CostUsd *float64
	}
}

func (g *guide) report(t *testing.T, name string) (r reported) {
	t.Helper()
	answerOf(t, &r, "benchmark", "report", "--input", filepath.Join(g.top, name), "--format", "json")
	return r
}

const anyTable = "main table tbody tr"

// TestDrawnAnalysis: the list and every view of an experiment show what report, compare and plan
// print.
func TestDrawnAnalysis(t *testing.T) {
	t.Parallel()
	g := visit(t)
	at := "#/x/" + g.id(t, "skills")
	// There is nothing to compare where one arm has errors only.
	pages := walk(t, map[string]any{"url": g.address, "allow": []string{"409"}},
		spot{"list", "#/", "table.experiments tbody tr"},
		spot{"experiment", at, "table.grid tfoot .whisker circle"},
		spot{"cost", at + "?tab=cost", ".chart svg[role=img]"},
		spot{"time", at + "?tab=time", ".chart svg[role=img]"},
		spot{"checks", at + "?tab=checks", anyTable},
		spot{"plan", at + "?tab=plan&effect=0.2&runs=3", ".plan .sentence"},
		spot{"run", at + "?tab=run", anyTable},
		spot{"errors", "#/x/" + g.id(t, "errors") + "?tab=errors", anyTable},
		spot{"head of errors", "#/x/" + g.id(t, "errors"), "table.grid tbody tr"},
		spot{"cheats", "#/x/" + g.id(t, "cheats"), "table.grid tbody tr"},
		spot{"a cheat", "#/x/" + g.id(t, "cheats") + "/fix-add-00/quince/0", ".evidence, table"},
		spot{"stopped", "#/x/" + g.id(t, "stopped"), "table.grid tbody tr"},
		spot{"how it was stopped", "#/x/" + g.id(t, "stopped") + "?tab=run", anyTable},
	)
	report := g.report(t, "skills")
	var compared struct{ Cost, Time, Turns ratios }
	answerOf(t, &compared, "benchmark", "compare", filepath.Join(g.top, "skills"), "--format", "json")
	var rates, medians, turns, checks []string
	runs, planned := 0, 0
	for i := range report.Groups {
		one := &report.Groups[i]
		arm, totals := one.Provenance.Arm, &one.Totals
		rates = append(rates, arm+" "+percent(*one.PassRate.Est))
		perPass := fmt.Sprintf("%s [%s, %s]", money(totals.CostPerPass.Est), money(totals.CostPerPass.Lo),
			money(totals.CostPerPass.Hi))
		perRun := *totals.CostUsd / float64(totals.Runs)
		pages["cost"].has(t, arm, money(&perRun), perPass, money(totals.CostUsd), fmt.Sprint(totals.Attempts))
		medians = append(medians, arm+" "+elapsed(totals.MedianDurationMs))
		turns = append(turns, fmt.Sprintf("%s %v", arm, totals.MedianTurns))
		runs, planned = runs+totals.Runs, planned+totals.Planned
		pages["experiment"].says(t, fmt.Sprintf("%s %s %d of %s", arm, percent(*one.PassRate.Est), totals.Passed,
			counted(totals.Runs, "run")))
		pages["run"].has(t, arm, "*", one.Provenance.Model, one.Provenance.ArmHash[7:19]+" copy")
	}
	pages["list"].has(t, "*", "*", strings.Join(rates, " "), fmt.Sprintf("%d of %d", runs, planned),
		money(report.Totals.CostUsd), "*", "*")
	for i, task := range report.Groups[0].Tasks {
		for j, check := range task.Checks {
			other := report.Groups[1].Tasks[i].Checks[j]
			checks = append(checks, check.Check)
			pages["checks"].has(t, task.TaskID, check.Check, map[bool]string{true: "gate", false: "scored"}[check.Gate],
				fmt.Sprintf("%d of %d", check.Passed, check.N), fmt.Sprintf("%d of %d", other.Passed, other.N))
		}
	}
	if len(checks) != 12 {
		t.Errorf("the report has the checks %v", checks)
	}
	said := func(name string, r ratios) string {
		return fmt.Sprintf("%s: %s · on the %s that both solved %s", name, ratio(r.All),
			counted(r.CommonlySolved.NTasks, "task"), ratio(r.CommonlySolved))
	}
	pages["cost"].says(t, said("cost", compared.Cost))
	pages["time"].says(t, "the median: "+strings.Join(medians, ", "), "Medians: "+strings.Join(turns, ", "),
		said("agent time", compared.Time), said("turns", compared.Turns))
	g.labelled(t, pages["experiment"])
	g.planned(t, pages["plan"])
	for _, one := range g.report(t, "errors").Groups {
		for class := range one.Errors {
			row := []string{class}
			for _, other := range g.report(t, "errors").Groups {
				row = append(row, fmt.Sprint(other.Errors[class]))
			}
			pages["errors"].has(t, row...)
		}
	}
	pages["errors"].says(t, "Cells without a verdict")
	for _, one := range g.report(t, "errors").Groups { // why, and what to do, stand in the head
		for _, c := range one.Causes {
			pages["head of errors"].says(t, fmt.Sprintf("%s of %s without a verdict (%s)", counted(c.Runs, "run"),
				one.Provenance.Arm, c.Class), c.WayOut)
		}
	}
	for _, one := range g.report(t, "cheats").Groups {
		for _, c := range one.Cheats {
			said := fmt.Sprintf("%s disqualified: %s %s", counted(c.Runs, "run"), one.Provenance.Arm, c.What)
			pages["cheats"].says(t, said, c.WayOut)
		}
	}
	pages["cheats"].says(t, "4 runs disqualified: quince deleted a test")
	pages["a cheat"].says(t, "failed", "disqualified for a sign of cheating", "deleted a test", "removed line")
	why := "topped by budget: the experiment's budget of $0.25: $0.24 are spent"
	pages["stopped"].says(t, "S"+why, "What to do: fit-benchmark run ",
		" --max-cost-usd 0.53 --output "+filepath.Join(g.top, "stopped"))
	pages["list"].says(t, "s"+why)
	pages["how it was stopped"].says(t, "--max-cost-usd 0.25")
	pages["plan"].says(t, "fit-benchmark plan "+filepath.Join(g.top, "skills")+" --effect")
}

// labelled compares what the mouse finds on the grid with the runs of the report, and on the forest
// plot with the limits of the differences.
func (g *guide) labelled(t *testing.T, page drawn) {
	t.Helper()
	for _, one := range g.full(t).Groups {
		for _, task := range one.Tasks {
			for _, r := range task.Runs {
				label := fmt.Sprintf("%s, %s, run %d: %s · %s · %d turns · %s with grading", task.TaskID,
					one.Provenance.Arm, r.RunIndex,
					map[string]string{"pass": "passed", "fail": "failed"}[r.Verdict], money(r.CostUsd), r.Turns,
					elapsed(r.DurationMs))
				if !slices.ContainsFunc(page.Hovers, func(said string) bool { return strings.HasPrefix(said, label) }) {
					t.Errorf("no mark is labelled %q: %q", label, page.Hovers)
				}
			}
		}
	}
	var forest struct {
		Overall limits
		Tasks   []struct {
			TaskID string
			limits
		}
	}
	g.read(t, "/api/experiments/"+g.id(t, "skills")+"/forest", &forest)
	for _, task := range forest.Tasks {
		page.hovers(t, fmt.Sprintf("%s: %s points, %s to %s", task.TaskID, points(*task.Est, 1), points(*task.Lo, 1),
			points(*task.Hi, 1)))
	}
}

func (g *guide) planned(t *testing.T, page drawn) {
	t.Helper()
	var plan struct {
		TasksNeeded int
		CostUsd     *float64
		Cheapest    *struct {
			Tasks, Runs int
			Cost        *float64
		}
		Pilot struct {
			Tasks, Runs int
			CostPerRun  *float64
		}
	}
	answerOf(t, &plan, "benchmark", "plan", filepath.Join(g.top, "skills"), "--effect", "0.2", "--runs", "3",
		"--format", "json")
	page.says(t, counted(plan.TasksNeeded, "task")+", "+money(plan.CostUsd),
		fmt.Sprintf("%s, %d runs, %s a run", counted(plan.Pilot.Tasks, "task"), plan.Pilot.Runs,
			money(plan.Pilot.CostPerRun)))
	if c := plan.Cheapest; c != nil {
		page.says(t, fmt.Sprintf("Cheapest: %s with %s each, %s", counted(c.Tasks, "task"), counted(c.Runs, "run"),
			money(c.Cost)))
	}
}

type usage struct{ InputTokens, OutputTokens, CacheReadInputTokens, CacheCreationInputTokens int }

// TestDrawnCell: a cell, its trace, and two traces side by side show what the report and fit-trace
// print.
func TestDrawnCell(t *testing.T) {
	t.Parallel()
	g := visit(t)
	id, file := g.agent(t, "skills", "even/after/0")
	other, otherFile := g.agent(t, "skills", "even/before/0")
	team := g.lone(t, "team.ndjson")
	pages := walk(t, map[string]any{"url": g.address},
		spot{"cell", "#/x/" + g.id(t, "skills") + "/even/after/0", ".transcript .entry.assistant"},
		spot{"trace", "#/trace/" + id, ".entry .said"},
		spot{"side by side", "#/align/" + other + "/" + id, "table.aligned tbody tr"},
		spot{"team", "#/trace/" + team, ".messages li"},
		spot{"skips", "#/trace/" + g.lone(t, "skips.ndjson"), ".entry .said"},
	)
	var overview struct {
		Summary struct {
			Result       string
			TotalCostUsd *float64
			DurationMs   float64
		}
		Metadata         struct{ Model string }
		Turns, TurnCount int
	}
	answerOf(t, &overview, "trace", "overview", file, "--format", "json")
	s := overview.Summary
	pages["trace"].says(t, fmt.Sprintf("%s · %s · %s · %s · %s", s.Result, overview.Metadata.Model,
		counted(overview.Turns, "turn"), money(s.TotalCostUsd), elapsed(s.DurationMs)),
		counted(overview.TurnCount, "entrie"))
	var stats struct{ PerTurn []usage }
	answerOf(t, &stats, "trace", "stats", file, "--format", "json")
	for i, one := range stats.PerTurn {
		pages["cell"].has(t, fmt.Sprint(i+1), fmt.Sprint(one.InputTokens), fmt.Sprint(one.CacheCreationInputTokens),
			fmt.Sprint(one.CacheReadInputTokens), fmt.Sprint(one.OutputTokens), "*")
	}
	var calls []struct {
		Lane, Model         string
		Turn, Status, EndMs int
		StartMs             int64
		Usage               struct{ Input, Output, CacheRead int }
		CostUsd             *float64
	}
	answerOf(t, &calls, "trace", "calls", file, "--format", "json")
	if len(calls) == 0 {
		t.Error("the gateway recorded no call")
	}
	for _, page := range []string{"cell", "trace"} {
		for _, c := range calls {
			pages[page].has(t, c.Lane, c.Model, fmt.Sprint(c.Turn), inShort(c.Usage.Input), inShort(c.Usage.CacheRead),
				inShort(c.Usage.Output), money(c.CostUsd), elapsed(float64(c.EndMs)), fmt.Sprint(c.Status), "", "show")
			pages[page].hovers(t, fmt.Sprintf("model, turn %d: from %s, for %s", c.Turn,
				elapsed(float64(c.StartMs-calls[0].StartMs)), elapsed(float64(c.EndMs))))
		}
	}
	g.outcome(t, pages["cell"])
	g.prompted(t, pages["cell"], pages["trace"])
	var align struct {
		Distance   int
		Similarity float64
		Steps      []json.RawMessage
	}
	answerOf(t, &align, "trace", "align", otherFile, file, "--format", "json")
	pages["side by side"].says(t, fmt.Sprintf("similarity %.2f", align.Similarity))
	if rows := len(pages["side by side"].Tables[0]) - 1; rows != len(align.Steps) {
		t.Errorf("side by side has %d steps, fit-trace align %d", rows, len(align.Steps))
	}
	var messages []struct {
		From, Text string
		To         []string
		Answers    []struct{ From, Text string }
	}
	answerOf(t, &messages, "trace", "messages", filepath.Join(g.top, "team.ndjson"), "--format", "json")
	for _, m := range messages {
		pages["team"].says(t, fmt.Sprintf("%s asks %s %s", m.From, strings.Join(m.To, ", "), m.Text))
		for _, a := range m.Answers {
			pages["team"].says(t, a.From+" answers "+a.Text)
		}
	}
	pages["skips"].says(t, "2 lines skipped (line 3: ", "the only entry that can be read")
}

// prompted compares what the agent was asked with the trace and with the record of the run.
func (g *guide) prompted(t *testing.T, pages ...drawn) {
	t.Helper()
	id, file := g.agent(t, "skills", "even/after/0")
	var overview struct{ TaskPrompt string }
	answerOf(t, &overview, "trace", "overview", file, "--format", "json")
	var prompts []struct{ Label, Content string }
	answerOf(t, &prompts, "session", "prompts", file, "--format", "json")
	var shown struct {
		Given struct {
			SystemTokens int
			Tools        []string
			Pieces       []struct{ Name string }
		}
	}
	g.read(t, "/api/trace/overview?trace="+id, &shown)
	if overview.TaskPrompt == "" || len(prompts) == 0 || len(shown.Given.Tools) == 0 || len(shown.Given.Pieces) == 0 {
		t.Fatalf("the run was asked %+v with %d prompts, %+v", overview, len(prompts), shown)
	}
	plain := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	for _, page := range pages {
		page.says(t, "What the agent was asked", plain(overview.TaskPrompt), plain(prompts[0].Content),
			fmt.Sprintf("about %d tokens", shown.Given.SystemTokens), strings.Join(shown.Given.Tools, ", "))
		for _, piece := range shown.Given.Pieces {
			page.says(t, piece.Name)
		}
	}
}

type fullReport struct {
	Groups []struct {
		Provenance struct{ Arm string }
		Tasks      []struct {
			TaskID string
			Runs   []struct {
				RunIndex   int
				Verdict    string
				CostUsd    *float64
				Turns      int
				DurationMs float64
			}
		}
	}
}

// full is the report of the demo with every run.
func (g *guide) full(t *testing.T) (r fullReport) {
	t.Helper()
	answerOf(t, &r, "benchmark", "report", "--input", filepath.Join(g.top, "skills"), "--format", "json",
		"--detail", "full")
	return r
}

// outcome compares the head of a cell, its milestones and its diff with the reports.
func (g *guide) outcome(t *testing.T, page drawn) {
	t.Helper()
	for _, one := range g.full(t).Groups {
		for _, task := range one.Tasks {
			if one.Provenance.Arm == "after" && task.TaskID == "even" {
				r := task.Runs[0]
				page.says(t, fmt.Sprintf("%s · %s · %s with grading · ", money(r.CostUsd), counted(r.Turns, "turn"),
					elapsed(r.DurationMs)))
			}
		}
	}
	var report contest
	answerOf(t, &report, "versus", "report", filepath.Join(g.top, "skills"), "--robot")
	for _, cell := range report.Cells {
		if cell.Task != "even" || cell.Arm != "after" {
			continue
		}
		page.says(t, fmt.Sprintf("Diff %s, +%d −%d", counted(cell.Diff.Files, "file"), cell.Diff.Added,
			cell.Diff.Removed))
		for _, m := range cell.Milestones {
			page.says(t, elapsed(m.ElapsedMs))
		}
	}
}

// TestDrawnFiles: pages in one file say the same as the served ones.
func TestDrawnFiles(t *testing.T) {
	t.Parallel()
	g := visit(t)
	dir, at := filepath.Join(g.top, "skills"), "#/x/"+g.id(t, "skills")
	places := []spot{
		{"grid", at, "table.grid tfoot .whisker circle"},
		{"cost", at + "?tab=cost", anyTable},
		{"checks", at + "?tab=checks", anyTable},
		{"cell", at + "/even/after/0", ".transcript .entry.assistant"},
	}
	served := glance(t, map[string]any{"url": g.address}, places...)
	path := exported(t, "benchmark", "report", "--input", dir, "--format", "html")
	start := "#/x/" + exportedID(t, path)
	file := walk(t, map[string]any{"path": path},
		spot{"file", start, "table.grid tfoot .whisker circle"},
		spot{"cell in the file", start + "/even/after/0", ".transcript .entry.assistant"})
	for name, page := range served {
		whole := file["file"]
		if name == "cell" {
			whole = file["cell in the file"]
		}
		for _, table := range page.Tables {
			for _, row := range table {
				if name == "cell" && len(row) == 11 || len(row) == 4 {
					continue // the gateway's calls are not in the file
				}
				whole.has(t, row...)
			}
		}
	}
	path = exported(t, "trace", "export", filepath.Join(g.top, "team.ndjson"), "--format", "html")
	trace := walk(t, map[string]any{"path": path}, spot{"trace in a file", "", ".messages li"})
	trace["trace in a file"].says(t, "lead asks worker Which test fails, and why?", "12 entries", "6 turns")
}
