package sandbox_test

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/sandbox"
)

func TestLimitsHoldForTheProgramAndItsChildren(t *testing.T) {
	eachContainment(t, func(t *testing.T, l sandbox.Local) {
		spec := shell(`sh -c 'ulimit -Hf; ulimit -Hd; ulimit -Ht; ulimit -Hn; cat /proc/self/limits' | grep -v Max.processes; exit 6`)
		spec.Limits = sandbox.Limits{MemoryBytes: 512 << 20, FileBytes: 1 << 20, CPUSeconds: 77, OpenFiles: 55}
		result, out, _ := run(t, l, spec)
		if !strings.HasPrefix(out, "2048\n524288\n77\n55\n") {
			t.Errorf("limits seen inside: %q", out)
		}
		if result.ExitCode != 6 {
			t.Errorf("got %+v", result)
		}
	})
}

func TestFileLimitStopsAWriter(t *testing.T) {
	spec := shell(`head -c 2000000 /dev/zero > big; ls -l big | awk '{print $5}'`)
	spec.Dir = t.TempDir()
	spec.Limits = sandbox.Limits{FileBytes: 1 << 20}
	if _, out, _ := run(t, sandbox.Local{}, spec); out != "1048576\n" {
		t.Errorf("the file has %q bytes", out)
	}
}

func TestMemoryLimitStopsAnEater(t *testing.T) {
	// tail keeps the whole of a line without end.
	spec := shell(`head -c 300000000 /dev/zero | tail -n 1 | wc -c`)
	spec.Limits = sandbox.Limits{MemoryBytes: 64 << 20}
	if _, out, _ := run(t, sandbox.Local{}, spec); strings.TrimSpace(out) == "300000000" {
		t.Error("a program used more memory than it may")
	}
}

func TestLimitsWithoutASupervisorAreRefused(t *testing.T) {
	spec := shell(`true`)
	spec.Limits = sandbox.Limits{CPUSeconds: 1}
	_, err := sandbox.Local{Containment: sandbox.ProcessGroup}.Spawn(t.Context(), spec, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "supervisor") {
		t.Errorf("got %v, want an error that says what is missing", err)
	}
}
