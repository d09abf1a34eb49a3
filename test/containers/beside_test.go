package containers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/ledger"
)

// besideSet copies the Harbor tasks with services, on the images of the test.
func besideSet(t *testing.T) string {
	t.Helper()
	set := harborSet(t, "beside")
	text := "images: {\"debian:bookworm-slim\": " + containertest.Image(t) + ", \"python:3-slim\": " +
		containertest.Python(t) + "}\n"
	if err := os.WriteFile(filepath.Join(set, "family.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return set
}

// noneLeft waits until no container of the test's images is there.
func noneLeft(t *testing.T) {
	t.Helper()
	(&bench{t: t}).await("a machine without containers of the test", func() bool {
		left, err := containertest.Left()
		if err != nil {
			t.Fatal(err)
		}
		return left == ""
	})
}

// The services of a task run beside its agent and its verifier, who reach them by name, and see no
// more of the world than the agent does.
func TestServicesRunBesideTheAgent(t *testing.T) {
	containertest.Engine(t)
	set, dir := besideSet(t), t.TempDir()
	code, out, errs := fit(t, dir, "lint", "--repeat", "1", "--family", set)
	if code != 0 || !strings.Contains(out, "0 errors") {
		t.Errorf("exit code %d\n%s\n%s", code, errs, out)
	}
	records := harborRun(t, dir, set, map[string]string{
		"asks":    "exec 3<>/dev/tcp/answers/8000; cat <&3 > answer.txt",
		"guesses": "echo forty-two > answer.txt",
	})
	for cell, want := range map[string]string{
		"enclosed asks": ledger.Pass, "enclosed guesses": ledger.Fail,
		"open asks": ledger.Pass, "open guesses": ledger.Fail,
	} {
		t.Run(cell, func(t *testing.T) {
			if r := records[cell]; r.Verdict != want {
				t.Errorf("%s %s: %s", r.Verdict, r.ErrorClass, r.ErrorMessage)
			}
		})
	}
	noneLeft(t)
}

// besideBench is somebody who runs the tasks with services, whose agents do something.
func besideBench(t *testing.T, does string) *bench {
	t.Helper()
	b := newBench(t)
	family := filepath.Join(b.dir, "family")
	if err := os.RemoveAll(family); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(besideSet(t), family); err != nil {
		t.Fatal(err)
	}
	b.url = scriptedtest.ServeAll(t, map[string]string{
		"": `{"turns":[{"calls":[{"bash":"` + does + `"}]},{"text":"Done."}]}`,
	}, scripted.Options{})
	return b
}

// A service can be a tool server: of an agent in the container, and of the one that is part of fit.
func TestAServiceIsAToolServer(t *testing.T) {
	b := besideBench(t, "true")
	b.url = scriptedtest.ServeAll(t, map[string]string{
		"": `{"turns":[{"calls":[{"mcp":"answers/ask","input":{}}]},` +
			`{"calls":[{"bash":"echo ${last_result} > answer.txt"}]},{"text":"Done."}]}`,
	}, scripted.Options{})
	args := append(b.arguments("--runs", "1", "--attempts", "1", "--task", "tools"), b.arm("builtin")...)
	for arm, r := range b.run(append(args, b.arm("claude-code")...)) {
		if r.Verdict != ledger.Pass {
			t.Errorf("%s: %s %s: %s", arm, r.Verdict, r.ErrorClass, r.ErrorMessage)
		}
	}
	noneLeft(t)
}

// Agents in the container reach the services and their model, with and without a way out.
func TestAgentsInTheContainerReachServicesAndTheirModel(t *testing.T) {
	b := besideBench(t, "exec 3<>/dev/tcp/answers/8000; cat <&3 > answer.txt")
	for _, network := range []struct{ task, kind string }{{"enclosed", "model"}, {"open", "host"}} {
		args := append(b.arguments("--runs", "1", "--attempts", "1", "--task", network.task, "--network", network.kind,
			"--output", network.task), b.arm("claude-code")...)
		if r := b.run(args)["claude-code"]; r.Verdict != ledger.Pass || r.Gateway != "on" {
			t.Errorf("%s: %s %s: %s, gateway %s", network.task, r.Verdict, r.ErrorClass, r.ErrorMessage, r.Gateway)
		}
	}
	noneLeft(t)
}

// A fit that is killed while services run beside its agent leaves nothing, and the same command
// again runs the task to its end.
func TestAKillLeavesNoService(t *testing.T) {
	mark := fmt.Sprintf("6543211.%d", os.Getpid())
	b := besideBench(t, "exec 3<>/dev/tcp/answers/8000; cat <&3 > answer.txt; sleep "+mark)
	args := append(b.arguments("--runs", "1", "--task", "enclosed"), b.arm("builtin")...)
	var pid int
	works := func() bool {
		out, err := exec.Command("pgrep", "-f", "^sleep "+mark).Output()
		pid, _ = strconv.Atoi(strings.TrimSpace(string(out)))
		return err == nil
	}
	cmd := b.start(args)
	b.await("the agent", works)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	b.await("the end of the agent", func() bool { return !works() })
	noneLeft(t)
	again := b.start(args)
	b.await("the agent", works)
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil { // it need not wait any longer
		t.Fatal(err)
	}
	if err := again.Wait(); err != nil {
		t.Fatal(err)
	}
	noneLeft(t)
}
