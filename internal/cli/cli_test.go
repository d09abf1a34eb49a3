package cli_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/model/scripted"
)

func TestMain(m *testing.M) {
	command := func() { os.Exit(cli.Main()) }
	testscript.Main(m, map[string]func(){
		"fit": command, "fit-harness": command, "fit-eval": command, "fit-trace": command, "fit-selfedit": command,
		"fit-benchmark": command, "subq": command,
	})
}

// TestScripts runs whole commands as a user would; the files in testdata/script are their
// specification.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts())
}

// scripts is how test scripts are run.
func scripts() testscript.Params {
	return testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("GORACE", "atexit_sleep_ms=0") // of hundreds of commands, each would take a second longer
			return os.MkdirAll(filepath.Join(env.WorkDir, "home"), 0o755)
		},
		Condition: needed,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"model":   cmdModel,
			"noproc":  cmdNoProcess,
			"waitfor": cmdWaitFor,
			"sighup":  cmdSighup,
			"within":  cmdWithin,
			"exitsas": cmdExitsAs,
			"bridge":  cmdBridge,
			"rundir":  cmdRunDir,
		},
	}
}

// needed is the condition [need:PROGRAM]: that a program is there. Unlike with [exec:PROGRAM], a
// script cannot skip what lacks one in CI.
func needed(condition string) (bool, error) {
	program, asked := strings.CutPrefix(condition, "need:")
	if !asked {
		return false, fmt.Errorf("unknown condition %q", condition)
	}
	_, err := exec.LookPath(program)
	if err != nil && os.Getenv("CI") == "true" {
		return false, fmt.Errorf("missing where CI=true: %w", err)
	}
	return err == nil, nil
}

// cmdModel serves a scripted model while the script runs: model script.json sets $MODEL_URL.
func cmdModel(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: model script.json")
	}
	script, err := scripted.Parse([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	server := httptest.NewServer(scripted.NewServer(map[string]*scripted.Script{"": script}, scripted.Options{}))
	ts.Defer(server.Close)
	ts.Setenv("MODEL_URL", server.URL)
}

// cmdNoProcess checks that no process carries a text in its command line.
func cmdNoProcess(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: noproc text")
	}
	deadline := time.Now().Add(10 * time.Minute)
	for {
		left := processesWith(args[0])
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("still alive: %s", strings.Join(left, "; "))
		}
		time.Sleep(10 * time.Millisecond) // a killed process takes a moment to vanish from the table
	}
}

// cmdSighup sends SIGHUP, as a closing terminal does, to the processes whose command line holds a
// text. Under nohup, where nobody would listen, it sends SIGINT.
func cmdSighup(ts *testscript.TestScript, _ bool, args []string) {
	if signal.Ignored(syscall.SIGHUP) {
		send(ts, syscall.SIGINT, args)
		return
	}
	send(ts, syscall.SIGHUP, args)
}

func send(ts *testscript.TestScript, sig syscall.Signal, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: sighup text")
	}
	for _, process := range processesWith(args[0]) {
		pid, _, _ := strings.Cut(process, " ")
		number, err := strconv.Atoi(pid)
		ts.Check(err)
		if err := syscall.Kill(number, sig); !errors.Is(err, syscall.ESRCH) { // it may have ended meanwhile
			ts.Check(err)
		}
	}
}

// cmdWaitFor waits until a file holds a text: waitfor FILE TEXT.
func cmdWaitFor(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: waitfor file text")
	}
	for deadline := time.Now().Add(10 * time.Minute); ; {
		content, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.Contains(string(content), args[1]) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s never held %q: %v", args[0], args[1], err)
		}
		time.Sleep(5 * time.Millisecond) // another process writes it; there is nothing to wait on
	}
}

func processesWith(text string) []string {
	var found []string
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, entry := range entries {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(entry)))
		content, err := os.ReadFile(entry)
		if err != nil || pid == os.Getpid() {
			continue
		}
		line := strings.ReplaceAll(string(content), "\x00", " ")
		if strings.Contains(line, text) && !strings.Contains(line, ".test") {
			found = append(found, fmt.Sprintf("%d %s", pid, line))
		}
	}
	return found
}

// cmdExitsAs runs a command and checks its exit code: exitsas CODE command args…
func cmdExitsAs(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exitsas code command args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := exitCode(ts.Exec(args[1], args[2:]...))
	if got != want {
		ts.Fatalf("%s exited with %d, want %d", args[1], got, want)
	}
}

// cmdWithin is exitsas with a time limit: within DURATION CODE command args…
func cmdWithin(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: within duration code command args...")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	start := time.Now()
	cmdExitsAs(ts, neg, args[1:])
	if took := time.Since(start); took > limit {
		ts.Fatalf("%s took %s, more than %s", args[2], took, limit)
	}
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if coded, ok := err.(interface{ ExitCode() int }); ok {
		return coded.ExitCode()
	}
	return -1
}
