package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// The environment that makes the test binary the coordinator of a measurement.
const (
	envBenchURL   = "FIT_FLEET_BENCH_URL"
	envBenchDir   = "FIT_FLEET_BENCH_DIR"
	envBenchCells = "FIT_FLEET_BENCH_CELLS"
)

func needBench(t *testing.T) {
	t.Helper()
	testenv.Measurement(t, "bench-fleet")
}

// coordinator is a coordinator in a process of its own, so that its memory is its own.
type coordinator struct {
	cmd   *exec.Cmd
	began time.Time
	lines chan string
}

func (w *world) startCoordinator(cells int) *coordinator {
	w.t.Helper()
	c := &coordinator{cmd: exec.Command(os.Args[0], "-test.run=^TestBenchCoordinator$"), lines: make(chan string, 10)}
	c.cmd.Env = append(os.Environ(), envBenchURL+"="+w.url, envBenchDir+"="+w.dir,
		envBenchCells+"="+strconv.Itoa(cells))
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		c.began = time.Now()
		err = c.cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(c.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			c.lines <- scanner.Text()
		}
	}()
	return c
}

// end waits for the end and returns the peak of the memory in bytes.
func (c *coordinator) end(t *testing.T) int64 {
	t.Helper()
	for line := range c.lines {
		if strings.HasPrefix(line, "---") || strings.Contains(line, "bench_test.go") {
			t.Log("coordinator: ", line)
		}
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("the coordinator: %v", err)
	}
	return c.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

// TestBenchCoordinator is what the process of a coordinator runs; by itself it does nothing.
func TestBenchCoordinator(t *testing.T) {
	url := os.Getenv(envBenchURL)
	if url == "" {
		return
	}
	cells, err := strconv.Atoi(os.Getenv(envBenchCells))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, url: url, dir: os.Getenv(envBenchDir)}
	p, output := w.prepared(100, cells/100, "a"), filepath.Join(w.dir, "run")
	dir, e := w.coordinate(p, output, nil)
	if outcome := w.run(dir, e); outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
}

// Ten thousand cells are in the queue within ten seconds, and the coordinator stays small while
// workers make them. Run it with FIT_BENCH=1.
func TestTenThousandCells(t *testing.T) {
	needBench(t)
	const cells, limit, memory = 10_000, 10 * time.Second, 200 << 20
	w := newWorld(t)
	hub := w.dial()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	announced := make(chan struct{})
	roomy := w.dialAt(w.worker, RoleWorker)
	go func() { // workers that have room for all of them and take none
		defer close(announced)
		var err error
		for err == nil {
			for i := range cells / MaxSlots {
				about := Worker{
					Protocol:  Protocol,
					Name:      fmt.Sprintf("roomy-%d", i),
					Fit:       testVersion,
					Slots:     MaxSlots,
					Agents:    map[string]string{"builtin": "1"},
					Isolation: []string{"none"},
				}
				content, jsonErr := json.Marshal(about)
				putErr := roomy.put(ctx, workersBucket, roomy.public+"."+about.Name, content)
				err = errors.Join(err, jsonErr, putErr)
			}
			select {
			case <-time.After(heartbeat):
			case <-ctx.Done():
				return
			}
		}
		t.Errorf("announce: %v", err)
	}()
	c := w.startCoordinator(cells)
	eventually(t, "all are in the queue", func() bool {
		pools, err := hub.pools(ctx)
		if err != nil || len(pools) != 1 {
			return false
		}
		stream, err := hub.js.Stream(ctx, pools[0].stream())
		return err == nil && stream.CachedInfo().State.Msgs == cells
	})
	took := time.Since(c.began)
	t.Logf("%d cells were in the queue after %s", cells, took)
	if took > limit {
		t.Errorf("enqueued in %s, over %s", took, limit)
	}
	for i := range 4 {
		w.work(fmt.Sprintf("w%d", i), 8, passes, nil)
	}
	peak := c.end(t)
	t.Logf("the coordinator used %d MB at most, and everything took %s", peak>>20, time.Since(c.began))
	if peak > memory {
		t.Errorf("the coordinator used %d MB, over %d", peak>>20, memory>>20)
	}
	cancel()
	<-announced
}

// Two hundred workers keep a queue of instant cells at 500 cells a second. Run it with FIT_BENCH=1.
func TestTwoHundredWorkers(t *testing.T) {
	needBench(t)
	const workers, cells, rate = 200, 10_000, 500
	w := newWorld(t)
	var made atomic.Int64
	var first, last atomic.Int64
	for i := range workers {
		w.work(fmt.Sprintf("w%d", i), 1, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
			now := time.Now().UnixNano()
			if made.Add(1) == 1 {
				first.Store(now)
			}
			last.Store(now)
			return verdict(cell)
		}, nil)
	}
	c := w.startCoordinator(cells)
	peak := c.end(t)
	took := time.Duration(last.Load() - first.Load())
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		t.Fatal(err)
	}
	t.Logf("CPU time: coordinator %s, hub and workers %s", c.cmd.ProcessState.UserTime()+
		c.cmd.ProcessState.SystemTime(), time.Duration(own.Utime.Nano()+own.Stime.Nano()))
	got := float64(made.Load()) / took.Seconds()
	t.Logf("%d workers made %d cells in %s, %.0f a second; the coordinator used %d MB", workers, made.Load(), took, got,
		peak>>20)
	if got < rate {
		t.Errorf("%.0f cells a second, under %d", got, rate)
	}
}

// TestEngineAlone is the rate of the engine with cells that cost nothing: what a fleet cannot
// exceed. Run it with FIT_BENCH=1.
func TestEngineAlone(t *testing.T) {
	needBench(t)
	w := &world{t: t, dir: t.TempDir()}
	p, output := w.prepared(100, 20, "a"), filepath.Join(w.dir, "run")
	dir, err := experiment.OpenDirectory(output, p.Plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	began := time.Now()
	outcome, err := experiment.Run(t.Context(), dir, experiment.Config{
		Executor:    &fake{sink: dir, do: passes},
		Concurrency: 200,
	})
	if err != nil || outcome.Status != experiment.Complete {
		t.Fatal(outcome, err)
	}
	t.Logf("%.0f cells a second", 2000/time.Since(began).Seconds())
}
