package benchmarkcli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

func (c *command) write(files map[string]string) {
	c.t.Helper()
	for name, content := range files {
		path := filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			c.t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") || strings.HasPrefix(name, "bin/") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			c.t.Fatal(err)
		}
	}
}

// tiny is a command with a small family in "family" and a model that solves half of it.
func tiny(t *testing.T, tasks int) (c *command, run []string) {
	t.Helper()
	c = newCommand(t)
	tinyFamily(t, filepath.Join(c.dir, "family"), tasks)
	url := c.model(`{"usage":{"input":1000,"output":1000},"turns":[{"choices":[{"calls":[{"write":"answer.txt","content":"42\n"}]},{"calls":[{"write":"answer.txt","content":"41\n"}]}]},{"text":"done"}]}`)
	return c, []string{
		"run", "--family", "family", "--agent", "builtin", "--model", "claude-sonnet-4-5",
		"--model-url", url + "/c/{cell}/seed/{seed}", "--output", "out",
	}
}

func with(args []string, more ...string) []string {
	return append(append([]string(nil), args...), more...)
}

// What gives access in a model's address is needed to reach it, and stands in no file.
func TestTheCredentialsOfAModelsAddressAreNotWritten(t *testing.T) {
	c, run := tiny(t, 1)
	at := slices.Index(run, "--model-url") + 1
	run[at] = strings.Replace(run[at], "http://", "http://somebody:opensesame@", 1)
	c.want(0, with(run, "--runs", "1")...)
	err := filepath.WalkDir(filepath.Join(c.dir, "out"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte("opensesame")) {
			t.Errorf("%s holds the password: %s", path, content)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if strings.Contains(c.stdout+c.stderr, "opensesame") {
		t.Errorf("the password was printed: %s%s", c.stdout, c.stderr)
	}
}

func TestMistakesOfUseAreNamed(t *testing.T) {
	c, run := tiny(t, 1)
	for text, args := range map[string][]string{
		"--family is required":                 {"run"},
		"must be a whole number of at least 1": with(run, "--runs", "0"),
		"--max-turns":                          with(run, "--max-turns", "abc"),
		"--concurrency":                        with(run, "--concurrency", "0"),
		"must be i/N":                          with(run, "--shard", "2"),
		"from 1 to the second":                 with(run, "--shard", "3/2"),
		`no task "t9"; there are t000`:         with(run, "--task", "t9"),
		"there is no SKILL.md":                 with(run, "--skills-from", "family"),
		"use --arm or --arms, not both":        with(run, "--arm", "a=agent:builtin", "--arms", "x.yaml"),
		"put it into the arm instead":          with(run, "--arm", "a=agent:builtin"),
		"must be one of github, filesystem":    with(run, "--work-tracker", "paper"),
		"called judge":                         with(run, "--judge-profile", "strict"),
		"--k \"0\"":                            {"report", "--k", "0"},
		"no results":                           {"report", "--input", "nowhere"},
		"is not a run directory":               {"clean", "family"},
		"agent.task.md is not a run":           {"clean", "family/tasks/t000/agent.task.md"},
		"choose one thing to list":             {"list"},
		"thing to list: --family FAMILY":       {"list", "--family", "family", "out"},
		"not empty":                            {"init", "family"},
		"--effect":                             {"plan", "--effect", "2"},
		"does not begin with http":             with(run, "--model-url", "localhost"),
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

func TestTheConcurrencyOfTheEnvironment(t *testing.T) {
	c, run := tiny(t, 1)
	c.env = append(c.env, "LIBHARNESS_BENCHMARK_CONCURRENCY=0")
	c.want(2, run...)
	c.env = append(c.env, "LIBHARNESS_BENCHMARK_CONCURRENCY=3")
	c.want(0, with(run, "--runs", "1")...)
	c.contains(c.stderr, "3 at a time")
}

func TestAnotherConfigurationIsRefusedWithWhatDiffers(t *testing.T) {
	c, run := tiny(t, 2)
	c.want(0, with(run, "--runs", "1")...)
	c.want(2, with(run, "--runs", "2", "--max-turns", "7")...)
	c.contains(c.stderr, "runs: 1, now 2", "arm default: maxTurns: 50, now 7")
	c.write(map[string]string{"family/tasks/t000/agent.task.md": "Something else.\n"})
	c.want(2, with(run, "--runs", "1")...)
	c.contains(c.stderr, "task t000: what the agent sees has changed")
}

func TestRecordsAreEchoed(t *testing.T) {
	c, run := tiny(t, 2)
	c.want(0, with(run, "--runs", "2")...)
	lines := strings.Split(strings.TrimSpace(c.stdout), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines: %s", len(lines), c.stdout)
	}
	for _, line := range lines {
		var r ledger.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Validate() != nil {
			t.Errorf("%v %v: %s", err, r.Validate(), line)
		}
	}
}

func TestAForgedLedgerDoesNotGetThrough(t *testing.T) {
	c, run := tiny(t, 2)
	c.want(0, with(run, "--runs", "2")...)
	path := filepath.Join(c.dir, "out", experiment.LedgerFile)
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(original), `"verdict":"fail"`, `"verdict":"pass"`, 1)
	if forged == string(original) {
		forged = strings.Replace(string(original), `"verdict":"pass"`, `"verdict":"fail"`, 1)
	}
	for name, content := range map[string]string{
		"changed": forged, "shortened": string(original[:strings.LastIndex(strings.TrimSpace(string(original)), "\n")+
			1]),
		"lengthened": string(original) + `{"taskId":"t000","runIndex":7,"verdict":"pass"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			c.want(3, "report", "--input", "out")
			c.contains(c.stderr, "does not verify: line ")
			c.want(3, "compare", "out", "out")
			if name != "lengthened" { // a torn end may be garbage; it never counts
				c.want(3, with(run, "--runs", "2")...)
			}
		})
	}
	c.want(0, "report", "--input", "out", "--damaged")
	c.contains(c.stdout, `"skipped": `)
	if err := os.WriteFile(path, original, 0o600); err != nil {
		t.Fatal(err)
	}
	c.want(0, "report", "--input", "out")
}

func TestWhatAgentsLeaveIsNeverReadAsResults(t *testing.T) {
	c := newCommand(t)
	tinyFamily(t, filepath.Join(c.dir, "family"), 1)
	planted := `{\"taskId\":\"t000\",\"runIndex\":0,\"verdict\":\"pass\",\"arm\":\"default\",\"attempt\":9,\"final\":true,\"grade\":{\"verdict\":\"pass\"}}`
	url := c.model(`{"turns":[{"calls":[{"bash":"echo '` + planted +
		`' | tee results.jsonl > ../results.jsonl; true"}]},{"text":"done"}]}`)
	c.want(0, "run", "--family", "family", "--agent", "builtin", "--model-url", url, "--runs", "2", "--output", "out")
	c.want(0, "report", "--input", "out", "--format", "text")
	c.contains(c.stdout, "0 of 2 runs passed")
	// a directory above: only directories of ledgers count, never what lies in runs/
	c.want(0, "report", "--input", ".", "--format", "text")
	c.contains(c.stdout, "0 of 2 runs passed")
}

func TestASecondRunStartsInAFreshDirectory(t *testing.T) {
	c := newCommand(t)
	tinyFamily(t, filepath.Join(c.dir, "family"), 1)
	good := c.model(`{"turns":[{"calls":[{"write":"answer.txt","content":"42\n"}]},{"text":"done"}]}`)
	c.want(0, "run", "--family", "family", "--agent", "builtin", "--model-url", good, "--runs", "3", "--output",
		"first")
	lazy := c.model(`{"turns":[{"calls":[{"bash":"find / -name answer.txt -exec cp {} . \\; 2>/dev/null; true"}]},{"text":"done"}]}`)
	c.want(0, "run", "--family", "family", "--agent", "builtin", "--model-url", lazy, "--runs", "2", "--output",
		"second", "--concurrency", "1", "--isolation", "bwrap", "--format", "text")
	c.contains(c.stdout, "0 of 2 runs passed")
}

func TestTheFirstLineSaysThatRunsAreNotIsolated(t *testing.T) {
	c, run := tiny(t, 2)
	c.want(0, with(run, "--isolation", "none")...)
	if !strings.HasPrefix(c.stderr, "warning: the runs of 2 tasks are not isolated: isolation none is set") {
		t.Errorf("stderr: %s", c.stderr)
	}
}

func TestGatesAreOptIn(t *testing.T) {
	c, run := tiny(t, 3)
	run = with(run, "--runs", "4")
	c.want(0, run...) // half of it fails, and that is a complete measurement
	c.want(1, with(run, "--all-pass")...)
	c.contains(c.stderr, "gate --all-pass")
	c.want(1, with(run, "--min-pass-rate", "0.95")...)
	c.want(0, with(run, "--min-pass-rate", "0.01")...)
	c.want(1, "report", "--input", "out", "--all-pass") // shards are gated where they come together
	c.contains(c.stdout, `"passRate"`)
	c.want(1, "report", "--input", "out", "--min-pass-rate", "0.95", "--format", "text")
	c.want(0, "report", "--input", "out", "--min-pass-rate", "0.01")
	c.write(map[string]string{"empty/.keep": ""})
	c.want(2, "report", "--input", "empty", "--all-pass")
}

func TestABudgetStopsTheRunAndALargerOneGoesOn(t *testing.T) {
	c, run := tiny(t, 4)
	run = with(run, "--runs", "3", "--concurrency", "2")
	c.want(4, with(run, "--max-tokens", "20000")...)
	c.contains(c.stderr, "stopped by budget", "20000 tokens")
	c.want(4, with(run, "--max-cost-usd", "0.2")...)
	c.contains(c.stderr, "estimate: $", "limited to $0.20 by the budgets")
	c.want(0, run...)
	c.want(0, "report", "--input", "out", "--format", "text")
	c.contains(c.stdout, "all tasks")
}

func TestShardsAreReportedTogether(t *testing.T) {
	c, run := tiny(t, 3)
	run = with(run, "--runs", "4")
	c.want(0, run...)
	c.want(0, "report", "--input", "out")
	whole := c.stdout
	for i := 1; i <= 3; i++ {
		c.want(0, with(run, "--shard", fmt.Sprintf("%d/3", i), "--output", fmt.Sprintf("shards/%d", i))...)
	}
	c.want(0, "report", "--input", "shards")
	if tables(t, whole) != tables(t, c.stdout) {
		t.Errorf("three shards say something else than the whole:\n%s\n%s", whole, c.stdout)
	}
	c.write(map[string]string{"merged/.keep": ""})
	c.want(0, "merge", "--input", "shards", "--output", "merged/results.jsonl")
	c.want(0, "report", "--input", "merged")
	if tables(t, whole) != tables(t, c.stdout) {
		t.Errorf("the merged ledger says something else:\n%s", c.stdout)
	}
	c.want(3, "merge", "--input", "shards/1,shards/1")
	c.contains(c.stderr, "is in two ledgers")
	// One that is lost stays lost in the merged ledger, which knows what should be there.
	c.write(map[string]string{"lost/.keep": ""})
	c.want(3, "merge", "--input", "shards/1,shards/2", "--output", "lost/results.jsonl")
	c.contains(c.stderr, "incomplete", "shard 3/3")
	c.want(0, "report", "--input", "lost", "--format", "text")
	c.contains(c.stdout, "8 of 12 runs have a verdict")
	c.want(3, "merge", "--input", "shards/1", "--output", "alone.jsonl")
}

// Results without a plan may be a part of them, and whoever reads them must know.
func TestResultsWithoutAPlanSayThatRunsMayBeMissing(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("runs", "r", 12, map[string]string{"a": "FFF", "b": "PPP"})
	if err := os.Remove(filepath.Join(c.dir, "runs", "plan.json")); err != nil {
		t.Fatal(err)
	}
	c.want(0, "compare", "runs")
	c.contains(c.stdout, "there is no plan.json beside the results: whether runs are missing is not known")
}

// tables are the figures of a report that must not depend on how it was made.
func tables(t *testing.T, text string) string {
	t.Helper()
	var report struct {
		Tasks []struct {
			TaskID  string
			N, C    int
			PassAtK map[string]any
		}
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(report.Tasks)
}

func TestAnEmptyShardIsNoFailure(t *testing.T) {
	c, run := tiny(t, 1)
	c.want(0, with(run, "--runs", "1", "--shard", "50/50")...)
	c.contains(c.stderr, "shard 50/50 selects no cells")
	if _, err := os.Stat(filepath.Join(c.dir, "out", experiment.LedgerFile)); err != nil {
		t.Error(err)
	}
	c.want(0, "report", "--input", "out")
}

func TestTheStepSummary(t *testing.T) {
	c, run := tiny(t, 1)
	c.env = append(c.env, "GITHUB_STEP_SUMMARY="+filepath.Join(c.dir, "summary.md"))
	c.want(0, with(run, "--runs", "1", "--summary")...)
	c.want(0, "report", "--input", "out", "--summary", "--detail", "compact", "--format", "junit")
	c.contains(c.stdout, "<testsuites>")
	content, err := os.ReadFile(filepath.Join(c.dir, "summary.md"))
	if err != nil || strings.Count(string(content), "tasks passing") != 2 {
		t.Errorf("%v: %s", err, content)
	}
}

func TestAServiceIsStartedAgainForGrading(t *testing.T) {
	c := newCommand(t)
	c.write(map[string]string{
		"family/tasks/service/agent.task.md":       "Write ok into state.txt.\n",
		"family/tasks/service/hooks/preflight.sh":  "#!/bin/sh\ncd \"$AGENT_CWD\" || exit 1\nnohup sh -c 'while :; do echo up > \"$0/service\"; sleep 0.05; done' \"$AGENT_CWD\" >/dev/null 2>&1 &\nuntil [ -f service ]; do sleep 0.05; done\n",
		"family/tasks/service/hooks/invariants.sh": "#!/bin/sh\n[ \"$(cat \"$AGENT_CWD/state.txt\" 2>/dev/null)\" = ok ] && p=true || p=false\necho \"{\\\"test\\\":\\\"state\\\",\\\"pass\\\":$p}\" >&3\n",
	})
	url := c.model(`{"turns":[{"calls":[{"write":"state.txt","content":"ok\n"}]},{"text":"done"}]}`)
	c.want(0, "run", "--family", "family", "--agent", "builtin", "--model-url", url, "--runs", "1", "--output", "out")
	c.want(0, "grade", "--family", "family", "--task", "service", "--run-dir", "out/runs/service/default/0/1")
	c.contains(c.stdout, `"verdict":"pass"`)
	if left := processesOf(c.dir); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestLintFindsWhatWouldSpoilAMeasurement(t *testing.T) {
	hook := func(rows string) string { return "#!/bin/sh\n" + rows }
	fail, pass := `echo '{"test":"a","pass":false}' >&3`, `echo '{"test":"a","pass":true}' >&3`
	solved := "if [ -f \"$AGENT_CWD/done\" ]; then " + pass + "; else " + fail + "; fi\n"
	for name, test := range map[string]struct {
		files map[string]string
		text  string
		code  int
	}{
		"not declared": {
			map[string]string{"hooks/invariants.sh": hook(solved), "solution/done": "x"},
			`checks: ["a"]`, 1,
		},
		"good": {map[string]string{
			"hooks/invariants.sh": hook(solved), "solution/done": "x",
			"task.yaml": "checks: [a]\n",
		}, "0 errors", 0},
		"passes untouched": {
			map[string]string{"hooks/invariants.sh": hook(pass)},
			"pass on the untouched scaffold",
			1,
		},
		"free credit": {
			map[string]string{"hooks/invariants.sh": hook(solved +
				`echo '{"test":"free","pass":true}' >&3`), "solution/done": "x"},
			`check "free" passes on the untouched scaffold`, 1,
		},
		"solution fails": {
			map[string]string{"hooks/invariants.sh": hook(fail), "solution/done": "x"},
			"do not pass on the reference solution", 1,
		},
		"no checks": {map[string]string{}, "nothing is checked", 1},
		"placeholder": {map[string]string{
			"hooks/invariants.sh": hook(solved), "solution/done": "x",
			"judge.task.md": "Is {{WHAT}} good?",
		}, "WHAT", 1},
		"no rows": {
			map[string]string{"hooks/invariants.sh": hook("exit 0\n")},
			"no verdict on the untouched scaffold", 1,
		},
		"preflight fails": {map[string]string{
			"hooks/invariants.sh": hook(solved),
			"hooks/preflight.sh":  "#!/bin/sh\nexit 3\n",
		}, "preflight.sh fails", 1},
		"malformed": {map[string]string{"hooks/invariants.sh": hook(fail + "\n" +
			`echo '{"test":"b","pass":"yes"}' >&3`)}, "malformed", 1},
		"flaky": {map[string]string{"hooks/invariants.sh": hook(solved +
			`n=$(od -An -N1 -tu1 /dev/urandom); if [ -f "$AGENT_CWD/done" ] && [ $((n % 2)) = 0 ]; then echo '{"test":"coin","pass":true}' >&3; else echo '{"test":"coin","pass":false}' >&3; fi`), "solution/done": "x"}, "coin", 1},
		"no solution": {
			map[string]string{"hooks/invariants.sh": hook(solved), "task.yaml": "checks: [a]\n"},
			"no reference solution", 0,
		},
		"hook not executable": {map[string]string{"hooks/invariants.sh": hook(solved), "hooks/preflight": "x"}, "", 0},
		"unknown in task.yaml": {
			map[string]string{"hooks/invariants.sh": hook(solved), "task.yaml": "timeout: 3\n"},
			"task.yaml:1:1", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCommand(t)
			files := map[string]string{"family/tasks/one/agent.task.md": "Do it.\n"}
			for file, content := range test.files {
				files["family/tasks/one/"+file] = content
			}
			c.write(files)
			if name == "hook not executable" {
				if err := os.Chmod(filepath.Join(c.dir, "family/tasks/one/hooks/invariants.sh"), 0o644); err != nil {
					t.Fatal(err)
				}
				test.code, test.text = 1, "invariants.sh"
			}
			args := []string{"lint", "--family", "family"}
			if name == "flaky" {
				args = append(args, "--repeat", "12")
			}
			c.want(test.code, args...)
			c.contains(c.stdout+c.stderr, test.text)
			if name == "good" { // every task that is done says so, because all of them may take minutes
				c.contains(c.stderr, "1/1 one (")
			}
		})
	}
}

func TestSkillsAreInstalledIntoACache(t *testing.T) {
	c, run := tiny(t, 1)
	run = with(run, "--runs", "1")
	c.write(map[string]string{"family/apm.yml": "name: x\n", "bin/placeholder": "#!/bin/sh\n"})
	c.env[0] = "PATH=/usr/bin:/bin"
	c.want(3, run...)
	c.contains(c.stderr, "apm is not installed", "--skills-from DIR")
	c.write(map[string]string{
		"bin/apm": "#!/bin/sh\necho \"$@\" >> " + filepath.Join(c.dir, "calls") +
			"\nmkdir -p .claude/skills/x apm_modules/o/p/agents\necho skill > .claude/skills/x/SKILL.md\necho agent > apm_modules/o/p/agents/helper.md\n",
	})
	c.env = append(c.env, "PATH="+filepath.Join(c.dir, "bin")+":/usr/bin:/bin",
		"XDG_CACHE_HOME="+filepath.Join(c.dir, "cache"))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(c.dir, "cache"))
	c.want(0, run...)
	c.want(0, run...)
	calls, err := os.ReadFile(filepath.Join(c.dir, "calls"))
	if err != nil || string(calls) != "install --target claude\n" {
		t.Errorf("apm was called with %q, %v", calls, err)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "family/.claude")); err == nil {
		t.Error("the family was changed")
	}
	kept := filepath.Join(c.dir, "out/runs/t000/default/0/1/cwd/.claude")
	for _, name := range []string{"skills/x/SKILL.md", "agents/helper.md"} {
		if _, err := os.Stat(filepath.Join(kept, name)); err != nil {
			t.Error(err)
		}
	}
	c.write(map[string]string{"bin/apm": "#!/bin/sh\necho broken >&2\nexit 4\n", "family/apm.yml": "name: y\n"})
	c.want(3, run...)
	c.contains(c.stderr, "exit code 4", "broken")
	c.write(map[string]string{"skills/.claude/skills/y/SKILL.md": "mine"})
	for i, arg := range run {
		if arg == "out" {
			run[i] = "out2"
		}
	}
	c.want(0, with(run, "--skills-from", "skills")...)
}

func TestASignalDrains(t *testing.T) {
	c := newCommand(t)
	tinyFamily(t, filepath.Join(c.dir, "family"), 4)
	// Four replies are two cells of two replies, or more cells that wait for their second.
	tokens := make(chan struct{}, 4)
	for range cap(tokens) {
		tokens <- struct{}{}
	}
	url := c.modelBehind(tokens, `{"turns":[{"calls":[{"bash":"echo 42 > answer.txt"}]},{"text":"done"}]}`)
	args := []string{
		"run", "--family", filepath.Join(c.dir, "family"), "--agent", "builtin", "--model-url", url, "--drain", "5m",
		"--runs", "3", "--output", filepath.Join(c.dir, "out"), "--concurrency", "2", "--no-probe",
	}
	process := childOf(t, c, args)
	stderr, err := process.StderrPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ledgerPath := filepath.Join(c.dir, "out", experiment.LedgerFile)
	waitFor(t, "a cell is done", func() bool {
		content, err := os.ReadFile(ledgerPath)
		return err == nil && len(content) > 0
	})
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.Contains(lines.Text(), "again to stop now") {
			close(tokens)
		}
	}
	err = process.Wait()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 130 {
		t.Fatalf("it ended with %v, want exit code 130", err)
	}
	contents, err := ledger.ReadFile(ledgerPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range contents.Records {
		if r.Verdict != ledger.Pass {
			t.Errorf("%s: %s %s; there was time to finish", r.Key(), r.Verdict, r.ErrorClass)
		}
	}
	if n := len(contents.Records); n == 0 || n >= 12 {
		t.Errorf("%d records", n)
	}
	c.want(0, args...)
}

func TestPackagesAreInstalledIntoACache(t *testing.T) {
	c, run := tiny(t, 1)
	run = with(run, "--runs", "1")
	t.Setenv("XDG_CACHE_HOME", filepath.Join(c.dir, "cache"))
	c.write(map[string]string{
		"family/package.json": `{"dependencies":{"x":"1"}}`,
		"bin/bun": "#!/bin/sh\necho \"$@\" >> " + filepath.Join(c.dir, "calls") +
			"\nmkdir -p node_modules/x && echo 1 > node_modules/x/index.js\n",
	})
	c.env[0] = "PATH=" + filepath.Join(c.dir, "bin") + ":/usr/bin:/bin"
	c.want(0, run...)
	c.want(0, run...)
	if calls, err := os.ReadFile(filepath.Join(c.dir, "calls")); err != nil ||
		string(calls) != "install --ignore-scripts\n" {
		t.Errorf("%q %v", calls, err)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "out/runs/t000/default/0/1/cwd/node_modules/x/index.js")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "family/node_modules")); err == nil {
		t.Error("the family was changed")
	}
}

func TestWhatAnAgentCannotDoIsToldBeforeTheGrid(t *testing.T) {
	c, run := tiny(t, 1)
	c.want(2, with(run, "--agent-profile", "nobody")...)
	c.contains(c.stderr, "there is no profile nobody")
	c.want(2, with(run, "--auth", "subscription")...)
	c.contains(c.stderr, "does not support running on a subscription")
	c.write(map[string]string{"family/tasks/t000/workdir/.claude/agents/careful.md": "---\nname: careful\n---\nBe careful.\n"})
	c.want(0, with(run, "--agent-profile", "careful", "--runs", "1", "--keep-raw")...)
	trace, err := os.ReadFile(filepath.Join(c.dir, "out/runs/t000/default/0/1/agent.ndjson"))
	if err != nil || !strings.Contains(string(trace), `"content":"Be careful."`) {
		t.Errorf("%v: %s", err, trace)
	}
}

// TestASelectionIsInTheFirstLines: who reads a report or an answer sees that it is about a part of
// the tasks, and how that part was chosen.
func TestASelectionIsInTheFirstLines(t *testing.T) {
	c := twoArms(t, 12, "--task", "t0*", "--limit", "11")
	const scope = "11 of 12 tasks, selected by --task t0*, --limit 11"
	c.want(0, "report", "out", "--format", "text")
	if lines := strings.SplitN(c.stdout, "\n", 3); lines[1] != scope {
		t.Errorf("the second line is not %q:\n%s", scope, c.stdout)
	}
	c.want(0, "report", "out", "--format", "markdown")
	c.contains(c.stdout, scope)
	c.want(0, "report", "out", "--format", "json")
	c.contains(c.stdout, `"scope": "`+scope)
	c.want(0, "compare", "out")
	if first, _, _ := strings.Cut(c.stdout, "\n"); !strings.Contains(first, scope) {
		t.Errorf("the answer does not say it: %s", first)
	}
}

// TestAnArmThatIsAddedLaterIsNoControl: what changed between the runs of two arms cannot be told
// from what was changed, so nothing is claimed unless a person accepts it.
func TestAnArmThatIsAddedLaterIsNoControl(t *testing.T) {
	c, run := tiny(t, 12)
	url := run[slices.Index(run, "--model-url")+1]
	good := c.model(`{"turns":[{"calls":[{"write":"answer.txt","content":"42\n"}]},{"text":"done"}]}`)
	before := []string{
		"run", "--family", "family", "--output", "out", "--runs", "1", "--arm",
		"a=agent:builtin,model:claude-sonnet-4-5,modelUrl:" + strings.Split(url, "/c/")[0] + "/c/bad",
	}
	c.want(0, before...)
	c.want(0, with(before, "--arm", "b=agent:builtin,model:claude-sonnet-4-5,modelUrl:"+good)...)
	c.want(0, "compare", "out:a", "out:b")
	c.contains(c.stdout, "Not proven: 0 of 12 runs of a ran while b did", "--allow historical accepts it")
	c.want(0, "compare", "out:a", "out:b", "--allow", "historical")
	if strings.Contains(c.stdout, "ran while b did;") {
		t.Error(c.stdout)
	}
}
