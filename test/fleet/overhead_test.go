package fleet

import (
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/testenv"
)

// What a fleet adds to a cell beyond a local run, in real processes with TLS between them: two at a
// time on both sides, in turns, so that both meet the same weather. Run it with FIT_BENCH=1.
func TestOverheadBeyondLocal(t *testing.T) {
	testenv.Measurement(t, "bench-fleet")
	const limit, rounds = 50 * time.Millisecond, 2
	w := newWorld(t)
	s := size{tasks: 10, runs: 2}
	w.family(s.tasks)
	m := w.machine(1, 0)
	w.serveHub(testenv.FreePort(t), 30*time.Second)
	w.work(m)
	var alone, fleet time.Duration
	for round := range rounds {
		names := [2]string{"local", "fleet"}
		for i, more := range [2][]string{{"--concurrency", "2"}, {"--fleet", w.url}} {
			at := m
			if i == 1 {
				at = nil
			}
			began := time.Now()
			run := w.benchmark(at, s, names[i]+string(rune('0'+round)), more...)
			<-run.over
			if code := run.cmd.ProcessState.ExitCode(); code != 0 {
				t.Fatalf("%s ended with %d:\n%s", names[i], code, shorten(run.out.String()))
			}
			if took := time.Since(began); i == 0 {
				alone += took
			} else {
				fleet += took
			}
		}
	}
	cells := time.Duration(rounds * 2 * s.tasks * s.runs)
	more := (fleet - alone) / cells * 2 // two at a time
	t.Logf("local %s per cell, fleet %s per cell, %s more", 2*alone/cells, 2*fleet/cells, more)
	if more > limit {
		t.Errorf("a fleet adds %s to a cell, over %s", more, limit)
	}
}
