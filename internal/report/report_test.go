package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// run makes the record of a run with a verdict.
func run(task string, index int, verdict string) ledger.Record {
	cost := 0.25
	return ledger.Record{
		TaskID: task, RunIndex: index, Attempt: 1, Arm: "default", ArmHash: "sha256:a", Experiment: "e",
		FamilyRevision: "sha256:f", Verdict: verdict, Final: true,
		Agent: "builtin", AgentVersion: "1", Model: ledger.Models{Agent: "m"}, CostUSD: &cost, Turns: 4,
		DurationMs: 61_000, Isolation: "bwrap",
		Grade: &ledger.Grade{Verdict: verdict, GatesPass: true, Healthy: true},
		Invariants: &ledger.Invariants{Details: []json.RawMessage{json.RawMessage(
			fmt.Sprintf(`{"test":"it works","pass":%t,"message":"a|b"}`, verdict == ledger.Pass))}},
	}
}

func failedRun(task string, index int, class string) ledger.Record {
	r := run(task, index, ledger.Error)
	r.Grade, r.Invariants, r.ErrorClass, r.ErrorMessage = nil, nil, class, "out of order"
	return r
}

func scoredRun(task string, index int, score float64) ledger.Record {
	r := run(task, index, ledger.Fail)
	if score == 1 {
		r = run(task, index, ledger.Pass)
	}
	r.Score, r.Grade.Score = &score, &score
	return r
}

// outcomes makes the runs of one task from a word: P passes, F fails, E is an error.
func outcomes(task, word string) []ledger.Record {
	var records []ledger.Record
	for i, letter := range word {
		switch letter {
		case 'P':
			records = append(records, run(task, i, ledger.Pass))
		case 'F':
			records = append(records, run(task, i, ledger.Fail))
		default:
			records = append(records, failedRun(task, i, ledger.ErrorProvider))
		}
	}
	return records
}

func build(t *testing.T, in Input) *Report {
	t.Helper()
	r, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func markdownOf(t *testing.T, r *Report, k []int, detail string) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.Markdown(&out, k, detail); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func wantIn(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

func TestPassAtK(t *testing.T) {
	r := build(t, Input{Records: append(outcomes("b", "PPFFF"), outcomes("a", "PF")...), K: []int{1, 3, 5}})
	if r.Tasks[0].TaskID != "a" || r.Tasks[1].TaskID != "b" {
		t.Errorf("tasks are not sorted: %+v", r.Tasks)
	}
	b := r.Tasks[1]
	if b.N != 5 || b.C != 2 || math.Abs(b.PassAtK["1"].Est-.4) > 1e-12 || math.Abs(b.PassAtK["3"].Est-.9) > 1e-12 ||
		b.PassAtK["5"].Est != 1 {
		t.Errorf("%+v", b.PassAtK)
	}
	if interval := b.PassAtKInterval["3"]; !interval.Contains(.9) || interval.Width() <= 0 {
		t.Errorf("interval %+v", interval)
	}
	if r.Tasks[0].PassAtK["3"].Err != "k > n" {
		t.Errorf("%+v", r.Tasks[0].PassAtK["3"])
	}
	encoded, err := json.Marshal(r.Tasks[0].PassAtK)
	if err != nil || string(encoded) != `{"1":0.5,"3":{"error":"k \u003e n"},"5":{"error":"k \u003e n"}}` {
		t.Errorf("%s %v", encoded, err)
	}
	if rate := r.Groups[0].PassRate; rate == nil || math.Abs(rate.Est-.45) > 1e-12 {
		t.Errorf("over tasks: %+v", rate)
	}
}

func TestAtLeastK(t *testing.T) {
	records := slices.Concat(outcomes("a", "PPP"), outcomes("b", "PPF"), outcomes("c", "FFF"), outcomes("d", "P"))
	r := build(t, Input{Records: records, K: []int{1, 2, 3, 5}})
	for k, want := range map[string]stats.AtK{
		"1": {Interval: stats.Interval{Est: 0.75}, Tasks: 4},
		"2": {Interval: stats.Interval{Est: 2.0 / 3}, Tasks: 3, TooFew: 1},
		"3": {Interval: stats.Interval{Est: 1.0 / 3}, Tasks: 3, TooFew: 1},
		"5": {TooFew: 4},
	} {
		t.Run(k, func(t *testing.T) {
			got := r.Groups[0].AtLeastK[k]
			if got.Interval.Est != want.Interval.Est || got.Tasks != want.Tasks || got.TooFew != want.TooFew {
				t.Errorf("k = %s: %+v, want %+v", k, got, want)
			}
		})
	}
	var text bytes.Buffer
	if err := r.Text(&text, []int{1}); err != nil {
		t.Fatal(err)
	}
	wantIn(t, text.String(), "tasks with at least 2 passed runs: 66.7%")
	if once := build(t, Input{Records: outcomes("a", "P")}); once.Groups[0].AtLeastK != nil {
		t.Errorf("one run: %+v", once.Groups[0].AtLeastK)
	}
}

func TestErrorsAreMissingDataWithBounds(t *testing.T) {
	planned := &Planned{Arms: []string{"default"}, Runs: map[string][]int{"a": {0, 1, 2, 3}, "b": {0, 1, 2, 3}}}
	g := build(t, Input{Records: outcomes("a", "PPE"), Planned: planned, K: []int{1}}).Groups[0]
	if g.Tasks[0].N != 2 || g.Tasks[0].Errors != 1 || g.Tasks[0].Missing != 2 || g.Tasks[1].N != 0 ||
		g.Tasks[1].Missing != 4 {
		t.Errorf("%+v", g.Tasks)
	}
	if g.Totals.Planned != 8 || g.Totals.Missing != 6 || g.PassRate.Est != 1 {
		t.Errorf("%+v", g.Totals)
	}
	if b := g.Bounds; b == nil || b.Worst != .25 || b.Best != 1 || b.Lo >= .25 || g.LowerLimit() != b.Lo {
		t.Errorf("%+v", g.Bounds)
	}
	if g.Errors[ledger.ErrorProvider] != 1 {
		t.Errorf("%+v", g.Errors)
	}
	wantIn(t, strings.Join(g.Warnings, "\n"), "2 of 8 runs have a verdict")
	if g.Totals.TasksPassing != 0 {
		t.Error("a task with missing runs does not pass")
	}
}

func TestRepeatedAttemptsCountOnceAndCostTwice(t *testing.T) {
	first := failedRun("a", 0, ledger.ErrorInterrupted)
	second := run("a", 0, ledger.Pass)
	second.Attempt = 2
	g := build(t, Input{Records: []ledger.Record{first, second}}).Groups[0]
	if g.Tasks[0].N != 1 || g.Totals.Attempts != 2 || *g.Totals.CostUSD != .5 {
		t.Errorf("%+v", g.Totals)
	}
	wantIn(t, strings.Join(g.Warnings, "\n"), "interrupted and retried: 1 run")
}

func TestScores(t *testing.T) {
	r := build(t, Input{Records: []ledger.Record{
		scoredRun("a", 0, .5), scoredRun("a", 1, 1), run("b", 0, ledger.Pass),
		run("b", 1, ledger.Fail),
	}, K: []int{1, 2, 3}})
	a, b := r.Tasks[0], r.Tasks[1]
	if *a.MeanScore != .75 || a.ScoreAtK["1"].Est != .75 || a.ScoreAtK["2"].Est != 1 || a.ScoreAtK["3"].Err != "k > n" {
		t.Errorf("%+v", a)
	}
	if b.MeanScore != nil || b.ScoreAtK != nil {
		t.Errorf("a task without scores has some: %+v", b)
	}
	text := markdownOf(t, r, []int{1, 2}, Compact)
	wantIn(t, text, "| taskId | n | c | pass@1 | pass@2 | score | score@1 | score@2 |",
		"| a | 2 | 1 | 0.5000 | 1.0000 | 0.7500 | 0.7500 | 1.0000 |",
		"| b | 2 | 1 | 0.5000 | 1.0000 | — | — | — |")
	binary := build(t, Input{Records: outcomes("b", "PF"), K: []int{1}})
	encoded, err := json.Marshal(binary)
	if err != nil || strings.Contains(string(encoded), "core\"") ||
		strings.Contains(markdownOf(t, binary, []int{1}, Compact), "score") {
		t.Errorf("a ledger without scores has score columns: %s %v", encoded, err)
	}
}

func TestBinaryScoresReproducePassAtK(t *testing.T) {
	var records []ledger.Record
	for i, score := range []float64{1, 0, 0, 1, 0} {
		records = append(records, scoredRun("a", i, score))
	}
	task := build(t, Input{Records: records, K: []int{1, 2, 3, 4}}).Tasks[0]
	for k, pass := range task.PassAtK {
		if math.Abs(pass.Est-task.ScoreAtK[k].Est) > 1e-12 {
			t.Errorf("k=%s: %v and %v", k, pass, task.ScoreAtK[k])
		}
	}
}

func TestWhatWasMeasuredDifferentlyIsNotMixed(t *testing.T) {
	other := run("a", 1, ledger.Fail)
	other.Model.Agent = "m2"
	early := failedRun("a", 2, ledger.ErrorSetup)
	early.Model.Agent, early.AgentVersion = "", ""
	r := build(t, Input{Records: []ledger.Record{run("a", 0, ledger.Pass), other, early}})
	if len(r.Groups) != 2 || r.Groups[0].Name != "default (m)" || r.Groups[1].Name != "default (m2)" ||
		r.Groups[0].Tasks[0].N != 1 {
		t.Errorf("%+v", r.Groups)
	}
	wantIn(t, strings.Join(r.Groups[0].Warnings, "\n"), "different conditions")
	other.Experiment = "elsewhere"
	r = build(t, Input{
		Records:     []ledger.Record{run("a", 0, ledger.Pass), other},
		Directories: map[string]string{run("a", 0, ledger.Pass).Experiment: "june", "elsewhere": "july"},
	})
	if len(r.Groups) != 2 || r.Groups[0].Name != "default (june)" || r.Groups[1].Name != "default (july)" {
		t.Errorf("%+v", r.Groups)
	}
}

func TestWarnings(t *testing.T) {
	open := run("a", 0, ledger.Pass)
	open.Isolation = "none"
	g := build(t, Input{Records: append(outcomes("b", "PPFFF"), open), K: []int{1, 3}}).Groups[0]
	wantIn(t, strings.Join(g.Warnings, "\n"), "pass@3 takes only a few values", "not isolated",
		"isolated in different ways")
	model, host := run("a", 0, ledger.Pass), run("a", 1, ledger.Pass)
	model.Network, host.Network = "model", "host"
	model.SharedProcess, host.SharedProcess = "node", "go"
	r := build(t, Input{Records: []ledger.Record{model, host}, K: []int{1}})
	wantIn(t, strings.Join(r.Groups[0].Warnings, "\n"), "different networks: host, model",
		"hidden tests of 1 task ran the agent's code in their own process, or report where it can write (go, node)")
	wantIn(t, markdownOf(t, r, []int{1}, Full), "Network: `model`")
}

func TestNothingIsAReportToo(t *testing.T) {
	r := build(t, Input{Skipped: 2})
	encoded, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(encoded), `"tasks":[]`) || r.Totals.Runs != 0 || r.Totals.Skipped != 2 {
		t.Errorf("%s %v", encoded, err)
	}
	if text := markdownOf(t, r, []int{1}, Full); strings.Contains(text, "✅") || !strings.Contains(text, "2 skipped") {
		t.Errorf("nothing measured is no success:\n%s", text)
	}
}

func TestMarkdownSections(t *testing.T) {
	broken := run("a", 1, ledger.Fail)
	broken.AgentError = &ledger.AgentError{Message: "ran out of turns"}
	broken.Grade.Malformed = 2
	broken.HiddenTests = &ledger.HiddenTests{Details: []json.RawMessage{
		json.RawMessage(
			`{"test":"hidden","pass":false,"message":"exit 1"}`), json.RawMessage(`null`),
		json.RawMessage(`{"pass":true}`),
	}, Error: "engine"}
	judged := run("a", 0, ledger.Pass)
	judged.JudgeVerdict = &ledger.JudgeMajority{Verdict: ledger.Pass, Summary: "Good\nwork <b>"}
	preflight := failedRun("b", 0, ledger.ErrorPreflight)
	preflight.PreflightError = &ledger.PreflightError{Phase: "preflight", Message: "no database", ExitCode: 7}
	r := build(t, Input{Records: []ledger.Record{judged, broken, preflight}, K: []int{1}, Detail: true})
	full := markdownOf(t, r, []int{1}, Full)
	wantIn(t, full,
		"# Benchmark report", "❌ **0/2 tasks passing** | 2 runs",
		"| Cost | Cost per pass | Median duration with grading | Median Turns |", "| $0.75 | $0.50 (no interval: one task) | 1m 1s | 4 |",
		"Agent: `builtin 1` | Model: `m` | Family: `sha256:f` | Isolation: `bwrap`", "## Pass@k", "## Task Details",
		"### a", "❌ **1/2 runs passed**",
		"| Run | Verdict | Checks | Judge | Cost | Turns | Duration |", "| 0 | ✅ | ✅ | ✅ | $0.25 | 4 | 1m 1s |",
		"#### Checks",
		"| Run | Check | Source | Result | Message |", `| 0 | it works | invariants | ✅ | a\|b |`,
		"| 1 | hidden | tests | ❌ | exit 1 |", "| 1 | (unnamed) | tests | ✅ |  |",
		"#### Judge Commentary", "> Run 0: Good work &lt;b>", "#### Errors", "- Run 1: malformed rows: 2",
		"- Run 1: hidden tests: engine",
		"- Run 1: agent error: ran out of turns (aborted: false)", "- Run 0: preflight error: no database (exit 7)", "| 0 | ⚠️ | — | — |")
	compact := markdownOf(t, r, []int{1}, Compact)
	for _, absent := range []string{"# Benchmark", "Task Details", "Checks"} {
		if strings.Contains(compact, absent) {
			t.Errorf("compact has %q:\n%s", absent, compact)
		}
	}
	wantIn(t, compact, "tasks passing**", "| taskId | n | c | pass@1 |", "2 tasks, 2 runs")
	single := markdownOf(t, build(t,
		Input{Records: []ledger.Record{run("a", 0, ledger.Pass)}, K: []int{1}, Detail: true}), []int{1}, Full)
	wantIn(t, single, "| Check | Result | Message |", "✅ **1/1 tasks passing**")
	bare := run("a", 0, ledger.Pass)
	bare.Invariants = nil
	if strings.Contains(markdownOf(t, build(t, Input{Records: []ledger.Record{bare}, Detail: true}), []int{1}, Full),
		"#### Checks") {
		t.Error("a section of checks without checks")
	}
}

func TestRunsAreThereOnlyWhenAskedFor(t *testing.T) {
	if build(t, Input{Records: outcomes("a", "PF")}).Tasks[0].Runs != nil {
		t.Error("runs without being asked for")
	}
	runs := build(t, Input{Records: outcomes("a", "PF"), Detail: true}).Tasks[0].Runs
	if len(runs) != 2 || runs[1].Verdict != ledger.Fail || runs[1].Grade != ledger.Fail || *runs[0].CostUSD != .25 ||
		runs[0].Turns != 4 || runs[0].DurationMs != 61_000 {
		t.Errorf("%+v", runs)
	}
}

func TestTheMatrixOfChecks(t *testing.T) {
	checks := build(t, Input{Records: outcomes("a", "PFEP")}).Tasks[0].Checks
	if diff := cmp.Diff([]CheckRate{{
		Check: "it works", Source: "invariants", Passed: 2, N: 3, Runs: "PFP",
		Mixed: true,
	}}, checks); diff != "" {
		t.Error(diff)
	}
}

func TestTerminalsAreSafeFromForeignText(t *testing.T) {
	evil := run("a", 0, ledger.Fail)
	evil.TaskID, evil.Model.Agent = "t\x1b[2J", "m\x1b]0;x\x07"
	evil.AgentError = &ledger.AgentError{Message: "\x1b[31mred"}
	r := build(t, Input{Records: []ledger.Record{evil}, K: []int{1}, Detail: true})
	var text, xmlText bytes.Buffer
	if err := r.Text(&text, []int{1}); err != nil {
		t.Fatal(err)
	}
	if err := r.JUnit(&xmlText); err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{
		"text": text.String(), "markdown": markdownOf(t, r, []int{1}, Full),
		"junit": xmlText.String(),
	} {
		t.Run(name, func(t *testing.T) {
			if strings.ContainsAny(out, "\x1b\x07") {
				t.Errorf("passes escape sequences on: %q", out)
			}
		})
	}
}

func TestJUnit(t *testing.T) {
	r := build(t, Input{Records: outcomes("a", "PFE"), K: []int{1}})
	var out bytes.Buffer
	if err := r.JUnit(&out); err != nil {
		t.Fatal(err)
	}
	var suites junitSuites
	if err := xml.Unmarshal(out.Bytes(), &suites); err != nil {
		t.Fatal(err)
	}
	suite := suites.Suites[0]
	if suite.Tests != 3 || suite.Failures != 1 || suite.Errors != 1 || suite.Cases[1].Failure == nil ||
		suite.Cases[2].Error == nil || suite.Cases[0].Failure != nil {
		t.Errorf("%+v", suite)
	}
	wantIn(t, out.String(), "invariants it works: a|b")
}

// armRuns are the runs of one arm on so many tasks; each word is one task.
func armRuns(arm string, words ...string) []ledger.Record {
	var records []ledger.Record
	for i, word := range words {
		for _, r := range outcomes(fmt.Sprintf("t%02d", i), word) {
			r.Arm, r.ArmHash = arm, "sha256:"+arm
			records = append(records, r)
		}
	}
	return records
}

func repeat(word string, n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = word
	}
	return words
}

func compared(t *testing.T, cfg CompareConfig, a, b []ledger.Record) *Comparison {
	t.Helper()
	r := build(t, Input{Records: append(a, b...), K: []int{1}})
	c, err := Compare(&r.Groups[0], &r.Groups[1], cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAComparisonDecides(t *testing.T) {
	mixed := append(repeat("FFF", 8), repeat("PFF", 8)...)
	better := append(repeat("PPF", 8), repeat("PPP", 8)...)
	for name, test := range map[string]struct {
		a, b  []string
		claim stats.Claim
	}{
		"better":        {mixed, better, stats.Improved},
		"worse":         {better, mixed, stats.Regressed},
		"the same":      {mixed, mixed, stats.NotProven},
		"too few tasks": {mixed[:3], better[:3], stats.Insufficient},
	} {
		t.Run(name, func(t *testing.T) {
			c := compared(t, CompareConfig{}, armRuns("a", test.a...), armRuns("b", test.b...))
			if c.Decision.Claim != test.claim || c.Decision.Sentence == "" || len(c.Tasks) != len(test.a) {
				t.Errorf("%+v", c.Decision)
			}
		})
	}
}

func TestAComparisonTellsTasksCostAndTime(t *testing.T) {
	a, b := armRuns("a", append(repeat("FPP", 10), "P")...), armRuns("b", repeat("PPP", 10)...)
	for i := range b {
		half := *b[i].CostUSD / 2
		b[i].CostUSD, b[i].DurationMs = &half, b[i].DurationMs*2
	}
	c := compared(t, CompareConfig{}, a, b)
	if c.Cost == nil || math.Abs(c.Cost.All.Est-.5) > 1e-9 || math.Abs(c.Time.All.Est-2) > 1e-9 ||
		math.Abs(c.Turns.All.Est-1) > 1e-9 || c.Cost.CommonlySolved.NTasks != 10 {
		t.Errorf("cost %+v, time %+v", c.Cost, c.Time)
	}
	if d := c.Tasks[0]; d.NA != 3 || d.NB != 3 || math.Abs(d.Delta-1./3) > 1e-9 || d.P == nil || *d.PAdj < *d.P {
		t.Errorf("%+v", d)
	}
	if d := c.Tasks[10]; d.NB != 0 || d.P != nil || c.Decision.NUnpaired != 1 {
		t.Errorf("%+v, unpaired %d", d, c.Decision.NUnpaired)
	}
	var text, markdown bytes.Buffer
	if err := c.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := c.Markdown(&markdown); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), markdown.String()} {
		wantIn(t, out, c.Decision.Sentence, "cost: ×0.50", "minimum detectable difference (80% power, variance uncertain): ", "all tasks")
	}
}

func TestUnevenErrorsForbidAClaim(t *testing.T) {
	c := compared(t, CompareConfig{}, armRuns("a", repeat("FFF", 16)...), armRuns("b", repeat("PPE", 16)...))
	if c.Decision.Claim == stats.Improved || len(c.Decision.Obstacles) == 0 {
		t.Errorf("%+v", c.Decision)
	}
}

func TestNonInferiority(t *testing.T) {
	ask := func(margin float64, looks, tests int, a, b []string) *stats.NonInferiority {
		t.Helper()
		r := build(t, Input{Records: append(armRuns("a", a...), armRuns("b", b...)...), K: []int{1}})
		for i := range r.Groups {
			r.Groups[i].looks = looks
		}
		c, err := Compare(&r.Groups[0], &r.Groups[1], CompareConfig{NonInferior: margin, Tests: tests})
		if err != nil {
			t.Fatal(err)
		}
		wantIn(t, textOf(t, c), "non-inferiority with a margin of")
		return c.Decision.NonInferior
	}
	shown := func(margin float64, a, b []string) bool { return ask(margin, 0, 1, a, b).Shown }
	same, mixed := repeat("PPPPF", 30), append(repeat("PPPPF", 28), "FFFFF", "FPFFF")
	if !shown(.15, same, same) || shown(1e-9, same, same) || shown(.05, same, repeat("PFFFF", 30)) {
		t.Error("equal arms are not non-inferior, or a much worse one is")
	}
	if shown(.15, same[:2], same[:2]) || shown(.9, same[:9], same[:9]) {
		t.Error("a gate passes where nothing is claimed: there are too few tasks")
	}
	// the more often it was looked at, and the more arms, the wider the interval
	once, grown, family := ask(.1, 0, 1, same, mixed), ask(.1, 1, 1, same, mixed), ask(.1, 0, 6, same, mixed)
	if *grown.Limit > *once.Limit-.01 || *family.Limit > *grown.Limit-.005 {
		t.Error("growth or the number of arms does not matter")
	}
	if shown(.15, same, repeat("PPPEF", 30)) {
		t.Error("missing runs do not matter")
	}
}

// Rows come from graders that run an agent's code: whatever they hold, a report is made of it.
func FuzzRows(f *testing.F) {
	f.Add([]byte(`{"test":"x","pass":true}`))
	f.Add([]byte(`{"test":["x"],"pass":"yes","gate":1,"message":{"a":1}}`))
	f.Add([]byte(`{"raw":"\u001b[2J","parseError":true}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		r := run("a", 0, ledger.Fail)
		r.Invariants.Details = []json.RawMessage{raw, raw}
		built, err := Build(Input{Records: []ledger.Record{r}, K: []int{1}, Detail: true})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := built.Markdown(&out, []int{1}, Full); err != nil {
			t.Fatal(err)
		}
		if err := built.JUnit(&out); err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsAny(out.Bytes(), "\x1b\x07") {
			t.Errorf("escape sequences get through: %q", out.Bytes())
		}
	})
}

func TestTheTotalsOfTwoArmsHaveMediansAndCosts(t *testing.T) {
	a, b := armRuns("a", "PP", "PF"), armRuns("b", "FF", "PF")
	for i := range b {
		b[i].Turns, b[i].DurationMs = 10, 81_000
	}
	totals := build(t, Input{Records: append(a, b...), K: []int{1}}).Totals
	if totals.MedianTurns != 7 || totals.MedianDurationMs != 71_000 || *totals.CostUSD != 2 || totals.Attempts != 8 {
		t.Errorf("%+v", totals)
	}
}

// Equal rates are not certainty.
func TestEqualRatesKeepTheWidthOfABinomial(t *testing.T) {
	for word, passes := range map[string]int{"PPF": 14, "PFFFFF": 3, "PPP": 20} {
		t.Run(word, func(t *testing.T) {
			rate := build(t, Input{Records: armRuns("a", repeat(word, 20)...), K: []int{1}}).Groups[0].PassRate
			binomial, err := stats.Wilson(passes, 20, stats.DefaultLevel)
			if err != nil {
				t.Fatal(err)
			}
			if rate.Width() < binomial.Width()-1e-9 {
				t.Errorf("20 tasks with %s each: [%v, %v], a binomial has [%v, %v]", word, rate.Lo, rate.Hi, binomial.Lo,
					binomial.Hi)
			}
		})
	}
}

func TestCostPerPassHasAnInterval(t *testing.T) {
	for name, words := range map[string][]string{
		"differing": {"PPF", "PPP", "PFF"}, "equal": repeat("PPF", 12),
		"all pass": repeat("P", 20),
	} {
		t.Run(name, func(t *testing.T) {
			price := build(t, Input{Records: armRuns("a", words...), K: []int{1}}).Totals.CostPerPass
			if price == nil || !price.Contains(price.Est) || price.Width() < .04 {
				t.Errorf("%+v", price)
			}
		})
	}
	for name, words := range map[string][]string{
		"one task": {"PPF"}, "one task with a verdict": {"PPF", "EEE", "EEE", "E"},
	} {
		one := build(t, Input{Records: armRuns("a", words...), K: []int{1}}).Totals.CostPerPass
		if one.Method != stats.MethodNone || !slices.Equal(one.Warnings, []string{"no interval: one task"}) {
			t.Errorf("%s: %+v", name, one)
		}
	}
}

// The price of a pass is that of the runs with a verdict, with the failed attempts at them: an
// error that was paid for, and that nobody graded, is no part of it.
func TestCostPerPassIsOverRunsWithAVerdict(t *testing.T) {
	records := armRuns("a", "PFE", "PF")
	for i := range records {
		records[i].CostUSD = new(1.)
	}
	retried := records[0]
	retried.Verdict, retried.Attempt = ledger.Error, 0
	records = append([]ledger.Record{retried}, records...)
	if price := build(t, Input{Records: records}).Totals.CostPerPass; price == nil || price.Est != 2.5 {
		t.Errorf("%+v, want $5 for 2 passes", price)
	}
}

// Tasks without a verdict say nothing about the price of a pass: they do not count among the tasks
// whose spread is known.
func TestCoverageOfCostPerPassWhereTasksAreMissing(t *testing.T) {
	const experiments = 300
	truth := math.Exp(.5) // a run costs exp(½·1²) dollars on average, and all pass
	random := rand.New(rand.NewPCG(1, 1))
	covered := 0
	for range experiments {
		records := armRuns("a", slices.Concat(repeat("P", 2), repeat("E", 10))...)
		for i := range records {
			if *records[i].CostUSD = 0; records[i].Verdict == ledger.Pass {
				*records[i].CostUSD = math.Exp(random.NormFloat64())
			}
		}
		if build(t, Input{Records: records}).Totals.CostPerPass.Contains(truth) {
			covered++
		}
	}
	if share := float64(covered) / experiments; share < .93 {
		t.Errorf("%.1f%% of the intervals hold the price", 100*share)
	}
}
