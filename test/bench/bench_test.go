package bench

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/testenv"
)

// sample is what one run of a command took.
type sample struct {
	wall time.Duration
	rss  int64 // KiB, of the largest process
}

func needBench(t *testing.T) (fit string) {
	t.Helper()
	testenv.Measurement(t, "bench")
	fit, err := filepath.Abs("../../bin/fit")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fit); err != nil {
		t.Fatalf("make build first: %v", err)
	}
	return fit
}

// measure runs commands alternately, so that whatever else the machine does hits all of them alike.
func measure(t *testing.T, rounds int, commands ...func() *exec.Cmd) [][]sample {
	t.Helper()
	samples := make([][]sample, len(commands))
	for range rounds {
		for i, command := range commands {
			samples[i] = append(samples[i], once(t, command()))
		}
	}
	return samples
}

func once(t *testing.T, cmd *exec.Cmd) sample {
	t.Helper()
	var output bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &output
	}
	cmd.Stderr = &output
	start := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, output.String())
	}
	wall := time.Since(start)
	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return sample{wall: wall, rss: usage.Maxrss}
}

func medianWall(samples []sample) time.Duration {
	walls := make([]time.Duration, len(samples))
	for i, s := range samples {
		walls[i] = s.wall
	}
	slices.Sort(walls)
	return walls[len(walls)/2]
}

func maxRSS(samples []sample) int64 {
	var most int64
	for _, s := range samples {
		most = max(most, s.rss)
	}
	return most
}

// TestStartup: fit --help takes at most 6 times as long as git --version, and under 25 MB.
func TestStartup(t *testing.T) {
	fit := needBench(t)
	samples := measure(t, 40,
		func() *exec.Cmd { return exec.Command("git", "--version") },
		func() *exec.Cmd { return exec.Command(fit, "--help") },
		func() *exec.Cmd { return exec.Command("node", "--version") },
	)
	git, help, node := medianWall(samples[0]), medianWall(samples[1]), medianWall(samples[2])
	ratio := float64(help) / float64(git)
	rss := maxRSS(samples[1])
	t.Logf("git --version %s · fit --help %s (%.1f×, %.1f MB) · node --version %s", git, help, ratio, float64(rss)/1024,
		node)
	if ratio > 6 {
		t.Errorf("fit --help takes %.1f times as long as git --version; the limit is 6", ratio)
	}
	if rss > 25*1024 {
		t.Errorf("fit --help uses %d KiB; the limit is 25 MB", rss)
	}
}
