package results_test

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/ledger"
)

// doubtsOf are those of all files of records.
func doubtsOf(records []ledger.Record) string {
	var all []string
	for _, r := range records {
		all = append(all, r.Imported.Doubts...)
	}
	return strings.Join(all, "; ")
}

// What a source does not know is unknown: it is no zero, no failure and no price.
func TestWhatIsNotKnownStaysUnknown(t *testing.T) {
	t.Parallel()
	promptfoo := func(result string) string {
		return `{"evalId": "x", "results": {"version": 3, "results": [{"testCase": {"description": "t"}, ` + result + `}]}}`
	}
	for name, test := range map[string]struct{ text, want string }{
		"reward":            {`{"task_name": "t", "started_at": "", "verifier_result": {"rewards": {"reward": null}}}`, "error nil"},
		"cost of no price":  {promptfoo(`"success": true, "cost": 0`), "pass nil"},
		"cost of an answer": {promptfoo(`"success": true, "cost": 0, "response": {"cost": 0.5}`), "pass 0.5"},
		"cost of a cached answer": {
			promptfoo(`"success": true, "cost": 0, "response": {"cached": true, "tokenUsage": {"cached": 9, "total": 9}}`),
			"pass nil",
		},
		"failure of an older version": {
			promptfoo(`"success": false, "error": "Expected 4", "gradingResult": {"pass": false}`), "fail nil",
		},
		"error of an older version": {promptfoo(`"success": false, "error": "500", "gradingResult": null`), "error nil"},
		"a grader that failed": {
			promptfoo(`"success": false, "failureReason": 1, "gradingResult": {"pass": false, "componentResults": [` +
				`{"pass": true}, {"pass": false, "reason": "503", "metadata": {"graderError": true}}]}`), "error nil",
		},
		"a score below its threshold": {
			promptfoo(`"success": false, "failureReason": 1, "gradingResult": {"pass": false, "componentResults": [` +
				`{"pass": true, "metadata": null}]}`), "fail nil",
		},
		"a grader that failed, and an assertion": {
			promptfoo(`"success": false, "failureReason": 1, "gradingResult": {"pass": false, "componentResults": [` +
				`{"pass": false, "metadata": []}, {"pass": false, "metadata": {"graderError": true}}]}`), "fail nil",
		},
		"JSON lines": {`{"task": "t", "pass": NaN, "cost_usd": Infinity}`, "error nil"},
		"a table":    {"task,pass,cost_usd\nt,nan,N/A\n", "error nil"},
		"a score":    {"task,score\nt,NaN\n", "error nil"},
	} {
		t.Run(name, func(t *testing.T) {
			records := read(t, write(t, filepath.Join(t.TempDir(), "x.json"), []byte(test.text)), foreign.Options{})
			cost := "nil"
			if records[0].CostUSD != nil {
				cost = fmt.Sprint(*records[0].CostUSD)
			}
			if got := records[0].Verdict + " " + cost; got != test.want || records[0].Tokens != nil {
				t.Errorf("%s %+v, want %s", got, records[0].Tokens, test.want)
			}
		})
	}
}

func TestNoRunIsLeftOutInSilence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, content := range map[string]string{
		"job/result.json":   `{"n_total_trials": 3, "started_at": ""}`,
		"job/a/result.json": `{"task_name": "a", "started_at": "", "verifier_result": {"rewards": {"reward": 1}}}`,
		"job/b/result.json": `{"task_name": "b", "started_at": "", "verifier_result": {"rewards": {"reward": 0}}}`,

		"broken/a/result.json": `{"task_name": "a", "started_at": "", "verifier_result": {"rewards": {"reward": 1}}}`,
		"broken/a/config.json": `{}`,
		"broken/b/config.json": `{}`, // it began
		"broken/c/result.json": ``,
		"broken/c/config.json": `{}`,

		"logs/run/model/a/report.json":      `{"a": {"resolved": true}}`,
		"logs/run/model/a/run_instance.log": "",
		"logs/run/model/b/run_instance.log": "", // its patch did not apply
		"logs/run/model/c/report.json":      `{"c": {"resolved": false, "infra_failure": true}}`,

		"skill/iteration-1/e/with_skill/grading.json":       `{"expectations": [{"passed": true}]}`,
		"skill/iteration-2/e/with_skill/grading.json":       `{"expectations": [{"passed": false}]}`,
		"skill/iteration-2/e/with_skill/run-2/grading.json": `{"expectations": [{"passed": true}]}`,

		"ungraded/iteration-1/a/with_skill/grading.json":    `{"expectations": [{"passed": true}]}`,
		"ungraded/iteration-1/a/without_skill/timing.json":  `{"duration_ms": 7}`,
		"ungraded/iteration-1/b/with_skill/outputs/out.txt": "nobody graded it",
	} {
		write(t, filepath.Join(dir, path), []byte(content))
	}
	for name, want := range map[string]string{
		"job":      "a agent not known pass, b agent not known fail",
		"broken":   "a agent not known pass",
		"logs":     "a model pass, c model error, b model error",
		"skill":    "e iteration-1/with_skill pass, e iteration-2/with_skill fail, e iteration-2/with_skill pass",
		"ungraded": "a with_skill pass, b with_skill error, a without_skill error",
	} {
		t.Run(name, func(t *testing.T) {
			records := read(t, filepath.Join(dir, name), foreign.Options{})
			if got := outcomes(records); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			missing := map[string]string{"job": "2 of 3 trials have a result", "broken": "1 of 3 trials have a result"}
			doubts := doubtsOf(records) + records[0].Imported.Incomplete
			if !strings.HasPrefix(doubts, missing[name]) || name == "skill" && doubts != "" {
				t.Errorf("of %s it says %q", name, doubts)
			}
		})
	}
	report := write(t, filepath.Join(dir, "m.json"), []byte(`{"resolved_ids": [], "unresolved_ids": ["a", "b", "c"],
		"error_ids": ["a"], "infra_failure_ids": ["b"], "ambiguous_failure_ids": ["c"], "empty_patch_ids": ["d"]}`))
	records := read(t, report, foreign.Options{})
	if got := outcomes(records); got != "a m error, b m error, c m fail, d m fail" ||
		!strings.Contains(doubtsOf(records), "1 failures") ||
		!strings.Contains(doubtsOf(records), "1 patches are empty") {
		t.Errorf("%s: %s", got, doubtsOf(records))
	}
}

// Two configurations of one provider have one name in the file.
func TestColumnsOfOneNameAreTwoArms(t *testing.T) {
	t.Parallel()
	var results []string
	for column, success := range []bool{true, false, false} {
		for test := range 2 {
			results = append(results, fmt.Sprintf(`{"promptIdx": %d, "testIdx": %d, "testCase": {"vars": {"n": %d}}, `+
				`"provider": {"id": "p", "label": ""}, "prompt": {"raw": "%d", "label": "say {{n}}"}, "success": %t}`,
				column, test, test, test, success))
		}
	}
	path := write(t, filepath.Join(t.TempDir(), "x.json"), []byte(`{"evalId": "x", "results": {"version": 3, "results": [`+
		strings.Join(results, ",")+`]}}`))
	want := `{"n":0} p pass, {"n":1} p pass, {"n":0} p #2 fail, {"n":1} p #2 fail, {"n":0} p #3 fail, {"n":1} p #3 fail`
	if got := outcomes(read(t, path, foreign.Options{})); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// inspect eval-retry writes a log that has the samples of the one before and those it repeats.
func TestALogThatWasContinuedCountsOnce(t *testing.T) {
	t.Parallel()
	log := func(created, second string) []byte {
		return []byte(`{"version": 2, "status": "success", "eval": {"task": "a", "task_id": "T", "model": "m", "created": "` +
			created + `"}, "samples": [{"id": 1, "epoch": 1, "scores": {"s": {"value": "C"}}}, {"id": 2, "epoch": 1, ` +
			second + `}]}`)
	}
	for _, names := range [][2]string{{"1", "2"}, {"2", "1"}} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, names[0]+".json"), log("2026-01-01T00:00:00Z", `"error": {"message": "503"}`))
		write(t, filepath.Join(dir, names[1]+".json"), log("2026-01-01T01:00:00Z", `"scores": {"s": {"value": "I"}}`))
		records := read(t, dir, foreign.Options{})
		if got := outcomes(records); got != "1 m pass, 2 m fail" || records[0].RunIndex != 0 ||
			!strings.Contains(doubtsOf(records), "a log was continued in another") && names[0] == "1" {
			t.Errorf("%s %q", got, doubtsOf(records))
		}
	}
}

func TestALogWithoutSamplesHasItsReductions(t *testing.T) {
	t.Parallel()
	reductions := `[{"scorer": "s", "samples": [{"sample_id": 1, "value": 1.0}, {"sample_id": "b", "value": 0.5}]},
		{"scorer": "s", "reducer": "max", "samples": [{"sample_id": 1, "value": 1}]}]`
	log := `"eval": {"task": "a", "model": "m", "dataset": {"sample_ids": [1, "b", 3]}, "config": {"epochs_reducer": ["mean", "max"]}}`
	document := write(t, filepath.Join(t.TempDir(), "x.json"), []byte(
		`{"version": 2, "status": "success", `+log+`, "reductions": `+reductions+`}`))
	archive := writeArchive(t, filepath.Join(t.TempDir(), "x.eval"), []member{
		{name: "reductions.json", content: []byte(reductions)},
		{name: "header.json", content: []byte(`{"version": 2, "status": "success", ` + log + `}`)},
	})
	for _, path := range []string{document, archive} {
		records := read(t, path, foreign.Options{Score: "s"})
		if got := outcomes(records); got != "1 m pass, b m fail, 3 m error" || *records[1].Score != 0.5 ||
			!strings.Contains(doubtsOf(records), "epochs were reduced before they were logged") ||
			!strings.Contains(doubtsOf(records), "reduce epochs by max") {
			t.Errorf("%s: %s", got, doubtsOf(records))
		}
	}
}

// What went out and came back is still the same task.
func TestContentsComeBack(t *testing.T) {
	t.Parallel()
	records := read(t, writeInspect(t, t.TempDir(), runsOf("m", 0.5)), foreign.Options{})
	for name, to := range map[string]func(io.Writer, []ledger.Record) error{
		"inspect": foreign.Inspect, "promptfoo": foreign.Promptfoo, "harbor": foreign.Harbor, "table": foreign.Table,
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			if err := to(&text, records); err != nil {
				t.Fatal(err)
			}
			for i, r := range read(t, write(t, filepath.Join(t.TempDir(), "x.json"), text.Bytes()), foreign.Options{}) {
				if r.Digests.Visible != ledger.Last(records)[i].Digests.Visible {
					t.Errorf("the content of %s is %s", r.TaskID, r.Digests.Visible)
					break
				}
			}
		})
	}
}

func TestAPipeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := foreign.Read(path, foreign.Options{})
	if err == nil || !strings.Contains(err.Error(), "save it to a file") {
		t.Error(err)
	}
}

// Whatever a format can hold comes back as it was: its other numbers are named where it is written.
func TestEveryNumberComesBack(t *testing.T) {
	t.Parallel()
	number := func(n float64) *float64 { return &n }
	records := []ledger.Record{{
		TaskID: "a", Arm: "m", RunIndex: 2, Attempt: 1, Final: true, Verdict: ledger.Fail, Score: number(0.375),
		CostUSD: number(0), Turns: 7, StartMs: 1_800_000_000_000, EndMs: 1_800_000_009_500, DurationMs: 9500,
		PhaseMs: map[string]int64{"setup": 1000, "agent": 6250, "grade": 2250},
		Tokens:  &ledger.UsageJSON{InputTokens: 11, OutputTokens: 5, CacheReadTokens: 3, CacheWriteTokens: 2},
	}, {
		TaskID: "b", Arm: "m", RunIndex: 2, Attempt: 1, Final: true, Verdict: ledger.Error,
		ErrorClass: ledger.ErrorSetup, CostUSD: number(0.125), DurationMs: 1001, Turns: 1,
		Tokens: &ledger.UsageJSON{InputTokens: 1, OutputTokens: 1},
	}}
	agentOnly := func(r *ledger.Record) {
		if r.PhaseMs != nil {
			r.PhaseMs = map[string]int64{"agent": r.PhaseMs["agent"]}
		}
	}
	for name, test := range map[string]struct {
		to   func(io.Writer, []ledger.Record) error
		lost func(r *ledger.Record) // as report --format says
	}{
		"inspect": {foreign.Inspect, agentOnly},
		"promptfoo": {foreign.Promptfoo, func(r *ledger.Record) {
			agentOnly(r)
			r.StartMs, r.EndMs, r.Turns = 0, 0, 0
		}},
		"table": {foreign.Table, func(r *ledger.Record) {
			agentOnly(r)
			r.StartMs, r.EndMs, r.Turns = 0, 0, 0
			r.Tokens = &ledger.UsageJSON{
				InputTokens:  r.Tokens.Total() - r.Tokens.OutputTokens,
				OutputTokens: r.Tokens.OutputTokens,
			}
		}},
		"harbor": {foreign.Harbor, func(r *ledger.Record) {
			r.Turns = 0
			r.Tokens = &ledger.UsageJSON{
				InputTokens:     r.Tokens.InputTokens + r.Tokens.CacheWriteTokens,
				OutputTokens:    r.Tokens.OutputTokens,
				CacheReadTokens: r.Tokens.CacheReadTokens,
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			if err := test.to(&text, records); err != nil {
				t.Fatal(err)
			}
			back := read(t, write(t, filepath.Join(t.TempDir(), "m.json"), text.Bytes()), foreign.Options{})
			for i := range records {
				want, got := records[i], back[i]
				test.lost(&want)
				if name == "harbor" && i == 1 { // all that is known of it is how long the agent took
					want.PhaseMs = map[string]int64{"agent": 1001}
				}
				numbers := func(r *ledger.Record) string {
					return string(asJSON(t, []any{
						r.TaskID, r.Verdict, r.Score, r.CostUSD, r.Turns, r.StartMs, r.EndMs, r.DurationMs,
						len(r.PhaseMs),
						r.PhaseMs, r.Tokens,
					}))
				}
				if len(got.PhaseMs) == 0 {
					got.PhaseMs = nil
				}
				if numbers(&want) != numbers(&got) || name != "harbor" && name != "promptfoo" && got.RunIndex != 2 {
					t.Errorf("%s, want %s", numbers(&got), numbers(&want))
				}
			}
		})
	}
}
