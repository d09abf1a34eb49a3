package benchmarkcli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

// childVariable makes this test binary be fit-benchmark.
const childVariable = "FIT_TEST_BE_BENCHMARK"

func beBenchmark() {
	con := console.System("test")
	root := New(con, agent.NewRegistry(builtin.New()))
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(console.Code(err))
}

// tinyFamily is a family of tasks that take next to no time.
func tinyFamily(t testing.TB, dir string, tasks int) {
	t.Helper()
	for i := range tasks {
		base := filepath.Join(dir, "tasks", fmt.Sprintf("t%03d", i))
		for name, content := range map[string]string{
			"agent.task.md":       fmt.Sprintf("Write the answer to question %d into answer.txt.\n", i),
			"hooks/invariants.sh": "#!/bin/sh\n[ \"$(cat \"$AGENT_CWD/answer.txt\" 2>/dev/null)\" = 42 ] && p=true || p=false\necho \"{\\\"test\\\":\\\"answer\\\",\\\"pass\\\":$p}\" >&3\n",
		} {
			path := filepath.Join(base, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Half of the runs pass, drawn from the seed of the cell; the agent runs a command, so that there
// is a process to leave behind.
const drawsAnswer = `{"turns":[{"choices":[
	{"weight":1,"calls":[{"bash":"echo 42 > answer.txt; sleep 0.02"}]},
	{"weight":1,"calls":[{"bash":"echo 41 > answer.txt; sleep 0.02"}]}]},{"text":"done"}]}`

// The whole process is killed at random moments, and the same command is run again each time:
// nothing is lost, nothing is done twice, nothing is left behind.
func TestKilledAtRandomMoments(t *testing.T) {
	kills, tasks, runs := 5, 4, 3 // more cells than the processes that are killed can end
	if os.Getenv("FIT_SOAK") != "" {
		kills, tasks = 40, 30
	}
	c := newCommand(t)
	tinyFamily(t, filepath.Join(c.dir, "family"), tasks)
	// A process gets as many replies as four cells need, so that none is done before it is killed.
	const replies = 8
	tokens := make(chan struct{}, replies)
	url := c.modelBehind(tokens, drawsAnswer)
	out := filepath.Join(c.dir, "out")
	args := []string{
		"run", "--family", filepath.Join(c.dir, "family"), "--runs", fmt.Sprint(runs), "--output", out, "--concurrency",
		"4", "--format", "json",
		"--arm", "a=agent:builtin,model:claude-sonnet-4-5,modelUrl:" + url + "/c/{cell}/seed/{seed}", "--arm",
		"b=agent:builtin,model:claude-sonnet-4-5,prompt:Be brief.,modelUrl:" + url + "/c/{cell}/seed/{seed}",
	}
	cells := tasks * runs * 2
	moments := rand.New(rand.NewPCG(7, 11))
	for killed := range kills {
		before := begunAttempts(out)
		for len(tokens) < replies {
			tokens <- struct{}{}
		}
		process := startChild(t, c, args)
		// Most kills come while cells run, and every fifth at any moment before.
		begun := func() bool { return killed%5 == 0 || begunAttempts(out) > before }
		killAfter(t, process, begun, time.Duration(5+moments.IntN(120))*time.Millisecond)
		checkNothingLost(t, out)
	}
	close(tokens)
	process := startChild(t, c, args)
	if err := process.Wait(); err != nil {
		t.Fatalf("the last one: %v", err)
	}
	checkOutcome(t, c, out, cells, kills)
}

func startChild(t testing.TB, c *command, args []string) *exec.Cmd {
	t.Helper()
	process := childOf(t, c, args)
	process.Stderr = new(strings.Builder)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return process
}

// childOf is this command in a process of its own.
func childOf(t testing.TB, c *command, args []string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command(self, args...)
	process.Env = append([]string{
		childVariable + "=1", "GORACE=atexit_sleep_ms=0",
		"TMPDIR=" + filepath.Join(c.dir, "tmp"),
	}, c.env...)
	if err := os.MkdirAll(filepath.Join(c.dir, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return process
}

// killAfter kills a process with SIGKILL some time after it has begun.
func killAfter(t testing.TB, process *exec.Cmd, begun func() bool, after time.Duration) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- process.Wait() }()
	for tick := time.NewTicker(time.Millisecond); !begun() && len(done) == 0; {
		<-tick.C
	}
	select {
	case err := <-done:
		t.Fatalf("it ended by itself: %v\n%v", err, process.Stderr)
	case <-time.After(after):
		if err := process.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		<-done
	}
}

// begunAttempts is how many attempts at cells the journal says were begun; probes are not.
func begunAttempts(out string) int {
	journal, err := os.ReadFile(filepath.Join(out, experiment.AttemptsFile))
	if err != nil {
		return 0
	}
	begun := strings.Count(string(journal), `"attempt"`)
	return begun - strings.Count(string(journal), `"probe"`) - strings.Count(string(journal), `"process"`)
}

// checkNothingLost makes sure that the ledger verifies after every kill.
func checkNothingLost(t testing.TB, out string) {
	t.Helper()
	path := filepath.Join(out, experiment.LedgerFile)
	if _, err := os.Stat(path); err != nil {
		return // killed before it began
	}
	contents, err := ledger.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := contents.Damage(path); err != nil {
		t.Fatal(err)
	}
}

func checkOutcome(t testing.TB, c *command, out string, cells, killed int) {
	t.Helper()
	path := filepath.Join(out, experiment.LedgerFile)
	contents, err := ledger.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := contents.Damage(path); err != nil {
		t.Fatal(err)
	}
	verdicts, interrupted := map[ledger.Cell]int{}, 0
	for i := range contents.Records {
		r := &contents.Records[i]
		switch {
		case r.Verdict == ledger.Pass || r.Verdict == ledger.Fail:
			verdicts[r.Cell()]++
		case r.ErrorClass == ledger.ErrorInterrupted:
			interrupted++
		default:
			t.Errorf("%s: %s %s", r.Key(), r.ErrorClass, r.ErrorMessage)
		}
	}
	for cell, n := range verdicts {
		if n != 1 {
			t.Errorf("%v has %d verdicts", cell, n)
		}
	}
	if len(verdicts) != cells {
		t.Errorf("%d cells have a verdict, want %d", len(verdicts), cells)
	}
	if interrupted == 0 || interrupted > 4*killed {
		t.Errorf("%d attempts were interrupted by %d kills of 4 at a time", interrupted, killed)
	}
	if started := begunAttempts(out); started != len(contents.Records) {
		t.Errorf("%d attempts were started and %d recorded", started, len(contents.Records))
	}
	t.Logf("%d records, %d interrupted, %d torn lines recovered", len(contents.Records), interrupted,
		contents.Recovered)
	left, _ := filepath.Glob(filepath.Join(c.dir, "tmp", "fit-*"))
	left = slices.DeleteFunc(left, func(name string) bool { // which a later run removes
		return strings.HasPrefix(filepath.Base(name), "fit-escape-")
	})
	if len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if alive := processesOf(c.dir); len(alive) > 0 {
		t.Errorf("still alive: %v", alive)
	}
}

// processesOf lists the processes that work in a directory or carry its name in their environment
// or command line.
func processesOf(dir string) []string {
	var alive []string
	for range 3000 { // what was just killed takes a moment to vanish, on a slow machine a long one
		alive = nil
		entries, _ := filepath.Glob("/proc/[0-9]*")
		for _, entry := range entries {
			if filepath.Base(entry) == fmt.Sprint(os.Getpid()) {
				continue
			}
			cwd, _ := os.Readlink(filepath.Join(entry, "cwd"))
			line, _ := os.ReadFile(filepath.Join(entry, "cmdline"))
			environ, _ := os.ReadFile(filepath.Join(entry, "environ"))
			if strings.HasPrefix(cwd, dir) || strings.Contains(string(line), dir) ||
				strings.Contains(string(environ), dir) {
				alive = append(alive, strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
		if len(alive) == 0 {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return alive
}
