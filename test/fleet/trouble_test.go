package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/testenv"
)

// A worker that is stopped (SIGSTOP) cannot kill its sandboxes: its watchdog ends it, and they go
// with it, so that the cell does not run twice for long.
func TestAStoppedWorkerIsEnded(t *testing.T) {
	w := newWorld(t)
	w.family(1)
	marker := fmt.Sprintf("271.%d", os.Getpid())
	slow := fmt.Sprintf(`{"turns":[{"calls":[{"bash":"sleep %s"}]},{"text":"Done."}]}`, marker)
	if err := os.WriteFile(filepath.Join(w.dir, "script.json"), []byte(slow), 0o600); err != nil {
		t.Fatal(err)
	}
	const lease = 3 * time.Second
	m := w.machine(1, 0)
	w.serveHub(testenv.FreePort(t), lease)
	worker := w.work(m)
	w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url)
	eventually(t, "the agent runs", func() bool { return running(t, marker) })
	if err := worker.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	eventually(t, "the agent is dead", func() bool { return !running(t, marker) })
	if took := time.Since(began); took > 2*lease && os.Getenv("FIT_BENCH") != "" {
		t.Errorf("the agent ran on for %s beside the next worker's", took-lease)
	}
	<-worker.over
	if said := worker.out.String(); !strings.Contains(said, "this process was stopped for 3.5s") {
		t.Errorf("it said %q", said)
	}
}

// running reports whether a process has an argument.
func running(t *testing.T, argument string) bool {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		content, _ := os.ReadFile(name) // it may have ended
		if strings.Contains(string(content), "sleep\x00"+argument+"\x00") {
			return true
		}
	}
	return false
}

// A hub whose disk is full: hub, worker and coordinator say so in a line, nothing is paid
// meanwhile, and everything continues when there is room again.
func TestAHubWhoseDiskIsFull(t *testing.T) {
	w := newWorld(t)
	if !w.private {
		testenv.Missing(t, "the rights of root, which a disk of the hub's own needs: run it as root")
	}
	w.family(4)
	dir := filepath.Join(w.dir, "hub")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w.disk(dir, 64)
	m := w.machine(1, 0)
	hub := w.serveHub(testenv.FreePort(t), 30*time.Second) // no attempt is lost on a busy machine
	worker := w.work(m)
	coordinator := w.benchmark(nil, size{runs: 4}, "fleet", "--fleet", w.url)
	lines := func() int { return strings.Count(readFile(w, "fleet", experiment.LedgerFile), "\n") }
	eventually(t, "some records", func() bool { return lines() > 2 })
	// Agents wait for their model until the disk is full, however long that takes.
	steer := func(sign syscall.Signal) {
		if err := m.model.cmd.Process.Signal(sign); err != nil {
			t.Fatal(err)
		}
	}
	steer(syscall.SIGSTOP)
	empty := w.fillDisk(dir)
	steer(syscall.SIGCONT)
	hub.says("the hub cannot write to")
	worker.says("the hub cannot store results")
	coordinator.says("the hub cannot store its results")
	empty()
	hub.says("the hub has room again and continues")
	<-coordinator.over
	if code := coordinator.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the coordinator ended with %d", code)
	}
	const cells = 2 * 4 * 4
	counted, contents := w.counted("fleet")
	if len(counted) != cells || len(contents.Records) != cells {
		t.Errorf("%d cells count of %d records, want %d of each", len(counted), len(contents.Records), cells)
	}
}
