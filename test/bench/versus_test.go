package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/report/versus"
	"github.com/fit-eval/fit/internal/report/versus/versustest"
)

// TestVersusReport: a report of 1,000 cells and 15,000 replies takes at most five times as much
// CPU time as the report of fit-benchmark on the same directory, which knows of no replies.
func TestVersusReport(t *testing.T) {
	fit := needBench(t)
	dir := filepath.Join(t.TempDir(), "run")
	d := versustest.Three([3]string{"a", "b", "c"}, "m")
	d.Arms = append(d.Arms[:2:2], versustest.Arm{Name: "other", Agent: "other", Model: "m", Does: versustest.Mistakes},
		versustest.Arm{Name: "fourth", Agent: "fourth", Model: "m", Does: versustest.Solves})
	d.Arms[1].Does = versustest.Mistakes
	d.Tasks, d.Runs, d.Distinct = 50, 5, true
	if err := d.Write(dir); err != nil {
		t.Fatal(err)
	}
	options := versus.Options{Dialects: catalog.Default().Dialects()}
	if err := versustest.Judge(t.Context(), dir, options, 3); err != nil {
		t.Fatal(err)
	}
	ours := func() *exec.Cmd { return exec.CommandContext(t.Context(), fit, "versus", "report", dir, "--robot") }
	theirs := func() *exec.Cmd {
		return exec.CommandContext(t.Context(), fit, "benchmark", "report", "--input", dir)
	}
	var a, b []time.Duration
	for range 5 {
		a, b = append(a, processorTime(t, ours())), append(b, processorTime(t, theirs()))
	}
	slices.Sort(a)
	slices.Sort(b)
	ratio := float64(a[2]) / float64(b[2])
	fmt.Printf("versus report %v, benchmark report %v: %.2f times as much\n", a[2], b[2], ratio)
	if ratio > 5 {
		t.Errorf("a report takes %.2f times what fit-benchmark's takes, want at most 5", ratio)
	}
}

func processorTime(t *testing.T, cmd *exec.Cmd) time.Duration {
	t.Helper()
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
