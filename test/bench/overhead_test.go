package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// runLimit is what a run may add, in starts of git: 50 ms on the machine of docs/performance.md.
const runLimit = 45

// TestRunOverhead: against a stub that replays a recording, fit-harness run adds, with its sandbox,
// less than 45 starts of git and 40 MB to running the stub directly.
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
	harness := func() *exec.Cmd {
		cmd := exec.Command(fit, "harness", "run", "--agent", "claude-code", "--task-text", "replay", "--cwd", dir)
		cmd.Env = env
		return cmd
	}
	once(t, harness()) // the version of the stub is looked up once and remembered
	samples := measure(t, 20,
		func() *exec.Cmd { return exec.Command(filepath.Join(dir, "claude")) },
		harness,
		func() *exec.Cmd { return exec.Command("git", "--version") },
	)
	direct, run, git := medianWall(samples[0]), medianWall(samples[1]), medianWall(samples[2])
	added, rss := run-direct, maxRSS(samples[1])-maxRSS(samples[0])
	ratio := float64(added) / float64(git)
	t.Logf("stub %s · fit-harness run %s · added %s, %.1f starts of git (%s), and %.1f MB", direct, run, added, ratio, git,
		float64(rss)/1024)
	if ratio > runLimit {
		t.Errorf("fit-harness run adds %.1f starts of git; the limit is %d", ratio, runLimit)
	}
	if rss > 40*1024 {
		t.Errorf("fit-harness run adds %d KiB; the limit is 40 MB", rss)
	}
}
