package results_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/foreign"
)

// The first arm is the baseline: the known one, or the one that the source names first.
func TestTheBaselineIsTheFirstArmOfASource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := func(model, created string) []byte {
		return fmt.Appendf(nil, `{"version": 2, "status": "success", "eval": {"task": "t", "model": %q, "created": %q},
			"samples": [{"id": 1, "epoch": 1, "scores": {"s": {"value": "C"}}}]}`, model, created)
	}
	result := func(column int, label string) string {
		return fmt.Sprintf(`{"promptIdx": %d, "testIdx": 0, "provider": {"label": %q}, "success": true}`, column, label)
	}
	for path, content := range map[string]string{
		"skill/iteration-1/e/with_skill/grading.json":    `{"expectations": [{"passed": true}]}`,
		"skill/iteration-1/e/without_skill/grading.json": `{"expectations": [{"passed": false}]}`,
		"former/iteration-1/e/new_skill/grading.json":    `{"expectations": [{"passed": true}]}`,
		"former/iteration-1/e/old_skill/grading.json":    `{"expectations": [{"passed": false}]}`,

		"table.csv":      "task,arm,pass\nt,zebra,0\nt,apple,1\n",
		"roles.csv":      "task,arm,pass\nt,with_skill,1\nt,without_skill,0\n",
		"promptfoo.json": `{"results": {"results": [` + result(1, "apple") + "," + result(0, "zebra") + `]}}`,

		"logs/a.json": string(log("apple", "2026-02-02T00:00:00+00:00")),
		"logs/b.json": string(log("zebra", "2026-01-01T00:00:00+00:00")),
	} {
		write(t, filepath.Join(dir, path), []byte(content))
	}
	for name, want := range map[string]string{
		"skill":          "without_skill, with_skill",
		"former":         "old_skill, new_skill",
		"roles.csv":      "without_skill, with_skill",
		"table.csv":      "zebra, apple",
		"promptfoo.json": "zebra, apple",
		"logs":           "zebra, apple",
	} {
		t.Run(name, func(t *testing.T) {
			groups := sidesOf(t, false, filepath.Join(dir, name))
			if got := groups[0].Name + ", " + groups[1].Name; got != want {
				t.Errorf("is compared as %s, want %s", got, want)
			}
		})
	}
}

// Copies of one task are no more evidence than the task.
func TestImportedCopiesOfATaskCountOnce(t *testing.T) {
	t.Parallel()
	table := func(pass int, content func(task int) int) string {
		text := "task,pass,content\n"
		for task := range 12 {
			text += fmt.Sprintf("t%02d,%d,%d\n", task, pass, content(task))
		}
		return text
	}
	compare := func(content func(task int) int) *report.Comparison {
		dir := t.TempDir()
		return compared(t, write(t, filepath.Join(dir, "a.csv"), []byte(table(0, content))),
			write(t, filepath.Join(dir, "b.csv"), []byte(table(1, content))), "historical")
	}
	if c := compare(func(task int) int { return task }); !c.Differ() {
		t.Errorf("12 tasks: %s", c.Decision.Sentence)
	}
	c := compare(func(int) int { return 7 })
	if c.Differ() || !strings.Contains(c.Decision.Sentence, "12 tasks in 1 cluster") ||
		!strings.Contains(strings.Join(c.Warnings, "\n"), "copies of task t00: 11") {
		t.Errorf("12 copies of one task: %s; %s", c.Decision.Sentence, c.Warnings)
	}
	// what has no content is not the same
	dir := t.TempDir()
	var log strings.Builder
	for id := range 12 {
		fmt.Fprintf(&log, `,{"id": %d, "epoch": 1, "input": "", "target": "", "scores": {"s": {"value": "C"}}}`, id)
	}
	records := read(t, write(t, filepath.Join(dir, "x.json"), []byte(`{"version": 2, "status": "success", "samples": [`+
		log.String()[1:]+`]}`)), foreign.Options{})
	if records[0].Digests.Visible != "" {
		t.Errorf("the digest of nothing is %s", records[0].Digests.Visible)
	}
}

// Whoever drops what failed gets no claim for it.
func TestRunsThatASourceCountsAndLacksAreMissing(t *testing.T) {
	t.Parallel()
	log := func(name string, kept func(id int) bool) string {
		var ids, samples []string
		for id := range 24 {
			ids = append(ids, fmt.Sprint(id))
			value := "C"
			if name == "before" && id%2 == 0 || name == "after" && !kept(id) {
				value = "I"
			}
			if kept(id) {
				samples = append(samples, fmt.Sprintf(`{"id": %d, "epoch": 1, "scores": {"s": {"value": %q}}}`, id, value))
			}
		}
		return write(t, filepath.Join(t.TempDir(), name+".json"), fmt.Appendf(nil, `{"version": 2, "status": "success",
			"eval": {"task": "t", "model": %q, "dataset": {"sample_ids": [%s]}}, "samples": [%s]}`, name,
			strings.Join(ids, ","), strings.Join(samples, ",")))
	}
	all := func(int) bool { return true }
	before := log("before", all)
	if c := compared(t, before, log("after", all), "historical"); !c.Differ() {
		t.Errorf("all samples: %s", c.Decision.Sentence)
	}
	c := compared(t, before, log("after", func(id int) bool { return id%2 == 1 }), "historical")
	if c.Differ() || c.Unsure.B.Missing != 12 {
		t.Errorf("%d samples are missing: %s", c.Unsure.B.Missing, c.Decision.Sentence)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "logs/run/model/a/report.json"), []byte(`{"a": {"resolved": true}}`))
	write(t, filepath.Join(dir, "logs/run/model/b/patch.diff"), nil)
	if got := outcomes(read(t, filepath.Join(dir, "logs"), foreign.Options{})); got != "a model pass, b model error" {
		t.Errorf("an instance without a report: %s", got)
	}
}

// What an agent has written among its outputs is no result.
func TestOutputsOfAgentsAreNoResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, path := range []string{"grading.json", "outputs/grading.json", "outputs/run-1/grading.json"} {
		write(t, filepath.Join(dir, "iteration-1/e/with_skill", path), []byte(`{"expectations": [{"passed": true}]}`))
	}
	if got := outcomes(read(t, dir, foreign.Options{})); got != "e with_skill pass" {
		t.Errorf("read %s", got)
	}
}

// A pipe inside of a source is never opened: nobody may write to it.
func TestAPipeInADirectoryIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "job/a/result.json"),
		[]byte(`{"task_name": "a", "started_at": "", "verifier_result": {"rewards": {"reward": 1}}}`))
	write(t, filepath.Join(dir, "job/b/config.json"), []byte(`{}`))
	write(t, filepath.Join(dir, "skill/iteration-1/e/with_skill/grading.json"), []byte(`{"expectations": []}`))
	for _, pipe := range []string{"job/b/result.json", "skill/iteration-1/e/with_skill/timing.json"} {
		if err := syscall.Mkfifo(filepath.Join(dir, pipe), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := outcomes(read(t, filepath.Join(dir, "job"), foreign.Options{})); got != "a agent not known pass" {
		t.Errorf("read %s", got)
	}
	if _, err := foreign.Read(filepath.Join(dir, "skill"), foreign.Options{}); err == nil ||
		!strings.Contains(err.Error(), "timing.json is not a regular file") {
		t.Errorf("of a pipe it says %v", err)
	}
}

// Which key stands first says nothing about a document.
func TestFormatsAreRecognisedInAnyOrderOfKeys(t *testing.T) {
	t.Parallel()
	padding := `"metadata": {"padding": "` + strings.Repeat("x", 100<<10) + `", "evalId": 1}, `
	for text, want := range map[string]string{
		`{` + padding + `"samples": [{"id": 1, "epoch": 1, "scores": {"s": {"value": 1}}}], "status": "success",
			"results": {}, "eval": {"model": "m"}, "version": 2}`: "inspect",
		`{"config": {}, ` + padding + `"results": {"results": [{"success": true}]}, "evalId": "x"}`: "promptfoo",
		`{` + padding + `"trial_results": [{"verifier_result": {"rewards": {"reward": 1}}, "task_name": "a"}],
			"started_at": ""}`: "harbor",
		`{"task": "a", "pass": 1, "results": {}, "version": 2}` + "\n" + `{"task": "b", "pass": 1}`: "table",
	} {
		t.Run(text, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "x.json"), []byte(text))
			if got := foreign.Format(path); got != want {
				t.Errorf("%.40s is taken for %q, want %s", text, got, want)
			}
			if _, err := foreign.Read(path, foreign.Options{Format: want}); err != nil {
				t.Errorf("%s: %v", want, err)
			}
		})
	}
}

// Rewards of different names are not one score.
func TestHarborRewardsAreNotMixed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for trial, reward := range map[string]string{"a": "reward", "b": "accuracy"} {
		write(t, filepath.Join(dir, trial, "result.json"), fmt.Appendf(nil,
			`{"task_name": %q, "started_at": "", "verifier_result": {"rewards": {%q: 1}}}`, trial, reward))
	}
	if _, err := foreign.Read(dir, foreign.Options{}); err == nil ||
		!strings.Contains(err.Error(), "there are several scores: accuracy, reward; choose one with --reward") {
		t.Errorf("of trials with different rewards it says %v", err)
	}
}

// A number that cannot be is not known.
func TestImpossibleUsageIsNotKnown(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]string{
		`{"input_tokens": 7, "output_tokens": 2, "total_cost": 0.5}`:  "true true",
		`{"input_tokens": -7, "output_tokens": 2, "total_cost": 0.5}`: "false true",
		`{"input_tokens": 1e300, "output_tokens": 2}`:                 "false false",
		`{"input_tokens": 7, "output_tokens": 2, "total_cost": -1}`:   "true false",
	} {
		t.Run(usage, func(t *testing.T) {
			records := read(t, write(t, filepath.Join(t.TempDir(), "x.json"), []byte(`{"version": 2, "status": "success",
			"samples": [{"id": 1, "epoch": 1, "scores": {"s": {"value": 1}}, "model_usage": {"m": `+usage+`}}]}`)),
				foreign.Options{})
			if got := fmt.Sprint(records[0].Tokens != nil, " ", records[0].CostUSD != nil); got != want {
				t.Errorf("known tokens and cost %s, want %s", got, want)
			}
		})
	}
}
