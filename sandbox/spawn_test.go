package sandbox_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/fit-eval/fit/sandbox"
)

func play(role string) int { return 0 }

func TestQuick(t *testing.T) {
	for _, c := range []sandbox.Containment{"", sandbox.PIDNamespace, sandbox.SubReaper, sandbox.ProcessGroup} {
		var out, errs bytes.Buffer
		res, err := sandbox.Local{Containment: c}.Spawn(context.Background(), sandbox.SpawnSpec{Argv: []string{"sh", "-c", "ps ax -o pid,ppid,sid,args | tail -6; env; echo e >&2; ls -l /proc/self/fd; sleep 100 & setsid sleep 200 & exit 3"}, Env: []string{"PATH=/usr/bin:/bin", "A=b"}}, &out, &errs)
		t.Logf("%s: %+v %v\n%s\n%s", c, res, err, out.String(), errs.String())
	}
}

func BenchmarkTrue(b *testing.B) {
	for _, c := range []sandbox.Containment{sandbox.PIDNamespace, sandbox.SubReaper, sandbox.ProcessGroup} {
		b.Run(string(c), func(b *testing.B) {
			for b.Loop() {
				res, err := sandbox.Local{Containment: c}.Spawn(context.Background(), sandbox.SpawnSpec{Argv: []string{"/bin/true"}}, nil, nil)
				if err != nil || res.ExitCode != 0 {
					b.Fatal(res, err)
				}
			}
		})
	}
}
