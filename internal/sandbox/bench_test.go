package sandbox_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// BenchmarkSpawn measures what a spawn costs over os/exec with the program that does
// nothing. The metric "x-os/exec" is the ratio, "ms-more" the difference.
func BenchmarkSpawn(b *testing.B) {
	program := testenv.NeedTool(b, "true")
	bare := bareSpawn(b, program)
	for name, spawn := range map[string]struct {
		local     sandbox.Local
		isolation sandbox.Isolation
		limits    sandbox.Limits
	}{
		"pid-namespace": {local: sandbox.Local{Containment: sandbox.PIDNamespace}},
		"sub-reaper":    {local: sandbox.Local{Containment: sandbox.SubReaper}},
		"process-group": {local: sandbox.Local{Containment: sandbox.ProcessGroup}},
		"with-limits":   {limits: sandbox.Limits{CPUSeconds: 100}},
		"bwrap":         {isolation: sandbox.Isolation{Kind: sandbox.IsolationBwrap}},
	} {
		b.Run(name, func(b *testing.B) {
			spec := sandbox.SpawnSpec{
				Argv: []string{program}, Dir: "/", Isolation: spawn.isolation,
				Limits: spawn.limits,
			}
			for b.Loop() {
				if result, err := spawn.local.Spawn(b.Context(), spec, nil, nil); err != nil || result.ExitCode != 0 {
					b.Fatalf("%+v, %v", result, err)
				}
			}
			each := b.Elapsed() / time.Duration(b.N)
			b.ReportMetric(float64(each)/float64(bare), "x-os/exec")
			b.ReportMetric(float64(each-bare)/1e6, "ms-more")
		})
	}
}

// bareSpawn is the time that os/exec takes.
func bareSpawn(b *testing.B, program string) time.Duration {
	b.Helper()
	const rounds = 200
	start := time.Now()
	for range rounds {
		if err := exec.Command(program).Run(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start) / rounds
}
