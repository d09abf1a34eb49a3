package fleet

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/testenv"
)

// lane is an experiment that takes turns with another one.
type lane struct {
	w       *world
	name    string
	run     *process
	ledger  *os.File
	records int // in the ledger, as far as it was read
	took    time.Duration
	cells   int // in that time
}

// count returns how many records there are by now.
func (l *lane) count() int {
	if l.ledger == nil {
		file, err := os.Open(filepath.Join(l.w.dir, l.name, experiment.LedgerFile))
		if err != nil {
			return 0 // it has none yet
		}
		l.w.t.Cleanup(func() { _ = file.Close() })
		l.ledger = file
	}
	content, err := io.ReadAll(l.ledger)
	if err != nil {
		l.w.t.Fatal(err)
	}
	l.records += bytes.Count(content, []byte("\n"))
	return l.records
}

func (l *lane) over() bool {
	select {
	case <-l.run.over:
		return true
	default:
		return false
	}
}

// control steers the experiment, which may have ended.
func (l *lane) control(action string) {
	<-l.w.start(nil, nil, "benchmark", "ctl", l.name, action).over
}

// turn lets the experiment run for some cells, which count from the first record on, and returns
// when it is paused and nothing runs.
func (l *lane) turn(cells int) {
	l.control("resume")
	first := l.count() + 1
	eventually(l.w.t, l.name+" has begun", func() bool { return l.count() >= first || l.over() })
	began, from := time.Now(), l.records
	eventually(l.w.t, l.name+" has had its turn", func() bool { return l.count() >= from+cells || l.over() })
	l.took, l.cells = l.took+time.Since(began), l.cells+l.records-from
	l.control("pause")
	last := time.Now()
	eventually(l.w.t, l.name+" is idle", func() bool {
		if before := l.records; l.count() > before {
			last = time.Now()
		}
		return time.Since(last) > time.Second || l.over()
	})
}

// What a fleet adds to tiny cells beyond a local run, in real processes with TLS between them, two
// at a time on both sides: two experiments of 2,016 cells that are paused in turns, so that both
// meet the same weather, and the CPU time of both. Run it with FIT_BENCH=1.
func TestOverheadBeyondLocal(t *testing.T) {
	testenv.Measurement(t, "bench-fleet")
	const limit, turn = 1.1, 168
	w, s := newWorld(t), size{tasks: 12, runs: 84}
	w.family(s.tasks)
	tiny := `{"turns":[{"calls":[{"bash":"echo begin >> log.txt"}]},{"text":"Done."}]}`
	if err := os.WriteFile(filepath.Join(w.dir, "script.json"), []byte(tiny), 0o600); err != nil {
		t.Fatal(err)
	}
	m := w.machine(1, 0)
	hub := w.serveHub(testenv.FreePort(t), 30*time.Second)
	worker := w.work(m)
	lanes := [2]*lane{{w: w, name: "local"}, {w: w, name: "fleet"}}
	for i, more := range [2][]string{{"--concurrency", "2"}, {"--fleet", w.url}} {
		l, at := lanes[i], m
		if i == 1 {
			at = nil
		}
		l.run = w.benchmark(at, s, l.name, more...)
		eventually(t, l.name+" has begun", func() bool { return l.count() > 0 || l.over() })
		l.turn(1) // until it is paused
		l.took, l.cells = 0, 0
	}
	for !lanes[0].over() || !lanes[1].over() {
		for _, l := range lanes {
			if !l.over() {
				l.turn(turn)
			}
		}
	}
	for _, l := range lanes {
		if code := l.run.cmd.ProcessState.ExitCode(); code != 0 {
			t.Fatalf("%s ended with %d:\n%s", l.name, code, shorten(l.run.out.String()))
		}
	}
	used := func(all ...*process) (sum time.Duration) {
		for _, p := range all {
			_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended
			<-p.over
			sum += p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
		}
		return sum
	}
	local, fleet := used(lanes[0].run), used(lanes[1].run, worker, hub)
	each := func(l *lane) time.Duration { return l.took / time.Duration(l.cells) }
	ratio := float64(each(lanes[1])) / float64(each(lanes[0]))
	t.Logf("local %s per cell, fleet %s, %.2f times; CPU time %s and %s, %.2f times", each(lanes[0]), each(lanes[1]),
		ratio, local, fleet, float64(fleet)/float64(local))
	if ratio > limit {
		t.Errorf("a cell of a fleet takes %.2f times as long, over %.1f", ratio, limit)
	}
}
