package benchmarkcli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/testenv"
)

func TestTasksAreSelectedByGlobTagAndNumber(t *testing.T) {
	c, run := tiny(t, 4)
	c.write(map[string]string{
		"family/tasks/t001/task.yaml": "tags: [quick, text]\n",
		"family/tasks/t003/task.yaml": "tags: [slow]\n",
	})
	for want, flags := range map[string][]string{
		"4 tasks": nil, "1 task ": {"--task", "t002"}, "2 tasks": {"--tag", "quick", "--tag", "slow"},
		"3 tasks": {"--task", "t00[0-2]"},
	} {
		c.want(0, with(run, append(flags, "--runs", "1", "--output", "out-"+want)...)...)
		c.contains(c.stderr, want)
	}
	c.want(0, with(run, "--runs", "1", "--task", "t*", "--limit", "2", "--output", "limited")...)
	c.contains(c.stderr, "2 tasks")
	c.want(2, with(run, "--tag", "nobody")...)
	c.want(2, with(run, "--task", "x*")...)
	c.contains(c.stderr, `no task "x*"`)
}

// A run says before it spends whether it can end in a claim.
func TestARunThatCanOnlyDescribeSaysSo(t *testing.T) {
	c, run := tiny(t, 2)
	url := ""
	for i, arg := range run {
		if arg == "--model-url" {
			url = run[i+1]
		}
	}
	c.want(0, "run", "--family", "family", "--runs", "1", "--output", "two", "--model-url", url,
		"--arm", "a=agent:builtin,model:claude-sonnet-4-5", "--arm", "b=agent:builtin,model:claude-sonnet-4-5,prompt:x")
	c.contains(c.stderr, "tasks: 2: results will be descriptive only; a claim needs at least 10")
}

// Every cause of errors is shown once, with the number of cells and a way out.
func TestCausesOfErrorsAreShownOnce(t *testing.T) {
	c, run := tiny(t, 3)
	for _, id := range []string{"t000", "t002"} {
		c.write(map[string]string{"family/tasks/" + id + "/hooks/preflight.sh": "#!/bin/sh\necho 'no database' >&2\nexit 7\n"})
	}
	c.want(3, with(run, "--runs", "1")...)
	c.contains(c.stderr, "2 runs without a verdict (preflight): ", "no database", "fit-benchmark lint")
	if n := strings.Count(c.stderr, "runs without a verdict"); n != 1 {
		t.Errorf("%d causes are shown:\n%s", n, c.stderr)
	}
}

// A family may be a stranger's: neither its words nor what its hooks say reach the terminal as they
// are.
func TestNothingOfAFamilyReachesTheTerminalAsItIs(t *testing.T) {
	c, run := tiny(t, 1)
	const evil = `evil\e[31m\u202e\u200b`
	c.write(map[string]string{
		"family/family.yaml":          `name: "` + evil + `"`,
		"family/tasks/t000/task.yaml": `{tags: ["` + evil + `"], checks: ["` + evil + `"]}`,
		"family/tasks/t000/hooks/invariants.sh": "#!/bin/sh\n" +
			`printf '{"test":"evil\\u001b[31m\\u202e\\u200b","pass":false,"message":"\\u001b[31m\\u202e"}\n' >&3` + "\n",
		"family/tasks/t000/hooks/preflight.sh": "#!/bin/sh\nprintf '\\033[31m\\342\\200\\256' >&2\nexit 7\n",
	})
	for code, args := range map[int][]string{
		0: {"list", "--family", "family"},
		1: {"lint", "--family", "family"},
		3: with(run, "--runs", "1", "--format", "text"),
	} {
		c.want(code, args...)
		if out := c.stdout + c.stderr; strings.ContainsAny(out, "\x1b\u202e\u200b") {
			t.Errorf("%s: %q", args, out)
		}
	}
}

func TestWhatCannotBeMeantIsRefusedBeforeItCosts(t *testing.T) {
	c, run := tiny(t, 1)
	for text, args := range map[string][]string{
		"e.g. 0.8 for 80%":                     with(run, "--min-pass-rate", "80"),
		"is not a regular file":                with(run, "--metrics", "/dev/full"),
		"more than 1000000 cells":              with(run, "--runs", "1000000000"),
		"has none":                             with(run, "--max-cost-usd", "5", "--model", "claude-of-nobody"),
		"no such file":                         {"lint", "--family", "nope"},
		"must be from 0 to 1":                  {"report", "--min-pass-rate", "80"},
		"--metrics /dev/full":                  {"report", "--metrics", "/dev/full"},
		"is not empty":                         {"init", "family"},
		"must be one of shell, node":           {"init", "--runner", "cobol", "new"},
		"is not a valid model URL":             with(run, "--model-url", "localhost"),
		"must be a whole number of at least 1": with(run, "--limit", "0"),
	} {
		t.Run(text, func(t *testing.T) {
			c.want(2, args...)
			if !strings.Contains(c.stderr, text) {
				t.Errorf("%v: %q is not in %q", args, text, c.stderr)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(c.dir, "out")); err == nil {
		t.Error("a mistake has left a run directory")
	}
}

// More runs are added to what is there, and the report says so.
func TestRunsAreAddedAndTheReportSaysSo(t *testing.T) {
	c, run := tiny(t, 2)
	c.want(0, with(run, "--runs", "1")...)
	c.want(0, with(run, "--runs", "3")...)
	c.contains(c.stderr, "4 to do", "the experiment grows after 2 attempts: runs: 1, now 3")
	c.want(0, "report", "--input", "out", "--format", "text")
	if n := strings.Count(c.stdout, "note: the "); n != 1 {
		t.Errorf("%d notes about one enlargement:\n%s", n, c.stdout)
	}
	c.want(0, with(run, "--runs", "3", "--model-url", c.model(`{"turns":[{"text":"x"}]}`))...)
	c.contains(c.stderr, "0 to do")
}

// Where the size is a part of the rule, nothing can be added, and one line says why.
func TestAnExperimentOfFixedSizeSaysSo(t *testing.T) {
	for reason, flag := range map[string]string{
		"a shard has a fixed size":                           "--shard=1/2",
		"an experiment that may stop early has a fixed size": "--stop-early",
	} {
		c, run := tiny(t, 10)
		url := run[slices.Index(run, "--model-url")+1]
		run = []string{
			"run", "--family", "family", "--output", "out", "--model-url", url, flag,
			"--arm", "a=agent:builtin,model:claude-sonnet-4-5", "--arm", "b=agent:builtin,model:claude-sonnet-4-5,prompt:x",
		}
		c.want(0, with(run, "--runs", "1")...)
		c.want(2, with(run, "--runs", "2")...)
		c.contains(c.stderr, reason, "runs: 1, now 2", "choose another --output")
		if n := strings.Count(strings.TrimSpace(c.stderr), "\n"); n != 0 {
			t.Errorf("more than one line: %s", c.stderr)
		}
	}
}

// A workspace that lies in a repository can never work: that is found once, before the first cell.
func TestWhatCannotWorkIsFoundBeforeTheFirstCell(t *testing.T) {
	c, run := tiny(t, 3)
	top := t.TempDir()
	if err := os.MkdirAll(filepath.Join(top, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", top)
	c.want(0, with(run, "--runs", "1", "--output", "empty-git")...) // an empty .git is no repository
	if err := os.WriteFile(filepath.Join(top, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"--no-probe"}} {
		c.want(3, with(run, append(flags, "--runs", "1")...)...)
		c.contains(c.stderr, "lies in the repository", "nothing was started")
	}
}

// The families of twelve are large enough: an arm that solves what the other leaves alone is found
// to be better.
func TestAQuickFamilyEndsInAClaim(t *testing.T) {
	testenv.NeedTool(t, "node")
	family, err := filepath.Abs("../../../examples/quick-node")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := task.Load(t.Context(), family, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var scenarios []map[string]any
	for _, one := range loaded.Tasks {
		name := filepath.Join("src", one.ID+".js")
		content, err := os.ReadFile(filepath.Join(one.Solution, name))
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(one.Prompt, " must")
		scenarios = append(scenarios, map[string]any{
			"name": one.ID, "when": map[string]any{"prompt": first, "system": "Fix it."},
			"turns": []map[string]any{
				{"calls": []map[string]any{{"write": name, "content": string(content)}}}, {"text": "Fixed."},
			},
		})
	}
	script, err := json.Marshal(map[string]any{"scenarios": scenarios, "turns": []map[string]any{{"text": "Hm."}}})
	if err != nil {
		t.Fatal(err)
	}
	c := newCommand(t)
	arm := "agent:builtin,model:claude-sonnet-4-5,modelUrl:" + c.model(string(script))
	c.want(0, "run", "--family", family, "--runs", "1", "--output", "out", "--format", "text", "--arm", "before="+arm,
		"--arm", "after="+arm+",prompt:Fix it.")
	c.contains(c.stdout, "Improved: pass rate of after is 100.0 percentage points higher than before")
}

// The first signal says what happens, the second stops at once.
func TestTheSecondSignalStopsAtOnce(t *testing.T) {
	c, run := tiny(t, 2)
	c.want(0, with(run, "--runs", "1", "--output", "warm")...)
	slow := c.model(`{"turns":[{"calls":[{"bash":"sleep 300"}]},{"text":"done"}]}`)
	args := with(run, "--runs", "1", "--no-probe", "--drain", "5m", "--model-url", slow)
	log := filepath.Join(c.dir, "stderr")
	stderr, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	child := childOf(t, c, args)
	child.Dir, child.Stderr = c.dir, stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	output := func() string {
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	waitFor(t, "an attempt is running", func() bool {
		traces, err := filepath.Glob(filepath.Join(c.dir, "out", "runs", "*", "*", "*", "*", "agent.ndjson"))
		if err != nil || len(traces) < 2 {
			return false
		}
		content, err := os.ReadFile(traces[0])
		return err == nil && strings.Contains(string(content), "sleep 300")
	})
	if err := child.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the first signal is answered", func() bool { return strings.Contains(output(), "again to stop now") })
	if !strings.Contains(output(), "finishing 2 cells, at most 5m0s") {
		t.Errorf("%s", output())
	}
	if err := child.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = child.Wait()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 130 {
		t.Errorf("%v\n%s", err, output())
	}
}

// A signal while models are probed is no failure of theirs.
func TestASignalBeforeTheFirstCellSaysSo(t *testing.T) {
	c, run := tiny(t, 1)
	child := childOf(t, c, with(run, "--model-url", c.model(`{"turns":[{"fault":{"stream":"hang"},"text":"x"}]}`)))
	child.Dir = c.dir
	stderr, err := child.StderrPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); fmt.Fprintln(&said, lines.Text()) {
		if strings.Contains(lines.Text(), "every arm's model replies") {
			if err := child.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = child.Wait()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 130 || !strings.Contains(said.String(),
		"interrupted before the first cell") {
		t.Errorf("%v\n%s", err, said.String())
	}
}

// What it costs to ask every model for one reply is recorded, and part of what all of it cost.
func TestProbesArePaidFor(t *testing.T) {
	c, run := tiny(t, 2)
	totals := func() (all, arm float64, replies int) {
		c.want(0, "report", "--input", "out")
		var built struct {
			Groups []struct{ Totals struct{ CostUSD float64 } }
			Totals struct {
				CostUSD float64
				Probes  struct {
					Replies int
					CostUSD float64
				}
			}
		}
		if err := json.Unmarshal([]byte(c.stdout), &built); err != nil {
			t.Fatal(err)
		}
		if sum := built.Groups[0].Totals.CostUSD + built.Totals.Probes.CostUSD; built.Totals.CostUSD != sum {
			t.Errorf("$%g are spent, the arm and the probes cost $%g", built.Totals.CostUSD, sum)
		}
		return built.Totals.CostUSD, built.Groups[0].Totals.CostUSD, built.Totals.Probes.Replies
	}
	c.want(0, with(run, "--runs", "1")...)
	all, arm, replies := totals()
	if replies != 1 || all <= arm {
		t.Errorf("%d replies cost $%g", replies, all-arm)
	}
	c.want(0, with(run, "--runs", "2")...)
	if _, _, replies := totals(); replies != 2 {
		t.Errorf("%d replies after two probes", replies)
	}
	c.want(0, "report", "--input", "out", "--format", "text")
	c.contains(c.stdout, "checking the models before the first run: 2 calls, $0.")
	c.want(4, with(run, "--runs", "3", "--max-cost-usd", fmt.Sprint(all))...) // budgets count it, too
}

// waitFor waits until something has happened; the test's own deadline ends the wait.
func waitFor(t *testing.T, what string, happened func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Minute)
	for !happened() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it never happened", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}
