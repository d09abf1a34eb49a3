package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/report/skilltest"
	"github.com/fit-eval/fit/stats"
)

// Scripts of models that are asked for a greeting. The one reads the skill, where it is offered,
// and does what its body says; the other looks at nothing.
const (
	openingModel = `{"scenarios": [{"name": "offered", "when": {"request": "zebrafinch"}, "turns": [
		{"calls": [{"bash": "cat .claude/skills/greetings/SKILL.md .agents/skills/greetings/SKILL.md 2>/dev/null; true"}]},
		{"cases": [{"when": {"any_result": "A greeting is the word hello"}, "calls": [
			{"bash": "echo hello > greeting.txt"}]}], "calls": [{"bash": "echo good day > greeting.txt"}]},
		{"text": "Done."}]}],
		"turns": [{"calls": [{"bash": "echo good day > greeting.txt"}]}, {"text": "Done."}]}`
	idleModel = `{"turns": [{"calls": [{"bash": "echo good day > greeting.txt"}]}, {"text": "Done."}]}`
	// the placebo is opened, and the agent does well or badly by chance, whatever it read
	luckyModel = `{"scenarios": [{"name": "offered", "when": {"request": "zebrafinch"}, "turns": [
		{"calls": [{"bash": "cat .claude/skills/greetings/SKILL.md"}]},
		{"choices": [{"weight": 1, "calls": [{"bash": "echo hello > greeting.txt"}]},
			{"weight": 1, "calls": [{"bash": "echo good day > greeting.txt"}]}]},
		{"text": "Done."}]}],
		"turns": [{"choices": [{"weight": 1, "calls": [{"bash": "echo hello > greeting.txt"}]},
			{"weight": 1, "calls": [{"bash": "echo good day > greeting.txt"}]}]}, {"text": "Done."}]}`
)

// writeSkill writes a skill with twelve test cases below a directory.
func writeSkill(t *testing.T, dir, body string) {
	t.Helper()
	type evalCase struct {
		ID     int              `json:"id"`
		Prompt string           `json:"prompt"`
		Checks []map[string]any `json:"checks"`
	}
	var cases []evalCase
	for i := range 12 {
		cases = append(cases, evalCase{
			ID:     i + 1,
			Prompt: fmt.Sprintf("Write a greeting for guest %d to greeting.txt.", i+1),
			Checks: []map[string]any{{"contains": []string{"hello"}, "file": "greeting.txt"}},
		})
	}
	evals, err := json.Marshal(map[string]any{"skill_name": "greetings", "evals": cases})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"SKILL.md": "---\nname: greetings\ndescription: How a greeting is worded, by the rules of zebrafinch. Use it " +
			"for greetings.\n---\n" + body + "\n",
		"evals/evals.json": string(evals),
	} {
		path := filepath.Join(dir, "greetings", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// testSkill runs fit skill test and returns its answer.
func testSkill(t *testing.T, e *experiments, args ...string) *skilltest.Answer {
	t.Helper()
	var answer skilltest.Answer
	if err := json.NewDecoder(runSkill(t, e, "test", args...)).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return &answer
}

// runSkill runs a command of fit skill and returns what it prints.
func runSkill(t *testing.T, e *experiments, command string, args ...string) *bytes.Buffer {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{
		"fit", "skill", command, "greetings", "--format", "json", "--no-probe", "--runs", "1", "--attempts", "2",
	}, args...)
	code := cli.Run(t.Context(), args, &console.Console{
		Stdin:   strings.NewReader(""),
		Stdout:  &out,
		Stderr:  &errs,
		Dir:     e.dir,
		Version: "test",
		Environ: []string{"PATH=" + e.path, "HOME=" + t.TempDir(), "LANG=C.UTF-8"},
	})
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs.String())
	}
	return &out
}

// openedOf returns in how many runs of the arm with the skill it was given and opened.
func openedOf(a *skilltest.Answer) (given, opened int) {
	for _, piece := range a.Comparison.Treatment.Pieces {
		for _, arm := range piece.Arms {
			if arm.Arm == "with" && arm.Opened != nil {
				given, opened = given+arm.Whole, opened+arm.Opened.Runs
			}
		}
	}
	return given, opened
}

// TestSkillsAreMeasured: a skill that helps is improved, one that says nothing useful is not, and
// one that is never opened is not improved by its body and is said to be unopened; with the real
// agents.
func TestSkillsAreMeasured(t *testing.T) {
	t.Parallel()
	const helps, placebo = "A greeting is the word hello.", "A greeting is the word ahoy!!"
	for _, agent := range []string{"claude-code", "codex", "pi-agent", "opencode", "qwen-code", "builtin"} {
		for name, test := range map[string]struct {
			body, model string
			claim       stats.Claim
			reading     string
			opened      int
		}{
			"helps":    {helps, openingModel, stats.Improved, skilltest.OnlyWith, 12},
			"placebo":  {placebo, openingModel, stats.NotProven, skilltest.InNeither, 12},
			"unopened": {helps, idleModel, stats.NotProven, skilltest.InNeither, 0},
		} {
			shared := agent == "opencode" || agent == "qwen-code" // one adapter, and slow to start
			if name == "placebo" && agent != "builtin" || name == "unopened" && shared {
				continue // the same path as helps
			}
			t.Run(agent+"/"+name, func(t *testing.T) {
				t.Parallel()
				e := newExperiments(t)
				writeSkill(t, e.dir, test.body)
				url := scriptedtest.ServeAll(t, map[string]string{"": test.model}, scripted.Options{})
				a := testSkill(t, e, "--agent", agent, "--model", "claude-sonnet-4-5", "--model-url", url)
				given, opened := openedOf(a)
				if claim := a.Comparison.Decision.Claim; claim == stats.Improved != (test.claim == stats.Improved) ||
					given != 12 || opened != test.opened {
					t.Errorf("claim %s, given %d and opened %d of 12: %s", claim, given, opened,
						a.Comparison.Decision.Sentence)
				}
				for _, one := range a.Assertions {
					if one.Reading != test.reading || one.With.Runs != 1 || one.Without.Runs != 1 {
						t.Errorf("%+v, want %s", one, test.reading)
					}
				}
				said := strings.Join(a.Comparison.Treatment.Lines, "\n") + a.Comparison.Treatment.Remark()
				if never := strings.Contains(said, "never opened"); never != (test.opened == 0) {
					t.Errorf("said to be never opened: %v\n%s", never, said)
				}
			})
		}
	}
}

// besideModel works only where another skill lies beside the one that is tested.
const besideModel = `{"scenarios": [
	{"name": "alone", "when": {"not": {"request": "zanzibar"}}, "turns": [{"text": "There is no other skill."}]},
	{"name": "offered", "when": {"request": "zebrafinch"}, "turns": [
		{"calls": [{"bash": "echo hello > greeting.txt"}]}, {"text": "Done."}]}],
	"turns": [{"calls": [{"bash": "echo good day > greeting.txt"}]}, {"text": "Done."}]}`

// TestEveryAgentTestsTheSkill: several agents test one skill, each with an answer of its own, and
// both arms have the skills of --with beside it.
func TestEveryAgentTestsTheSkill(t *testing.T) {
	t.Parallel()
	e := newExperiments(t)
	writeSkill(t, e.dir, "A greeting is the word hello.")
	const other = "---\nname: other\ndescription: How we trade with zanzibar. Use it for orders.\n---\nAsk first.\n"
	const evals = `{"evals": [{"id": 1, "prompt": "Greet.", "checks": [
		{"exists": "greeting.txt"}, {"contains": ["hello"], "file": "greeting.txt"}]}]}`
	err := errors.Join(os.Mkdir(filepath.Join(e.dir, "other"), 0o755),
		os.WriteFile(filepath.Join(e.dir, "other", "SKILL.md"), []byte(other), 0o600),
		os.WriteFile(filepath.Join(e.dir, "greetings", "evals", "evals.json"), []byte(evals), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	agents := []string{"codex", "builtin"}
	out := runSkill(t, e, "test", "--agent", agents[0], "--agent", agents[1], "--with", "other", "--model",
		"claude-sonnet-4-5", "--model-url", scriptedtest.Serve(t, besideModel))
	answers := json.NewDecoder(out)
	for _, agent := range agents {
		var a skilltest.Answer
		if err := answers.Decode(&a); err != nil {
			t.Fatal(err)
		}
		if a.Comparison.B.Agent != agent || len(a.Assertions) != 2 || a.Assertions[0].Without.Passed != 1 ||
			a.Assertions[1].Reading != skilltest.OnlyWith {
			t.Errorf("%s: the answer of %s: %+v", agent, a.Comparison.B.Agent, a.Assertions)
		}
		at := filepath.Join(e.dir, "greetings-workspace", "iteration-1", agent, "benchmark.json")
		if _, err := os.Stat(at); err != nil {
			t.Error(err)
		}
	}
}

// wanderingModel opens the skill where the prompt is about greetings, and goes on for long.
const wanderingModel = `{"turns": [
	{"cases": [{"when": {"any_prompt": "Greet"}, "calls": [
		{"bash": "cat .claude/skills/greetings/SKILL.md .agents/skills/greetings/SKILL.md 2>/dev/null; true"}]}],
		"calls": [{"bash": "ls"}]},
	{"calls": [{"bash": "ls"}]}, {"calls": [{"bash": "ls"}]}, {"calls": [{"bash": "ls"}]}, {"text": "Done."}]}`

// TestATriggerCostsTwoCalls: a run of the real agents ends as soon as it is decided whether the
// skill was opened.
func TestATriggerCostsTwoCalls(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude-code", "codex", "pi-agent"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			e := newExperiments(t)
			writeSkill(t, e.dir, "A greeting is the word hello.")
			queries := filepath.Join(e.dir, "queries.json")
			err := os.WriteFile(queries, []byte(`[{"query": "Greet the guest", "should_trigger": true},
				{"query": "List the files", "should_trigger": false}]`), 0o600)
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			asked := map[string]int{}
			url := scriptedtest.ServeAll(t, map[string]string{"": wanderingModel}, scripted.Options{
				OnRequest: func(r scripted.Record) {
					mu.Lock()
					defer mu.Unlock()
					asked[r.Key]++
				},
			})
			var a skilltest.TriggerAnswer
			out := runSkill(t, e, "trigger", "--agent", agent, "--queries", queries, "--model", "claude-sonnet-4-5",
				"--model-url", url+"/c/{cell}")
			if err := json.NewDecoder(out).Decode(&a); err != nil || len(a.Queries) != 2 {
				t.Fatalf("%+v, %v", a, err)
			}
			for i, want := range []int{1, 0} {
				if q := &a.Queries[i]; q.With.Runs != 1 || q.With.Passed != want {
					t.Errorf("%s: opened in %s, must be in %d", q.Text, q.With, want)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for cell, calls := range asked {
				if calls > 2 {
					t.Errorf("%s asked the model %d times", cell, calls)
				}
			}
			if len(asked) != 2 {
				t.Errorf("%d cells asked the model", len(asked))
			}
		})
	}
}

// TestAPlaceboIsRarelyClaimed: a skill that shares name, description and length with one that
// helps, and changes nothing, is claimed in at most 5% of experiments, plus three standard errors.
func TestAPlaceboIsRarelyClaimed(t *testing.T) {
	t.Parallel()
	experiments, claimed := 4, 0
	if os.Getenv("FIT_SOAK") != "" {
		experiments = 200
	}
	for seed := range experiments {
		e := newExperiments(t)
		writeSkill(t, e.dir, "A greeting is the word ahoy!!")
		url := scriptedtest.ServeAll(t, map[string]string{"": luckyModel}, scripted.Options{})
		a := testSkill(t, e, "--agent", "builtin", "--model", "claude-sonnet-4-5", "--seed", strconv.Itoa(seed+1),
			"--model-url", url+"/c/{cell}/seed/{seed}")
		if claim := a.Comparison.Decision.Claim; claim == stats.Improved || claim == stats.Regressed {
			claimed++
		}
	}
	n := float64(experiments)
	if most := 0.05*n + 3*math.Sqrt(0.05*0.95*n); float64(claimed) > most {
		t.Errorf("%d of %d placebos were claimed, at most %.1f", claimed, experiments, most)
	}
	t.Logf("%d of %d placebos were claimed", claimed, experiments)
}
