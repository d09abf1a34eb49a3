package harness_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/harness"
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
func measure(tb testing.TB, participants, messages int, traced bool) cost {
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
		FacilitatorCwd: dir, AgentConfigs: configs, Query: query,
		Options: harness.Options{Trace: writer, HomeDir: dir, MaxLeadTurns: 1 << 30},
	})
	if err != nil {
		tb.Fatal(err)
	}
	if !traced {
		f.Untrace()
	}
	runtime.GC()
	result, err := f.Run(tb.Context(), "work")
	if err != nil || !result.Success {
		tb.Fatalf("%+v, %v", result, err)
	}
	if traced {
		if info, err := os.Stat(filepath.Join(dir, "trace.ndjson")); err != nil || info.Size() < int64(messages*50) {
			tb.Fatalf("the trace is too small: %v, %v", info, err)
		}
	}
	count := time.Duration(2 * participants * (rounds - 1))
	return cost{wall: took.wall / count, cpu: took.cpu / count}
}

// cost is what one message takes. Processor time is what ratios are made of: it does not depend on
// who else is using the machine.
type cost struct{ wall, cpu time.Duration }

func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// scale is one way to hold a session that only talks.
type scale struct {
	participants int
	traced       bool
}

// costs holds the least that a message cost in each setup: what disturbs a measurement only ever
// adds.
type costs map[scale]cost

// measure adds a round. Rounds are short and setups take turns, so that on a busy machine each of
// them finds a quiet moment.
func (c costs) measure(tb testing.TB, participants ...int) {
	tb.Helper()
	const messages = 20_000
	for _, n := range participants {
		for _, traced := range []bool{true, false} {
			s := scale{n, traced}
			took := measure(tb, n, messages, traced)
			if best, ok := c[s]; ok {
				took = cost{wall: min(best.wall, took.wall), cpu: min(best.cpu, took.cpu)}
			}
			c[s] = took
		}
	}
}

// tracing is what a message costs with a trace, in terms of what it costs without.
func (c costs) tracing(participants int) float64 {
	return float64(c[scale{participants, true}].cpu) / float64(c[scale{participants, false}].cpu)
}

// growth is what a traced message costs among many, in terms of what it costs among few.
func (c costs) growth(few, many int) float64 {
	return float64(c[scale{many, true}].cpu) / float64(c[scale{few, true}].cpu)
}

func (c costs) log(tb testing.TB, participants ...int) {
	tb.Helper()
	for _, n := range participants {
		for _, traced := range []bool{true, false} {
			best := c[scale{n, traced}]
			tb.Logf("%4d participants, traced %-5v: %4d ns of processor time per message, %7.0f messages a second", n,
				traced, best.cpu, float64(time.Second)/float64(best.wall))
		}
		tb.Logf("%4d participants, traced to untraced: %.2f", n, c.tracing(n))
	}
	few, many := participants[0], participants[len(participants)-1]
	tb.Logf("%d to %d participants: %.2f", many, few, c.growth(few, many))
}

func TestCostPerMessage(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("measures time; make test runs it once more without the race detector")
	}
	best := costs{}
	holds := func() bool { return best.growth(10, 1000) <= 1.2 && best.tracing(10) <= 2 && best.tracing(1000) <= 2 }
	for round := range 40 {
		best.measure(t, 10, 1000)
		if round >= 5 && holds() {
			break // more rounds are for machines on which others are at work
		}
	}
	best.log(t, 10, 1000)
	if !holds() {
		t.Errorf("too expensive: from 10 to 1,000 participants the cost may grow 1.2 times, and tracing may double it")
	}
}

// TestFiguresOfTheBus prints what docs/performance.md tells.
func TestFiguresOfTheBus(t *testing.T) {
	if os.Getenv("FIT_BENCH") == "" {
		t.Skip("make bench-bus runs it")
	}
	for _, processors := range slices.Compact([]int{1, runtime.NumCPU()}) {
		t.Run(fmt.Sprintf("processors=%d", processors), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			best := costs{}
			for range 30 {
				best.measure(t, 10, 100, 1000)
			}
			best.log(t, 10, 100, 1000)
		})
	}
}

func BenchmarkMessages(b *testing.B) {
	for _, participants := range []int{10, 100, 1000} {
		for _, traced := range []bool{true, false} {
			b.Run(fmt.Sprintf("participants=%d/traced=%v", participants, traced), func(b *testing.B) {
				perMessage := measure(b, participants, max(b.N, 2*participants), traced)
				b.ReportMetric(float64(perMessage.wall.Nanoseconds()), "ns/message")
				b.ReportMetric(float64(perMessage.cpu.Nanoseconds()), "cpu-ns/message")
			})
		}
	}
}
