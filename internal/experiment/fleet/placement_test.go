package fleet

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

// A worker without the agent, the isolation, a label or a variable gets nothing, and the
// coordinator says what is missing.
func TestPlacement(t *testing.T) {
	t.Parallel()
	all := Worker{
		Protocol: Protocol, Fit: "1", Isolation: []string{"none", "bwrap"}, Agents: map[string]string{"a": "2"},
		Labels: []string{"gpu"}, Env: []string{"KEY"},
	}
	needs := Needs{
		Fit: "1", Isolation: "bwrap", Agents: map[string]string{"a": "2"}, Labels: []string{"gpu"},
		Env: []string{"KEY"},
	}
	if why := all.Lacks(needs); why != "" {
		t.Error(why)
	}
	for want, change := range map[string]func(*Worker){
		"protocol":     func(w *Worker) { w.Protocol++ },
		"fit 3, not 1": func(w *Worker) { w.Fit = "3" },
		"no isolation": func(w *Worker) { w.Isolation = []string{"none"} },
		"no agent a":   func(w *Worker) { w.Agents = nil },
		"a 1, not 2":   func(w *Worker) { w.Agents = map[string]string{"a": "1"} },
		"no label gpu": func(w *Worker) { w.Labels = nil },
		"no KEY":       func(w *Worker) { w.Env = nil },
	} {
		t.Run(want, func(t *testing.T) {
			lacking := all
			change(&lacking)
			if why := lacking.Lacks(needs); !strings.Contains(why, want) {
				t.Errorf("%q, want %q", why, want)
			}
		})
	}
	w := newWorld(t)
	p, output := w.prepared(2, 1, "a", "b"), filepath.Join(w.dir, "run")
	p.Arms[1].Needs = []string{"gpu"}
	var notes strings.Builder
	var mu sync.Mutex
	dir, e := w.coordinate(p, output, func(cfg *Config) {
		cfg.Note = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			notes.WriteString(text + "\n")
		}
	})
	where := map[string]string{}
	on := func(name string) doing {
		return func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
			mu.Lock()
			defer mu.Unlock()
			where[cell.Arm] += name
			return verdict(cell)
		}
	}
	w.work("plain", 2, on("plain"), nil)
	outcome := make(chan experiment.Outcome)
	go func() { outcome <- w.run(dir, e) }()
	eventually(t, "the coordinator says what is missing", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(notes.String(), "waiting for a worker that can run b: plain: it has no label gpu")
	})
	w.work("gpu", 2, on("gpu"), func(cfg *WorkerConfig) { cfg.Labels = []string{"gpu"} })
	if o := <-outcome; o.Status != experiment.Complete {
		t.Fatalf("%+v", o)
	}
	if strings.Contains(where["b"], "plain") || where["b"] == "" || where["a"] == "" {
		t.Errorf("%v", where)
	}
}

// A worker that is drained finishes what it has and leaves.
func TestDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(4, 1, "a"), filepath.Join(w.dir, "run")
	gate := make(chan struct{})
	hub := w.dial()
	w.work("w1", 1, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
		<-gate
		return verdict(cell)
	}, nil)
	dir, e := w.coordinate(p, output, nil)
	outcome := make(chan experiment.Outcome)
	go func() { outcome <- w.run(dir, e) }()
	busy := func(name string) func() bool {
		return func() bool {
			workers, err := hub.Workers(t.Context())
			return err == nil && len(workers) > 0 && workers[0].Name == name && len(workers[0].Running) == 1
		}
	}
	eventually(t, "the worker is busy", busy("w1"))
	if err := hub.Drain(t.Context(), "w9"); err == nil || !strings.Contains(err.Error(), "there are w1") {
		t.Errorf("%v", err)
	}
	if err := hub.Drain(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the worker drains", func() bool {
		status, err := hub.Status(t.Context())
		return err == nil && len(status.Workers) == 1 && status.Workers[0].Draining && len(status.Pools) == 1
	})
	close(gate)
	eventually(t, "the worker leaves", func() bool {
		workers, err := hub.Workers(t.Context())
		return err == nil && len(workers) == 0
	})
	w.work("w2", 1, passes, nil)
	if o := <-outcome; o.Status != experiment.Complete {
		t.Fatalf("%+v", o)
	}
	for _, r := range w.check(p, output) {
		if r.Worker == "w1" && r.TaskID == r.Arm {
			t.Error(r.Key())
		}
	}
}
