package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/sandbox/proc"
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

func TestATreeThatUsesTooMuchIsEnded(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		limits sandbox.Limits
	}{
		// Three processes, each within what one may have.
		proc.ExceededMemory: {
			`for i in 1 2 3; do { head -c 60000000 /dev/zero; sleep 1000; } | tail -n 1 & done; wait`,
			sandbox.Limits{TreeMemoryBytes: 100 << 20},
		},
		proc.ExceededDisk: {
			`i=0; while :; do head -c 1000000 /dev/zero >file$i; i=$((i+1)); [ $i -lt 100 ] || sleep 1000; done`,
			sandbox.Limits{DiskBytes: 20 << 20},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := shell(test.script)
			spec.Dir, spec.Limits, spec.Timeout = t.TempDir(), test.limits, patience
			spec.Isolation.Writable = []string{spec.Dir}
			if result, _, _ := run(t, sandbox.Local{}, spec); result.Exceeded != name || result.TimedOut {
				t.Errorf("got %+v", result)
			}
		})
	}
}

// sharesMemory is a program whose processes share a mapping, for a while.
const sharesMemory = `
import mmap, os, sys, time
shared = mmap.mmap(-1, 120 << 20)
for at in range(0, len(shared), 4096): shared[at] = 1
for child in range(int(sys.argv[1])):
    if os.fork() == 0:
        sum(shared[at] for at in range(0, len(shared), 4096))
        break
time.sleep(float(sys.argv[2]))`

func TestMemoryThatIsSharedCountsOnce(t *testing.T) {
	eachUser(t, func(t *testing.T, a attacker) {
		a.run(t, isolatedRun{
			Limits:   sandbox.Limits{TreeMemoryBytes: 100 << 20},
			Exceeded: proc.ExceededMemory,
			Argv:     []string{"python3", "-c", sharesMemory, "0", "1000"},
		})
		a.run(t, isolatedRun{
			Limits: sandbox.Limits{TreeMemoryBytes: 300 << 20},
			Argv:   []string{"python3", "-c", sharesMemory, "3", "2"}, // 480 MB for who adds them up
		})
	})
}

// holdsFiles is a program that keeps files without a name: in memory, on disk, and very many.
const holdsFiles = `
import os, sys, time
if sys.argv[1] == "memory":
    held = os.memfd_create("held")
else:
    held = os.open("held", os.O_CREAT | os.O_RDWR)
    os.unlink("held")
if sys.argv[1] == "open files":
    for child in range(20):
        if os.fork() == 0:
            for number in range(4000): os.dup(held)
            break
else:
    for megabyte in range(120): os.write(held, b"x" * (1 << 20))
time.sleep(1000)`

func TestFilesWithoutANameCount(t *testing.T) {
	eachUser(t, func(t *testing.T, a attacker) {
		for exceeded, limits := range map[string]sandbox.Limits{
			proc.ExceededMemory: {TreeMemoryBytes: 100 << 20},
			proc.ExceededDisk:   {DiskBytes: 100 << 20},
			proc.ExceededFiles:  {TreeMemoryBytes: 10 << 30, DiskBytes: 10 << 30},
		} {
			t.Run(exceeded, func(t *testing.T) {
				program := []string{"python3", "-c", holdsFiles, exceeded}
				a.run(t, isolatedRun{Limits: limits, Exceeded: exceeded, Argv: program})
			})
		}
	})
}

// Callers name a directory twice, and directories in it.
func TestAFileIsCountedOnce(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "home")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	spec := shell(`head -c 15000000 /dev/zero >home/file; sleep 2`)
	spec.Dir, spec.Limits = dir, sandbox.Limits{DiskBytes: 20 << 20}
	spec.Isolation.Writable = []string{inner, dir, dir}
	if result, _, _ := run(t, sandbox.Local{}, spec); result.Exceeded != "" || result.ExitCode != 0 {
		t.Errorf("got %+v", result)
	}
}

func TestDefaultLimitsHoldInTheSandbox(t *testing.T) {
	eachUser(t, func(t *testing.T, a attacker) {
		limits := sandbox.DefaultLimits(sandbox.IsolationBwrap)
		limits.Processes = 40
		out := a.run(t, isolatedRun{Limits: limits, Argv: []string{
			"sh", "-c",
			`ulimit -Hn; n=0; while [ $n -lt 100 ]; do sleep 1000 & n=$((n+1)); done 2>/dev/null; echo all`,
		}})
		if !strings.HasPrefix(out, "16384\n") || strings.Contains(out, "all") {
			t.Errorf("100 processes where 40 are allowed: %q", out)
		}
	})
}

// A sandbox has a /tmp of its own, which lies in memory.
func TestFilesInMemoryCount(t *testing.T) {
	for name, limits := range map[string]sandbox.Limits{
		proc.ExceededDisk:   {DiskBytes: 20 << 20},
		proc.ExceededMemory: {TreeMemoryBytes: 60 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			eachUser(t, func(t *testing.T, a attacker) {
				out := a.run(t, isolatedRun{
					Limits: limits, Exceeded: name,
					Argv: []string{"sh", "-c", "head -c 100000000 /dev/zero >/tmp/file; sleep 1000"},
				})
				if out != "" {
					t.Error(out)
				}
			})
		})
	}
}
