package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/sandbox"
)

// roleVariable makes the test binary play one of the programs in play instead of
// running tests.
const roleVariable = "SANDBOX_TEST_ROLE"

// keyVariable is where a harness in these tests has its credential.
const keyVariable = "FIT_SANDBOX_TEST_KEY"

// patience is how long a test waits for what takes a moment on an idle machine: long enough for a
// slow and busy one, and far less than anything here that would never end by itself.
const patience = 2 * time.Minute

// quickExit lets programs under the race detector end at once instead of after a second.
const quickExit = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	code := m.Run()
	containertest.Remove()
	os.Exit(code)
}

// play is a harness in a process of its own: it spawns the script it is given.
func play(role string, args []string) int {
	switch role {
	case "network":
		return playNetwork(args[0])
	case "isolated":
		return playIsolated(args[0])
	case "attack":
		return playAttack(args)
	case "hide":
		return playHide(args[0])
	case "container":
		return playContainer(args[0])
	case "harness":
	case "hiding harness":
		if err := sandbox.HideVariables(keyVariable); err != nil {
			fmt.Println(err)
		}
	default:
		return 99
	}
	result, err := sandbox.Local{Containment: sandbox.Containment(args[0])}.Spawn(
		context.Background(), shell(args[1]), os.Stdout, os.Stderr)
	fmt.Printf("harness: containment=%s exit=%d leftovers=%d error=%v exposes=%v\n",
		result.Containment, result.ExitCode, result.LeftoversKilled, err, sandbox.Isolation{}.Exposes())
	return 0
}

// shell is a spec that runs a script.
func shell(script string) sandbox.SpawnSpec {
	return sandbox.SpawnSpec{Argv: []string{"sh", "-c", script}, Env: searchPath()}
}

func searchPath() []string { return []string{"PATH=" + os.Getenv("PATH")} }

// eachContainment runs a test once per mechanism that must kill for certain.
func eachContainment(t *testing.T, test func(t *testing.T, l sandbox.Local)) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can hold a process tree together")
	}
	for _, c := range []sandbox.Containment{sandbox.PIDNamespace, sandbox.SubReaper} {
		t.Run(string(c), func(t *testing.T) { test(t, sandbox.Local{Containment: c}) })
	}
}

// markers makes numbers of seconds that no other process sleeps: the way to recognise
// a process by its arguments, independently of how the package finds it.
var markers struct {
	sync.Mutex
	next int
}

func newMarker(t *testing.T) string {
	t.Helper()
	markers.Lock()
	defer markers.Unlock()
	markers.next++
	marker := fmt.Sprintf("7%d.%d", os.Getpid(), markers.next)
	t.Cleanup(func() {
		for _, pid := range alive(marker) {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	})
	return marker
}

// alive lists the processes, zombies excepted, whose arguments contain the marker.
func alive(marker string) []int {
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		cmdline, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(cmdline, []byte(marker)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && pid != os.Getpid() {
			found = append(found, pid)
		}
	}
	return found
}

func mustBeGone(t *testing.T, marker string) {
	t.Helper()
	if pids := alive(marker); len(pids) > 0 {
		t.Errorf("still alive after Spawn returned: %v", pids)
	}
}

// eventually polls a condition until it holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen in time: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// trigger is a writer that calls a function when a text has been written to it.
type trigger struct {
	mu    sync.Mutex
	text  string
	seen  bytes.Buffer
	fire  func()
	fired bool
}

func (w *trigger) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.Write(p)
	if !w.fired && strings.Contains(w.seen.String(), w.text) {
		w.fired = true
		w.fire()
	}
	return len(p), nil
}

func (w *trigger) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.String()
}

// spawnUntilUp runs a script, cancels it when it has printed "up", and returns how it
// ended and how long the ending took.
func spawnUntilUp(t *testing.T, l sandbox.Local, spec sandbox.SpawnSpec) (sandbox.SpawnResult, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var cancelled time.Time
	out := &trigger{text: "up\n", fire: func() { cancelled = time.Now(); cancel() }}
	result, err := l.Spawn(ctx, spec, out, nil)
	took := time.Since(cancelled)
	if err != nil {
		t.Fatal(err)
	}
	if !out.fired {
		t.Fatalf("the script never came up: %+v, printed %q", result, out.String())
	}
	if !result.Cancelled {
		t.Errorf("not marked as cancelled: %+v", result)
	}
	return result, took
}
