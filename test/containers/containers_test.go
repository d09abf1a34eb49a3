// Package containers runs whole experiments in real containers: every agent without any network but
// its model, the command line of docker, and processes that are killed.
package containers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/ledger"
)

// playVariable makes the test binary fit itself.
const playVariable = "FIT_TEST_PLAY"

func TestMain(m *testing.M) {
	if os.Getenv(playVariable) != "" {
		os.Exit(cli.Main())
	}
	code := m.Run()
	if left, err := containertest.Left(); err != nil || left != "" {
		fmt.Printf("the tests have left containers: %s %v\n", left, err)
		code = max(code, 1)
	}
	containertest.Remove()
	os.Exit(code)
}

// lookAround writes down what a program sees of its image, its user and its network.
const lookAround = "echo $IN_IMAGE > from.txt && echo $HOME > home.txt && " +
	"cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' ' > networks.txt"

// script solves the task with tools that every agent has.
const script = `{"turns":[
	{"calls":[{"bash":"cat image.txt && ` + lookAround + `"}]},
	{"calls":[{"bash":"echo 42 > answer.txt"}]},
	{"text":"Done."}]}`

const hook = `#!/bin/sh
check() { if [ "$2" = "$3" ]; then p=true; else p=false; echo "$1: $2" >&2; fi; echo "{\"test\":\"$1\",\"pass\":$p}" >&3; }
check answer "$(cat answer.txt)" 42
check image "$(cat from.txt)" yes
check networks "$(cat networks.txt)" lo
`

// agents are all that there are, with the model that they ask for.
var agents = map[string]string{
	"builtin": "claude-sonnet-4-5", "claude-code": "claude-sonnet-4-5", "codex": "gpt-5.5",
	"pi-agent": "claude-sonnet-4-5",
}

// bench is a family in an image, a model, and somebody who runs it.
type bench struct {
	t       *testing.T
	dir     string
	url     string
	environ []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	containertest.Engine(t)
	bin, err := filepath.Abs("../agents/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{
		t:   t,
		dir: t.TempDir(),
		url: scriptedtest.ServeAll(t, map[string]string{"": script}, scripted.Options{}),
		environ: []string{
			"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8",
			"ANTHROPIC_API_KEY=a-key-that-nobody-sees", "OPENAI_API_KEY=a-key-that-nobody-sees",
			sandbox.HelperVariable + "=" + containertest.Helper(t),
		},
	}
	for name, content := range map[string]string{
		"family.yaml":                      "image: " + containertest.Image(t) + "\n",
		"tasks/answer/agent.task.md":       "Write the answer to answer.txt.\n",
		"tasks/answer/hooks/invariants.sh": hook,
	} {
		path := filepath.Join(b.dir, "family", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// arguments are those of a run without network.
func (b *bench) arguments(more ...string) []string {
	return append([]string{
		"fit-benchmark", "run", "--family", "family", "--output", "out", "--network", "model", "--no-probe",
		"--format", "json",
	}, more...)
}

// arm is an agent on the scripted model.
func (b *bench) arm(id string) []string {
	return []string{"--arm", fmt.Sprintf("%s=agent:%s,model:%s,modelUrl:%s", id, id, agents[id], b.url)}
}

// run runs the command in this process, and returns the records by arm.
func (b *bench) run(args []string) map[string]ledger.Record {
	b.t.Helper()
	var out, errs bytes.Buffer
	con := &console.Console{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: b.environ, Dir: b.dir,
		Version: "test",
	}
	if code := cli.Run(b.t.Context(), args, con); code != 0 {
		b.t.Fatalf("exit code %d\n%s\n%s", code, errs.String(), out.String())
	}
	records := map[string]ledger.Record{}
	for line := range bytes.Lines(out.Bytes()) {
		var r ledger.Record
		if err := json.Unmarshal(line, &r); err != nil {
			b.t.Fatal(err)
		}
		records[r.Arm] = r
	}
	return records
}

// containersOf lists the containers of the image. Tests that run beside others leave the looking to
// TestMain.
func containersOf(t *testing.T) string {
	t.Helper()
	left, err := containertest.Left()
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// killMoments is how often fit is killed; all of them in make soak.
func killMoments() int {
	if os.Getenv("FIT_SOAK") != "" {
		return 20
	}
	return 2
}

// start starts fit in a process of its own.
func (b *bench) start(args []string) *exec.Cmd {
	b.t.Helper()
	cmd := exec.Command(os.Args[0], args[1:]...)
	cmd.Args[0], cmd.Dir = "fit-benchmark", b.dir
	cmd.Env = append(slices.Clone(b.environ), playVariable+"=1", "TMPDIR="+os.TempDir())
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	return cmd
}

// await waits until something is there.
func (b *bench) await(what string, there func() bool) {
	b.t.Helper()
	again, late := time.NewTicker(100*time.Millisecond), time.After(5*time.Minute)
	defer again.Stop()
	for !there() {
		select {
		case <-again.C:
		case <-late:
			b.t.Fatalf("%s is not there after five minutes", what)
		}
	}
}

// Whenever fit is killed, nothing of it runs on, and the same command again loses no cell.
func TestAKilledProcessLeavesNothingRunningAndLosesNoCell(t *testing.T) {
	b := newBench(t)
	args := append(b.arguments("--runs", "2", "--concurrency", "2"), b.arm("builtin")...)
	// The moments are spread over the time that the whole takes here and now.
	began := time.Now()
	whole := b.start(append(slices.Clone(args), "--output", "whole"))
	if err := whole.Wait(); err != nil {
		t.Fatal(err)
	}
	took, moments := time.Since(began), killMoments()
	for i := range moments {
		cmd := b.start(args)
		if i == 0 { // however long it takes today, one kill meets an attempt in flight
			b.await("an attempt", func() bool {
				begun, err := filepath.Glob(filepath.Join(b.dir, "out", "runs", "*", "*", "*", "*"))
				return err == nil && len(begun) > 0
			})
		} else {
			time.Sleep(took * time.Duration(i+1) / time.Duration(moments+1)) // the moment is what is tested
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	b.environ = append(b.environ, "TMPDIR="+os.TempDir())
	b.run(args)
	contents, err := ledger.ReadFile(filepath.Join(b.dir, "out", "results.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	passed := map[int]bool{}
	for i := range contents.Records {
		if r := &contents.Records[i]; r.Verdict == ledger.Pass {
			passed[r.RunIndex] = true
		}
	}
	if len(passed) != 2 {
		t.Errorf("%d of 2 cells passed", len(passed))
	}
	if left := containersOf(t); left != "" {
		t.Errorf("left: %s", left)
	}
}
