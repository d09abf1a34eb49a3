package skillcli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/report/skilltest"
)

// measuredSkill is a skill with cases and queries of which the model does some well, by the seeds
// of the cells.
var measuredSkill = map[string]string{
	"SKILL.md": "---\nname: words\ndescription: The words of this house. Use it to write words.\n---\n" +
		"A word is quagga.\n",
	"evals/evals.json": `{"evals": [
		{"id": 1, "prompt": "Write one.", "checks": [{"exists": "a.txt"}, {"contains": ["quagga"], "file": "a.txt"}]},
		{"id": "two", "prompt": "Write two.", "checks": [{"contains": ["quagga"], "file": "a.txt"}]},
		{"id": 3, "prompt": "Write three.", "checks": [{"exists": "a.txt"}, {"matches": "^z", "file": "a.txt"}]}]}`,
	"evals/queries.json": `[
		{"query": "Write four", "should_trigger": true}, {"query": "Write five", "should_trigger": true},
		{"query": "Write six", "should_trigger": true}, {"query": "Read four", "should_trigger": false},
		{"query": "Read five", "should_trigger": false}]`,
}

// The model of the test opens the skill at once, or later than counts, or answers without it.
const drawingModel = `{"usage": {"input": 100, "output": 10, "cache_read": 7}, "turns": [
	{"choices": [
		{"weight": 3, "calls": [{"bash": "cat .claude/skills/words/SKILL.md"}]},
		{"weight": 1, "calls": [{"bash": "ls"}]},
		{"weight": 1, "text": "That is all."}]},
	{"cases": [{"when": {"any_result": "A word is quagga"}, "choices": [
			{"weight": 4, "calls": [{"bash": "echo quagga > a.txt"}]},
			{"weight": 1, "calls": [{"bash": "echo zebra > a.txt"}]}]}],
		"choices": [
			{"weight": 1, "calls": [{"bash": "echo zebra > a.txt"}]},
			{"weight": 1, "calls": [{"bash": "cat .claude/skills/words/SKILL.md"}]}]},
	{"text": "Done."}]}`

// measure runs a command on the skill with a model and returns the directory, what was printed, and
// how often each cell asked the model.
func measure(t *testing.T, into any, args ...string) (dir string, asked map[string]int) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range measuredSkill {
		path := filepath.Join(dir, "words", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asked = map[string]int{}
	var mu sync.Mutex
	url := scriptedtest.ServeAll(t, map[string]string{"": drawingModel}, scripted.Options{
		OnRequest: func(r scripted.Record) {
			mu.Lock()
			defer mu.Unlock()
			asked[r.Key]++
		},
	})
	var out, errs bytes.Buffer
	con := &console.Console{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Dir: dir, Version: "test",
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()},
	}
	command := New(con, agent.NewRegistry(builtin.New()))
	command.SetArgs(append(args, "words", "--format", "json", "--output", filepath.Join(dir, "out"), "--no-probe",
		"--model", "claude-sonnet-4-5", "--model-url", url+"/c/{cell}/seed/{seed}"))
	command.SilenceErrors, command.SilenceUsage = true, true
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return filepath.Join(dir, "out"), asked
}

// recorded is what the tests read of a record of the ledger.
type recorded struct {
	TaskID         string
	Arm            string
	RunIndex       int
	AgentTracePath string
	PhaseMs        map[string]int64
	Tokens         struct{ Input, Output, CacheRead, CacheWrite int64 }
	HiddenTests    struct{ Details []struct{ Pass bool } }
}

// passRate is the fraction of the checks that a run passed.
func (r *recorded) passRate() float64 {
	passed := 0.0
	for _, row := range r.HiddenTests.Details {
		if row.Pass {
			passed++
		}
	}
	return passed / float64(len(r.HiddenTests.Details))
}

func (r *recorded) total() int64 {
	return r.Tokens.Input + r.Tokens.Output + r.Tokens.CacheRead + r.Tokens.CacheWrite
}

func readRecords(t *testing.T, dir string) (records []recorded) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "results.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var r recorded
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.TaskID != "" {
			records = append(records, r)
		}
	}
	return records
}

func readJSON(t *testing.T, into any, path ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestTriggerRatesAreThoseOfTheTraces counts by hand: a run opened the skill if its trace shows a
// tool that returned the body. No run asks its model more than twice.
func TestTriggerRatesAreThoseOfTheTraces(t *testing.T) {
	t.Parallel()
	const runs = 4
	var answer skilltest.TriggerAnswer
	dir, asked := measure(t, &answer, "trigger", "--runs", fmt.Sprint(runs))
	opened := map[string]int{}
	for _, r := range readRecords(t, dir) {
		packed, err := os.Open(filepath.Join(dir, r.AgentTracePath))
		if err != nil {
			t.Fatal(err)
		}
		stream, err := zstd.NewReader(packed)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(stream)
		if err != nil {
			t.Fatal(err)
		}
		_ = packed.Close()
		if strings.Contains(string(text), `"type":"tool_result"`) && strings.Contains(string(text), "A word is quagga") {
			opened[r.TaskID]++
		}
	}
	rates, queries, all := map[bool]float64{}, map[bool]float64{}, 0
	for _, q := range answer.Queries {
		if q.With.Runs != runs || q.With.Passed != opened[q.ID] {
			t.Errorf("%s: %s, must be %d by the traces", q.Text, q.With, opened[q.ID])
		}
		rates[q.Should] += float64(opened[q.ID]) / runs
		queries[q.Should]++
		all += opened[q.ID]
	}
	if all == 0 || all == runs*len(answer.Queries) {
		t.Fatalf("%d runs opened the skill: the test shows nothing", all)
	}
	total := answer.Rates["all"]
	if math.Abs(total.Recall.Est-rates[true]/queries[true]) > 1e-9 ||
		math.Abs(total.FalseFire.Est-rates[false]/queries[false]) > 1e-9 {
		t.Errorf("recall %v and false fires %v, must be %v of %v", total.Recall, total.FalseFire, rates, queries)
	}
	if len(asked) != runs*len(answer.Queries) {
		t.Errorf("%d cells asked the model: %v", len(asked), asked)
	}
	for cell, n := range asked {
		if n > 2 {
			t.Errorf("%s asked the model %d times", cell, n)
		}
	}
}

// TestTheWorkspaceHasTheNumbersOfTheLedger computes the files of the convention again.
func TestTheWorkspaceHasTheNumbersOfTheLedger(t *testing.T) {
	t.Parallel()
	var answer skilltest.Answer
	dir, _ := measure(t, &answer, "test", "--runs", "4")
	type numbers struct {
		Total    int
		Passed   int
		Failed   int
		PassRate float64 `json:"pass_rate"`
	}
	var bench struct {
		Runs []struct {
			EvalID        string `json:"eval_id"`
			Configuration string
			RunNumber     int `json:"run_number"`
			Result        struct {
				numbers
				Seconds float64 `json:"time_seconds"`
				Tokens  int64
			}
		}
		Summary map[string]map[string]json.RawMessage `json:"run_summary"`
	}
	readJSON(t, &bench, dir, "benchmark.json")
	configuration := map[string]string{"with": "with_skill", "without": "without_skill"}
	means := map[string][3]float64{}
	records := readRecords(t, dir)
	if len(records) != 24 || len(bench.Runs) != len(records) {
		t.Fatalf("%d records, %d runs in benchmark.json", len(records), len(bench.Runs))
	}
	for i := range records {
		r := &records[i]
		run := filepath.Join(dir, "eval-"+r.TaskID, configuration[r.Arm], fmt.Sprintf("run-%d", r.RunIndex+1))
		var grading struct {
			Results      []struct{ Passed bool } `json:"assertion_results"`
			Expectations []struct{ Passed bool }
			Summary      numbers
		}
		var timing struct {
			TotalTokens int64 `json:"total_tokens"`
			DurationMs  int64 `json:"duration_ms"`
		}
		readJSON(t, &grading, run, "grading.json")
		readJSON(t, &timing, run, "timing.json")
		want := numbers{Total: len(r.HiddenTests.Details), PassRate: r.passRate()}
		for k, row := range r.HiddenTests.Details {
			if row.Pass {
				want.Passed++
			} else {
				want.Failed++
			}
			if grading.Results[k].Passed != row.Pass || grading.Expectations[k].Passed != row.Pass {
				t.Errorf("%s: row %d: %+v", run, k, grading)
			}
		}
		if grading.Summary != want || timing.TotalTokens != r.total() || timing.DurationMs != r.PhaseMs["agent"] {
			t.Errorf("%s: %+v and %+v, must be %+v, %d tokens and %d ms", run, grading.Summary, timing, want, r.total(),
				r.PhaseMs["agent"])
		}
		found := false
		for _, one := range bench.Runs {
			if one.EvalID == r.TaskID && one.Configuration == configuration[r.Arm] && one.RunNumber == r.RunIndex+1 {
				found = one.Result.numbers == want && one.Result.Tokens == r.total() &&
					one.Result.Seconds == float64(r.PhaseMs["agent"])/1000
			}
		}
		if !found {
			t.Errorf("%s: benchmark.json says something else", run)
		}
		sum := means[r.Arm]
		for k, value := range []float64{r.passRate(), float64(r.PhaseMs["agent"]) / 1000, float64(r.total())} {
			sum[k] += value / 12
		}
		means[r.Arm] = sum
	}
	for k, key := range []string{"pass_rate", "time_seconds", "tokens"} {
		for arm, name := range configuration {
			var spread struct{ Mean, StdDev float64 }
			if err := json.Unmarshal(bench.Summary[name][key], &spread); err != nil {
				t.Fatal(err)
			}
			squares := 0.0
			for i := range records {
				r := &records[i]
				values := []float64{r.passRate(), float64(r.PhaseMs["agent"]) / 1000, float64(r.total())}
				if r.Arm == arm {
					squares += (values[k] - means[arm][k]) * (values[k] - means[arm][k])
				}
			}
			ours := answer.Summaries[arm]
			own := []skilltest.Spread{ours.PassRate, ours.Seconds, *ours.Tokens}[k]
			if math.Abs(spread.Mean-means[arm][k]) > 1e-6 || math.Abs(spread.StdDev-math.Sqrt(squares/11)) > 1e-6 ||
				own != skilltest.Spread(spread) {
				t.Errorf("%s of %s: %+v and %+v, must be %v", key, name, spread, own, means[arm][k])
			}
		}
		var delta float64
		if err := json.Unmarshal(bench.Summary["delta"][key], &delta); err != nil ||
			math.Abs(delta-(means["with"][k]-means["without"][k])) > 1e-6 {
			t.Errorf("delta of %s: %v, %v", key, delta, err)
		}
	}
	if means["with"][0] == means["without"][0] || means["with"][0] == 1 {
		t.Errorf("the means %v show nothing", means)
	}
}
