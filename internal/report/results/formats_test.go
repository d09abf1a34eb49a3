package results_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/ledger"
)

func promptfooResults(runs []one) []any {
	var results []any
	for i, r := range runs {
		result := map[string]any{
			"promptIdx": 0,
			"testIdx":   i,
			"testCase": map[string]any{
				"description": r.task,
				"vars":        map[string]any{"topic": r.task},
				"assert":      []any{map[string]any{"type": "equals", "value": "4"}},
			},
			"provider":      map[string]any{"id": "provider:" + r.arm, "label": r.arm},
			"prompt":        map[string]any{"raw": "about {{topic}}", "label": "about {{topic}}"},
			"success":       r.pass,
			"score":         1,
			"failureReason": 0,
			"latencyMs":     1000 * r.seconds,
			"cost":          r.cost,
			"response": map[string]any{
				"output":     "4",
				"tokenUsage": map[string]any{"prompt": r.input, "completion": r.output},
			},
			"namedScores": map[string]any{"length": 0.25},
		}
		if !r.pass {
			result["failureReason"], result["score"], result["error"] = 1, 0, "Expected output to equal 4"
		}
		if r.errored {
			result["failureReason"], result["success"], result["error"] = 2, false, "503 from the service"
		}
		results = append(results, result)
	}
	return results
}

func promptfooDocument(t *testing.T, runs []one) []byte {
	t.Helper()
	rest := asJSON(t, map[string]any{"results": map[string]any{"version": 3, "results": promptfooResults(runs)}})
	return append([]byte(`{"evalId": "eval-x", `), bytes.TrimPrefix(rest, []byte("{"))...)
}

func writePromptfoo(t *testing.T, dir string, runs []one) string {
	t.Helper()
	return write(t, filepath.Join(dir, runs[0].arm+".json"), promptfooDocument(t, runs))
}

func writePromptfooYAML(t *testing.T, dir string, runs []one) string {
	t.Helper()
	text := "evalId: eval-x\nresults:\n  version: 3\n  results:\n"
	for _, result := range promptfooResults(runs) {
		line, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		text += "    - " + string(line) + "\n"
	}
	return write(t, filepath.Join(dir, runs[0].arm+".yaml"), []byte(text))
}

func writePromptfooLines(t *testing.T, dir string, runs []one) string {
	t.Helper()
	var text []byte
	for _, result := range promptfooResults(runs) {
		line, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	return write(t, filepath.Join(dir, runs[0].arm+".jsonl"), text)
}

// writeHarbor writes a job as Harbor does: a directory with one of each trial.
func writeHarbor(t *testing.T, dir string, runs []one) string {
	t.Helper()
	write(t, filepath.Join(dir, "result.json"), []byte(`{"id": "job", "n_total_trials": 72, "stats": {}}`))
	began := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	for i, r := range runs {
		reward := 0.0
		if r.pass {
			reward = 1
		}
		trial := map[string]any{
			"task_name":     r.task,
			"trial_name":    fmt.Sprintf("%s__%d", r.task, i),
			"task_checksum": "abc" + r.task,
			"agent_info":    map[string]any{"name": r.arm, "version": "1.0", "model_info": map[string]any{"name": "m"}},
			"agent_result": map[string]any{
				"n_input_tokens": r.input, "n_cache_tokens": 0, "n_output_tokens": r.output, "cost_usd": r.cost,
			},
			"verifier_result": map[string]any{"rewards": map[string]any{"reward": reward, "style": 0.5}},
			"started_at":      began.Format("2006-01-02T15:04:05.000000"),
			"agent_execution": map[string]any{
				"started_at":  began.Format(time.RFC3339Nano),
				"finished_at": began.Add(time.Duration(1000*r.seconds) * time.Millisecond).Format(time.RFC3339Nano),
			},
		}
		if r.errored {
			trial["exception_info"] = map[string]any{"exception_type": "ApiError", "exception_message": "503"}
			if r.run == 0 { // with a reward of 0, which a broken run gets all the same
				trial["verifier_result"] = map[string]any{"rewards": map[string]any{"reward": 0}}
			}
		}
		write(t, filepath.Join(dir, fmt.Sprintf("trial%02d", i), "result.json"), asJSON(t, trial))
	}
	return dir
}

// writtenByFit writes results as fit does in a format: there and back, every number is kept.
func writtenByFit(to func(io.Writer, []ledger.Record) error) func(*testing.T, string, []one) string {
	return func(t *testing.T, dir string, runs []one) string {
		t.Helper()
		var text bytes.Buffer
		records := read(t, writeCSV(t, t.TempDir(), runs), foreign.Options{})
		for i := range records {
			records[i].Agent = records[i].Arm
		}
		if err := to(&text, records); err != nil {
			t.Fatal(err)
		}
		return write(t, filepath.Join(dir, runs[0].arm+".json"), text.Bytes())
	}
}

func TestPromptfooScoresAndCache(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(string(promptfooDocument(t, runsOf("m", 0.5))), `"output":`, `"cached": true, "output":`)
	path := write(t, filepath.Join(t.TempDir(), "x.json"), []byte(text))
	records := read(t, path, foreign.Options{Score: "length"})
	if r := records[0]; r.Score == nil || *r.Score != 0.25 || !r.Imported.Fractional ||
		!strings.Contains(strings.Join(r.Imported.Doubts, ""), "some answers were cached") {
		t.Errorf("%+v", r)
	}
	for text, want := range map[string]string{
		`{"evalId": "x", "results": []}`:                                              "fit reads version 3",
		`{"evalId": "x", "results": {"version": 3}}`:                                  "there are no results.results",
		`{"evalId": "x", "results": {"results": [1]}}`:                                "a value is a number",
		`{"evalId": "x", "results": {"results": [`:                                    "it ends too early",
		`{"evalId": "x", "results": {"results": [], "results": []}}`:                  "results are there twice",
		`{"evalId": "x", "evalId": "y"}`:                                              `"evalId" is there twice`,
		`{"evalId": "x", "results": {"results": [{"cost": -1, "success": true}]}}`:    "costUsd must be",
		`{"evalId": "x", "results": {"results": [{"promptIdx": 0, "success": true}]}`: "it ends too early",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := foreign.Read(write(t, filepath.Join(t.TempDir(), "x.json"), []byte(text)), foreign.Options{})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

func TestTestsOfOneDescriptionAreToldApart(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(string(promptfooDocument(t, runsOf("m", 0.5))), `"description": "t0`,
		`"description": "s", "was": "t0`)
	tasks := map[string]int{}
	for _, r := range read(t, write(t, filepath.Join(t.TempDir(), "x.json"), []byte(text)), foreign.Options{}) {
		tasks[r.TaskID]++
	}
	if len(tasks) != 24 || tasks["t10"] != 3 || tasks["s"] != 0 {
		t.Errorf("%v", tasks)
	}
}

func TestHarborRewardsAreChosen(t *testing.T) {
	t.Parallel()
	trial := func(rewards string) string {
		return write(t, filepath.Join(t.TempDir(), "x", "result.json"), []byte(
			`{"task_name": "t", "started_at": "", "verifier_result": {"rewards": `+rewards+`}}`))
	}
	for reward, want := range map[string]float64{"": 1, "style": 0.5} {
		records := read(t, filepath.Dir(filepath.Dir(trial(`{"reward": 1, "style": 0.5}`))), foreign.Options{Score: reward})
		if len(records) != 1 || *records[0].Score != want {
			t.Errorf("%q: %+v", reward, records)
		}
	}
	_, err := foreign.Read(trial(`{"a": 1, "b": 1}`), foreign.Options{})
	if err == nil || !strings.Contains(err.Error(), "there are several scores: a, b; choose one with --reward a") {
		t.Error(err)
	}
	job := t.TempDir()
	for task, rewards := range map[string]string{
		"a": `{"reward": true, "style": false}`, "b": `{"reward": false, "style": true}`, "c": `{"reward": 1}`,
	} {
		write(t, filepath.Join(job, task, "result.json"), []byte(
			`{"task_name": "`+task+`", "started_at": "", "verifier_result": {"rewards": `+rewards+`}}`))
	}
	for reward, want := range map[string]string{"": "pass fail pass", "style": "fail pass error"} {
		records := read(t, job, foreign.Options{Score: reward})
		if got := records[0].Verdict + " " + records[1].Verdict + " " + records[2].Verdict; got != want {
			t.Errorf("%q: %s, want %s", reward, got, want)
		}
	}
	_, err = foreign.Read(job, foreign.Options{Score: "speed"})
	if err == nil || !strings.Contains(err.Error(), `there is no reward "speed"; there are reward, style`) {
		t.Error(err)
	}
}

func TestReportsOfSWEBench(t *testing.T) {
	t.Parallel()
	report := write(t, filepath.Join(t.TempDir(), "m.json"), []byte(`{"resolved_ids": ["a"], "unresolved_ids": ["b"],
		"error_ids": ["c"], "empty_patch_ids": ["d"], "submitted_ids": ["a", "b", "c", "d", "e"]}`))
	logs := t.TempDir()
	for id, content := range map[string]string{
		"a": `{"a": {"resolved": true, "tests_status": {}}}`, "b": `{"b": {"resolved": false}}`,
	} {
		write(t, filepath.Join(logs, "logs", "run_evaluation", "run", "model", id, "report.json"), []byte(content))
	}
	for path, want := range map[string]string{
		report: "a m pass, c m error, b m fail, d m fail, e m error", logs: "a model pass, b model fail",
		filepath.Join(logs, "logs/run_evaluation/run"):       "a model pass, b model fail",
		filepath.Join(logs, "logs/run_evaluation/run/model"): "a model pass, b model fail",
	} {
		t.Run(path, func(t *testing.T) {
			if got := outcomes(read(t, path, foreign.Options{})); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
	both := write(t, filepath.Join(t.TempDir(), "m.json"), []byte(`{"resolved_ids": ["a"], "unresolved_ids": ["a"]}`))
	if _, err := foreign.Read(both, foreign.Options{}); err == nil || !strings.Contains(err.Error(), "and it is not") {
		t.Error(err)
	}
}

// outcomes shows records in a line.
func outcomes(records []ledger.Record) string {
	var parts []string
	for _, r := range records {
		parts = append(parts, r.TaskID+" "+r.Arm+" "+r.Verdict)
	}
	return strings.Join(parts, ", ")
}

func TestAWorkspaceOfASkill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, content := range map[string]string{
		"eval-a/with_skill/grading.json":          `{"assertion_results": [{"passed": true}, {"passed": true}]}`,
		"eval-a/with_skill/timing.json":           `{"total_tokens": 900, "duration_ms": 1500}`,
		"eval-a/without_skill/grading.json":       `{"expectations": [{"passed": true}, {"passed": false}]}`,
		"eval-b/with_skill/grading.json":          `{"expectations": [{"passed": true}, {"text": "not graded"}]}`,
		"eval-b/without_skill/run-1/grading.json": `{}`,
	} {
		write(t, filepath.Join(dir, "iteration-1", path), []byte(content))
	}
	records := read(t, filepath.Join(dir, "iteration-1"), foreign.Options{})
	want := "eval-a with_skill pass, eval-a without_skill fail, eval-b with_skill error, " +
		"eval-b without_skill error"
	if got := outcomes(records); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if records[0].DurationMs != 1500 || *records[1].Score != 0.5 || !records[1].Imported.Fractional ||
		records[0].Tokens != nil {
		t.Errorf("%+v", records[:2])
	}
	if got := outcomes(read(t, dir, foreign.Options{})); got != want {
		t.Errorf("of all iterations: %s", got)
	}
}

func TestAVersionThatIsNotKnownIsNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"evalId": "x", "results": {"results": [{"provider": "p"}]}}`:                          "r is a string",
		`{"task_name": "t", "started_at": "", "verifier_result": {"rewards": {"reward": "1"}}}`: "rewards is a string",
	} {
		_, err := foreign.Read(write(t, filepath.Join(t.TempDir(), "x.json"), []byte(text)), foreign.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestARoundTripKeepsTheTimes: how long a run took, and how long its agent, are two numbers.
func TestARoundTripKeepsTheTimes(t *testing.T) {
	t.Parallel()
	table := write(t, filepath.Join(t.TempDir(), "x.csv"), []byte(
		"task,pass,arm,seconds,agent_seconds\na,1,z,2.5,1.25\nb,0,z,3,\n"))
	records := read(t, table, foreign.Options{})
	for name, to := range map[string]func(io.Writer, []ledger.Record) error{
		"inspect": foreign.Inspect, "promptfoo": foreign.Promptfoo, "harbor": foreign.Harbor, "csv": foreign.Table,
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			if err := to(&text, records); err != nil {
				t.Fatal(err)
			}
			again := read(t, write(t, filepath.Join(t.TempDir(), "x"), text.Bytes()), foreign.Options{})
			if len(again) != 2 || again[0].DurationMs != 2500 || again[0].PhaseMs["agent"] != 1250 ||
				again[1].DurationMs != 3000 || again[0].StartMs != records[0].StartMs {
				t.Errorf("%+v", again)
			}
		})
	}
}
