package harness_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// worker is an agent as fast as can be: it answers every ask at once, and as facilitator asks
// everybody again until there were enough messages.
type worker struct {
	cfg    harness.AgentConfig
	rounds int // of the facilitator
	team   int
	got    int
	first  func() // called when everybody has started and answered once
	last   func() // called when everybody has answered for the last time
}

func (w *worker) Info() agent.Info { return agent.Info{ID: "worker"} }
func (w *worker) Probe(context.Context, agent.Host) (agent.Installation, error) {
	return agent.Installation{}, nil
}
func (w *worker) Dialects() []session.Dialect                                { return nil }
func (w *worker) Start(context.Context, agent.Config) (agent.Session, error) { return w, nil }
func (w *worker) ID() string                                                 { return "" }
func (w *worker) Close() error                                               { return nil }

var (
	workerQuestion = json.RawMessage(`{"question":"What is the state of the part that you are responsible for, and what do you need next?"}`)
	workerAnswer   = json.RawMessage(`{"message":"It is in order: seven out of ten are done, and I need nothing before tomorrow."}`)
	workerEnd      = json.RawMessage(`{"verdict":"success","summary":"done"}`)
	workerDone     = agent.Result{Success: true, Outcome: session.OutcomeSuccess}
)

func (w *worker) Prompt(ctx context.Context, text string) (agent.Result, error) {
	call := func(tool string, args json.RawMessage) error {
		result, err := w.cfg.Dispatcher.Call(ctx, w.cfg.Name, tool, args)
		if err == nil && result.IsError {
			err = fmt.Errorf("%s: %s", tool, result.Text)
		}
		return err
	}
	if w.rounds == 0 {
		return workerDone, call("Answer", workerAnswer)
	}
	if w.got > 0 || text != "work" {
		w.got += countLines(text)
	}
	switch {
	case w.got == w.team && w.rounds > 1 && text != "work":
		w.first()
	case w.got == w.rounds*w.team:
		w.last()
	}
	switch {
	case w.got == w.rounds*w.team:
		return workerDone, call("Conclude", workerEnd)
	case w.got%w.team == 0:
		return workerDone, call("Ask", workerQuestion)
	default:
		return workerDone, nil
	}
}

func countLines(text string) int {
	n := 1
	for i := range len(text) {
		if text[i] == '\n' {
			n++
		}
	}
	return n
}

// measure runs a session of about the given number of messages and returns the cost of each, once
// everybody has started.
func measure(tb testing.TB, participants, messages int) cost {
	tb.Helper()
	dir := tb.TempDir()
	writer, err := trace.Open(filepath.Join(dir, "trace.ndjson"), trace.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	defer writer.Close()
	rounds := max(2, messages/(2*participants))
	var began time.Time
	var cpuBefore time.Duration
	var took cost
	query := func(cfg harness.AgentConfig) (agent.Agent, error) {
		w := &worker{cfg: cfg, team: participants}
		if cfg.Name == "facilitator" {
			w.rounds = rounds
			w.first = func() { began, cpuBefore = time.Now(), cpuTime(tb) }
			w.last = func() { took = cost{wall: time.Since(began), cpu: cpuTime(tb) - cpuBefore} }
		}
		return w, nil
	}
	var configs []harness.AgentConfig
	for i := range participants {
		configs = append(configs, harness.AgentConfig{Name: fmt.Sprintf("p%d", i)})
	}
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: dir, AgentConfigs: configs, NewAgent: query,
		Options: harness.Options{
			Trace: writer, HomeDir: dir, MaxLeadTurns: 1 << 30,
			Limits: harness.Limits{Turns: -1},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	runtime.GC()
	result, err := f.Run(tb.Context(), "work")
	if err != nil || !result.Success {
		tb.Fatalf("%+v, %v", result, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "trace.ndjson")); err != nil || info.Size() < int64(messages*50) {
		tb.Fatalf("the trace is too small: %v, %v", info, err)
	}
	count := time.Duration(2 * participants * (rounds - 1))
	return cost{wall: took.wall / count, cpu: took.cpu / count, json: recoded(tb, dir) / time.Duration(messages)}
}

// recoded is the time in which encoding/json reads and writes all lines of a trace: the yardstick
// of this machine.
func recoded(tb testing.TB, dir string) time.Duration {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "trace.ndjson"))
	if err != nil {
		tb.Fatal(err)
	}
	began := cpuTime(tb)
	for line := range bytes.Lines(content) {
		var value any
		if err := json.Unmarshal(line, &value); err != nil {
			tb.Fatal(err)
		}
		if _, err := json.Marshal(value); err != nil {
			tb.Fatal(err)
		}
	}
	return cpuTime(tb) - began
}

// cost is what one message takes. CPU time is what the ratio is made of: it does not depend
// on who else is using the machine.
type cost struct{ wall, cpu, json time.Duration }

func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// The goals of the bus.
const (
	// wantedRatio is of the time for a message among 1,000 participants to the time in which
	// encoding/json reads and writes its lines of the trace. It is 50,000 messages a second on the
	// machine of docs/performance.md.
	wantedRatio  = 0.95
	wantedGrowth = 1.5 // of the cost of a message from 10 to 1,000 participants
)

// TestFiguresOfTheBus measures what docs/performance.md states. Rounds are short and sizes take
// turns, so that on a busy machine each of them finds a quiet moment; the least counts, because
// what disturbs a measurement only ever adds.
func TestFiguresOfTheBus(t *testing.T) {
	testenv.Measurement(t, "bench-bus")
	sizes := []int{10, 100, 1000}
	best := map[int]cost{}
	for range 20 {
		for _, n := range sizes {
			took := measure(t, n, 20_000)
			if before, ok := best[n]; ok {
				took = cost{min(before.wall, took.wall), min(before.cpu, took.cpu), min(before.json, took.json)}
			}
			best[n] = took
		}
	}
	for _, n := range sizes {
		t.Logf("%4d participants: %4d ns of CPU time per message, %7.0f messages a second", n, best[n].cpu,
			float64(time.Second)/float64(best[n].wall))
	}
	growth := float64(best[1000].cpu) / float64(best[10].cpu)
	ratio := float64(best[1000].wall) / float64(best[1000].json)
	t.Logf("1,000 to 10 participants: %.2f; %.2f of the time in which encoding/json reads and writes the lines", growth,
		ratio)
	if ratio > wantedRatio || growth > wantedGrowth {
		t.Errorf("want at most %.2f of the time of encoding/json, and a cost that grows at most %.1f times", wantedRatio,
			wantedGrowth)
	}
}
