package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What a run may add, in starts of git: 45 were 50 ms on the machine of docs/performance.md. The
// sandbox is tried before it is trusted, which is a start of it more.
const (
	runLimit       = 45
	sandboxedLimit = 65
)

// TestRunOverhead: against a stub that replays a recording, fit-harness run adds no more than that,
// and 40 MB, to running the stub directly.
func TestRunOverhead(t *testing.T) {
	fit := needBench(t)
	recording, err := os.ReadFile("testdata/recording.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // the sandbox shows the working directory, and not this repository
	played := filepath.Join(dir, "recording.jsonl")
	stub := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *--version*) echo '2.1.197 (Claude Code)'; exit 0;; esac\ncat %s\n",
		played)
	if err := errors.Join(os.WriteFile(played, recording, 0o644),
		os.WriteFile(filepath.Join(dir, "claude"), []byte(stub), 0o755)); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir,
		"ANTHROPIC_API_KEY=sk-ant-not-a-real-key", "XDG_CACHE_HOME="+dir)
	harness := func(isolation string) func() *exec.Cmd {
		return func() *exec.Cmd {
			cmd := exec.Command(fit, "harness", "run", "--agent", "claude-code", "--task-text", "replay", "--cwd", dir,
				"--isolation", isolation)
			cmd.Env = env
			return cmd
		}
	}
	once(t, harness("none")()) // the version of the stub is looked up once and remembered
	samples := measure(t, 20,
		func() *exec.Cmd { return exec.Command(filepath.Join(dir, "claude")) },
		func() *exec.Cmd { return exec.Command("git", "--version") },
		harness("none"),
		harness("bwrap"),
	)
	direct, git := medianWall(samples[0]), medianWall(samples[1])
	for i, limit := range []float64{runLimit, sandboxedLimit} {
		isolation, run := []string{"none", "bwrap"}[i], samples[2+i]
		added, rss := medianWall(run)-direct, maxRSS(run)-maxRSS(samples[0])
		starts := float64(added) / float64(git)
		t.Logf("stub %s · fit-harness run --isolation %s: %s more, %.1f starts of git (%s), and %.1f MB", direct, isolation,
			added, starts, git, float64(rss)/1024)
		if starts > limit || rss > 40*1024 {
			t.Errorf("isolation %s: the limits are %.0f starts of git and 40 MB", isolation, limit)
		}
	}
}
