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
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// command runs fit and returns its exit code and what it printed.
func (b *bench) command(args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	var out, errs bytes.Buffer
	con := &console.Console{
		Stdin:   strings.NewReader(""),
		Stdout:  &out,
		Stderr:  &errs,
		Environ: b.environ,
		Dir:     b.dir,
		Version: "test",
	}
	code = cli.Run(b.t.Context(), append([]string{"fit-benchmark"}, args...), con)
	return code, out.String(), errs.String()
}

// put writes a file of the family, which may be run.
func (b *bench) put(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.dir, "family", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

// countPodman puts a podman before the real one that writes down what it is asked for.
func countPodman(t *testing.T) (asked func(verb string) int) {
	t.Helper()
	real, err := exec.LookPath("podman")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := fmt.Sprintf("#!/bin/sh\necho \" $* \" >> %s\nexec %s \"$@\"\n", log, real)
	if err := os.WriteFile(filepath.Join(dir, "podman"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func(verb string) int {
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(content), " "+verb+" --")
	}
}

// Ten cells share one build; preflight runs in the container, and what it leaves running ends with
// the attempt.
func TestFourCellsShareOneBuild(t *testing.T) {
	b := newBench(t)
	b.put("family.yaml", "dockerfile: image/Dockerfile\n")
	b.put("image/Dockerfile", "FROM ubuntu:24.04\nCOPY built.txt /app/built.txt\n")
	b.put("image/built.txt", t.TempDir()) // no other test has built it
	service := fmt.Sprintf("sleep 7654321.%d", os.Getpid())
	b.put("tasks/answer/hooks/preflight.sh",
		"#!/bin/sh\n[ -f /app/built.txt ] || exit 1\necho $IN_IMAGE > preflight.txt\n"+service+" >/dev/null 2>&1 &\n")
	b.put("tasks/answer/hooks/invariants.sh", hook+"check preflight \"$(cat preflight.txt)\" yes\n")
	code, _, errs := b.command(append(b.arguments("--runs", "1")[1:], b.arm("builtin")...)...)
	if code != 2 || !strings.Contains(errs, "ubuntu:24.04") {
		t.Fatalf("without its base: exit code %d, %s", code, errs)
	}
	b.put("family.yaml", "dockerfile: image/Dockerfile\nimages: {\"ubuntu:24.04\": "+containertest.Image(t)+"}\n")
	asked := countPodman(t)
	code, _, errs = b.command(append(b.arguments("--runs", "4", "--concurrency", "4", "--attempts", "1")[1:],
		b.arm("builtin")...)...)
	if code != 0 || strings.Count(errs, ": pass ·") != 4 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if builds := asked("build"); builds != 1 {
		t.Errorf("%d builds for four cells", builds)
	}
	if processes, _ := exec.Command("pgrep", "-f", "^"+service).Output(); len(processes) > 0 {
		t.Errorf("a service is alive: %s", processes)
	}
	if left := containersOf(t); left != "" {
		t.Errorf("left: %s", left)
	}
}

// An image is built once on a base, and again when the name of its base stands for another image.
func TestAnImageIsBuiltAgainWhenItsBaseHasMoved(t *testing.T) {
	b := newBench(t)
	base := strings.Replace(containertest.Image(t), ":1", ":moving", 1)
	podman := func(stdin string, args ...string) {
		command := exec.Command("podman", args...)
		command.Stdin = strings.NewReader(stdin)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("podman %v: %v\n%s", args, err, out)
		}
	}
	podman("FROM "+containertest.Image(t)+"\nENV MOVED=yes\n", "build", "--pull=never", "--tag", base+"-to", "-f", "-",
		t.TempDir())
	podman("", "tag", containertest.Image(t), base)
	defer podman("", "rmi", "--force", base, base+"-to")
	b.put("family.yaml", "dockerfile: image/Dockerfile\nimages: {\"ubuntu:24.04\": "+base+"}\n")
	b.put("image/Dockerfile", "FROM ubuntu:24.04\nCOPY built.txt /app/built.txt\n")
	b.put("image/built.txt", t.TempDir()) // no other test has built it
	asked := countPodman(t)
	for i, want := range []int{1, 1, 2, 2} {
		if i == 2 {
			podman("", "tag", base+"-to", base)
		}
		_, _, errs := b.command("lint", "--family", "family", "--repeat", "1")
		if builds := asked("build"); builds != want {
			t.Fatalf("%d builds, want %d: %s", builds, want, errs)
		}
	}
}

// workingContainers lists the containers that builds on the small image work in.
func workingContainers(t *testing.T) string {
	t.Helper()
	image, _, _ := strings.Cut(filepath.Base(containertest.Image(t)), ":")
	list, err := containertest.List("ps", "--all", "--external", "--format", "{{.Names}}")
	if err != nil {
		t.Fatal(err)
	}
	// podman's own filter lets containers pass that are just being made
	names := slices.DeleteFunc(strings.Fields(list), func(name string) bool {
		return !strings.HasPrefix(name, image+"-working-container")
	})
	return strings.Join(names, " ")
}

// A build that is killed with fit leaves no process and no file of ours, and the container that it
// worked in is removed by what the next start and clean do.
func TestAKilledBuildLeavesNothing(t *testing.T) {
	b := newBench(t)
	b.put("family.yaml", "dockerfile: image/Dockerfile\n")
	program := fmt.Sprintf("sleep 8765432.%d", os.Getpid())
	b.put("image/Dockerfile", "FROM "+containertest.Image(t)+"\nRUN "+program+"\n")
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	args := append(b.arguments("--runs", "1"), b.arm("builtin")...)
	cmd := b.start(args)
	builds := func() bool { return exec.Command("pgrep", "-f", "^"+program).Run() == nil }
	b.await("the build", builds)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	b.await("the end of the build", func() bool { return !builds() })
	code, out, errs := b.command("clean")
	if code != 0 {
		t.Errorf("clean: exit code %d: %s%s", code, out, errs)
	}
	t.Logf("clean: %s", out) // any fit of another test may have removed the container before
	if left := workingContainers(t); left != "" {
		t.Errorf("left: %s", left)
	}
	// The directory for workspaces is named after the run, whose next process removes it.
	if left := glob.Below(temporary, "fit-[^w]*"); len(left) > 0 {
		t.Errorf("left: %s", left)
	}
}

// An image that is not there is an error before anything is paid, with and without --pull.
func TestAMissingImageIsNamedBeforeAnythingIsPaid(t *testing.T) {
	b := newBench(t)
	const image = "localhost:1/nowhere/nothing:1" // nobody answers there
	b.put("family.yaml", "image: "+image+"\n")
	asked := countPodman(t)
	args := slices.Concat(b.arguments("--runs", "1")[1:], b.arm("builtin"))
	code, _, errs := b.command(args...)
	if code != 2 || !strings.Contains(errs, "podman pull "+image) || !strings.Contains(errs, "--pull") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code, _, errs := b.command(append(args, "--pull")...); code == 0 || !strings.Contains(errs, image) {
		t.Errorf("with --pull: exit code %d: %s", code, errs)
	}
	if runs := asked("run"); runs != 0 {
		t.Errorf("%d containers were started", runs)
	}
	if _, err := ledger.ReadFile(filepath.Join(b.dir, "out", "results.jsonl")); err == nil {
		t.Error("there are results")
	}
}

// TestStartBesideTheEngine compares the time from the start of a container to the first event of an
// agent in it with that of the engine's own run. Run it with FIT_BENCH=1.
func TestStartBesideTheEngine(t *testing.T) {
	testenv.Measurement(t, "bench-container")
	b := newBench(t)
	image := containertest.Image(t)
	bare, ours := time.Hour, time.Hour
	for i := range 5 { // in turns, so that both meet the same weather
		began := time.Now()
		run := exec.Command("podman", "--runtime", "runc", "run", "--rm", "--pull", "never", "--network", "none",
			"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000", image, "sh", "-c", "exit 0")
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		bare = min(bare, time.Since(began))
		_, out, _ := b.command(append(b.arguments("--runs", "2", "--concurrency", "1", "--output",
			fmt.Sprint("out-", i))[1:], b.arm("builtin")...)...)
		for line := range strings.Lines(out) {
			var r ledger.Record
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			// the agent announces itself when the workspace and its container are ready
			ours = min(ours, time.Duration(r.PhaseMs["setup"]+r.PhaseMs["preflight"])*time.Millisecond)
		}
	}
	t.Logf("the engine's own run %s, to the first event %s, %.2f times", bare, ours, ours.Seconds()/bare.Seconds())
	if 2*ours > 3*bare {
		t.Errorf("an agent in a container says its first word after %s, over 1.5 times the %s of the engine's own run",
			ours, bare)
	}
}
