// Package simulate forecasts an experiment on a fleet that need not exist: how long it takes, what
// it costs, and what limits it. Times and costs of attempts are drawn; no time passes.
package simulate

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
)

// Scenario is a hypothetical fleet, and an experiment for it to run.
type Scenario struct {
	Plan     *experiment.Plan
	Provider func(arm *experiment.Arm) string
	// Draw returns the duration and cost of an attempt at a cell.
	Draw    func(cell experiment.Cell, random *rand.Rand) Sample
	Workers int
	Slots   int            // of each worker
	Caps    map[string]int // attempts at a time by provider; none: not bounded
	// FailRate is the share of attempts that end in an infrastructure error, at any moment of their
	// time; Attempts is how many a cell has.
	FailRate float64
	Attempts int
	Repeats  int
	Seed     uint64
}

// Sample is the duration and cost of one attempt.
type Sample struct {
	Duration time.Duration
	USD      *float64 // nil is unknown, which is not zero
}

// Forecast summarises the repeats of a scenario.
type Forecast struct {
	Cells    int   `json:"cells"`
	Workers  int   `json:"workers"`
	Slots    int   `json:"slots"`
	Repeats  int   `json:"repeats"`
	Makespan Range `json:"makespanMs"`
	// Cost is nil where the cost of an attempt is unknown.
	Cost     *Range `json:"costUsd"`
	Attempts Range  `json:"attempts"`
	Missing  Range  `json:"missingCells"` // without a verdict at the end
	// SlotUse is the share of the slots' time that attempts use.
	SlotUse Range    `json:"slotUse"`
	Caps    []CapUse `json:"caps,omitempty"`
	// Bound says what limits the duration: slots, a cap, or the length of cells.
	Bound string `json:"bound"`
}

// Range is a mean and the range in which nine of ten repeats are.
type Range struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// CapUse is the used share of a provider's cap over time.
type CapUse struct {
	Provider string `json:"provider"`
	Cap      int    `json:"cap"`
	Use      Range  `json:"use"`
}

// Run forecasts a scenario. The same scenario has the same forecast.
func Run(ctx context.Context, s Scenario) (Forecast, error) {
	if err := s.check(); err != nil {
		return Forecast{}, err
	}
	providers := map[string]string{}
	for i := range s.Plan.Arms {
		providers[s.Plan.Arms[i].Name] = s.Provider(&s.Plan.Arms[i].Arm)
	}
	cells := s.Plan.Cells()
	var makespan, cost, attempts, missing, use []float64
	caps, bounds := map[string][]float64{}, map[string]float64{}
	slots, unpriced := float64(s.Workers*s.Slots), false
	for i := range s.Repeats {
		r := newSimulation(&s, providers, cells, rand.New(rand.NewPCG(s.Seed, uint64(i))))
		if err := r.play(ctx); err != nil {
			return Forecast{}, err
		}
		makespan = append(makespan, float64(r.now.Milliseconds()))
		cost, unpriced = append(cost, r.usd), unpriced || r.unpriced
		attempts = append(attempts, float64(r.attempts))
		missing = append(missing, float64(r.missing))
		use = append(use, share(sum(r.busy), slots, r.now))
		bounds[longestCells] += r.longest.Seconds()
		bounds[slotsBound] += sum(r.busy).Seconds() / slots
		for provider, limit := range s.Caps {
			caps[provider] = append(caps[provider], share(r.busy[provider], float64(limit), r.now))
			bounds["the cap of "+provider] += r.busy[provider].Seconds() / float64(limit)
		}
	}
	f := Forecast{
		Cells:    len(cells),
		Workers:  s.Workers,
		Slots:    s.Slots,
		Repeats:  s.Repeats,
		Makespan: rangeOf(makespan),
		Attempts: rangeOf(attempts),
		Missing:  rangeOf(missing),
		SlotUse:  rangeOf(use),
	}
	if !unpriced {
		known := rangeOf(cost)
		f.Cost = &known
	}
	for _, provider := range slices.Sorted(maps.Keys(caps)) {
		f.Caps = append(f.Caps, CapUse{Provider: provider, Cap: s.Caps[provider], Use: rangeOf(caps[provider])})
	}
	f.Bound = longestCells
	for _, what := range slices.Sorted(maps.Keys(bounds)) {
		if bounds[what] > bounds[f.Bound] {
			f.Bound = what
		}
	}
	return f, nil
}

// What limits a makespan, besides caps: no fleet takes less than its longest attempt, nor less than
// all attempts divided by the slots.
const (
	longestCells = "the longest cells"
	slotsBound   = "slots"
)

// The limits of a scenario keep a mistyped number from running for days.
const (
	maxSimulatedSlots = 10_000_000
	maxSimulatedCells = 1_000_000
	maxSimulatedTries = 1000
	maxRepeats        = 100_000
)

func (s *Scenario) check() error {
	switch {
	case s.Workers < 1 || s.Slots < 1 || s.Repeats < 1 || s.Attempts < 1:
		return errors.New("a simulation needs workers, slots, attempts and repeats")
	case s.Workers > maxSimulatedSlots/s.Slots:
		return fmt.Errorf("%d workers with %d slots: want at most %d slots in total", s.Workers, s.Slots,
			maxSimulatedSlots)
	case s.Repeats > maxRepeats || s.Attempts > maxSimulatedTries:
		return fmt.Errorf("%d repeats, %d attempts: want at most %d and %d", s.Repeats, s.Attempts, maxRepeats,
			maxSimulatedTries)
	case !(s.FailRate >= 0 && s.FailRate < 1):
		return fmt.Errorf("fail rate %v: must be at least 0 and below 1", s.FailRate)
	}
	cells := max(1, len(s.Plan.Tasks)) * max(1, len(s.Plan.Arms))
	if s.Plan.Runs > maxSimulatedCells/cells {
		return fmt.Errorf("%d runs of %d tasks and arms: want at most %d cells", s.Plan.Runs, cells, maxSimulatedCells)
	}
	return nil
}

// simulation is one replicate of a discrete-event simulation: events have times, but no time
// passes.
type simulation struct {
	*Scenario
	random  *rand.Rand
	queues  map[string][]rehearsed // of the pools, by provider
	running map[string]int         // attempts, by provider
	ends    endings
	order   []string // of the providers
	turn    int

	now      time.Duration
	longest  time.Duration // of the attempts
	busy     map[string]time.Duration
	usd      float64
	unpriced bool // an attempt has an unknown cost
	attempts int
	missing  int
}

// rehearsed is a cell with the attempts that it had.
type rehearsed struct {
	cell     experiment.Cell
	attempts int
}

func newSimulation(s *Scenario, providers map[string]string, cells []experiment.Cell, random *rand.Rand) *simulation {
	r := &simulation{
		Scenario: s,
		random:   random,
		queues:   map[string][]rehearsed{},
		running:  map[string]int{},
		busy:     map[string]time.Duration{},
	}
	for _, cell := range cells {
		provider := providers[cell.Arm]
		r.queues[provider] = append(r.queues[provider], rehearsed{cell: cell})
	}
	r.order = slices.Sorted(maps.Keys(r.queues))
	return r
}

// play begins attempts while there are slots and caps, and continues to the next end of one.
func (r *simulation) play(ctx context.Context) error {
	free := r.Workers * r.Slots
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for free > 0 && r.begin() {
			free--
		}
		if r.ends.Len() == 0 {
			return nil
		}
		end := heap.Pop(&r.ends).(ending)
		r.now = end.at
		r.running[end.provider]--
		free++
		if !end.failed {
			continue
		}
		if end.attempts < r.Attempts {
			r.queues[end.provider] = append(r.queues[end.provider], end.rehearsed)
		} else {
			r.missing++
		}
	}
}

// begin begins an attempt of the next pool that may have one.
func (r *simulation) begin() bool {
	for range r.order {
		provider := r.order[r.turn%len(r.order)]
		r.turn++
		limit, bounded := r.Caps[provider]
		if len(r.queues[provider]) == 0 || bounded && r.running[provider] >= limit {
			continue
		}
		next := r.queues[provider][0]
		r.queues[provider] = r.queues[provider][1:]
		next.attempts++
		sample := r.Draw(next.cell, r.random)
		failed := r.random.Float64() < r.FailRate
		part := 1.0
		if failed { // at any moment, and paid for until then
			part = r.random.Float64()
			sample.Duration = time.Duration(part * float64(sample.Duration))
		}
		r.longest = max(r.longest, sample.Duration)
		r.attempts++
		if sample.USD == nil {
			r.unpriced = true
		} else {
			r.usd += part * *sample.USD
		}
		r.busy[provider] += sample.Duration
		r.running[provider]++
		heap.Push(&r.ends, ending{
			rehearsed: next,
			provider:  provider,
			at:        r.now + sample.Duration,
			number:    r.attempts,
			failed:    failed,
		})
		return true
	}
	return false
}

// ending is the end of an attempt.
type ending struct {
	rehearsed
	provider string
	at       time.Duration
	number   int // of the attempt, for the order of those that end together
	failed   bool
}

// endings are the attempts in flight, the next to end first.
type endings []ending

func (e endings) Len() int { return len(e) }
func (e endings) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].number, e[j].number)) < 0
}
func (e endings) Swap(i, j int)  { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(item any) { *e = append(*e, item.(ending)) }
func (e *endings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func sum(m map[string]time.Duration) time.Duration {
	var total time.Duration
	for _, d := range m {
		total += d
	}
	return total
}

func share(used time.Duration, places float64, whole time.Duration) float64 {
	if whole == 0 || places == 0 {
		return 0
	}
	return used.Seconds() / (places * whole.Seconds())
}

func rangeOf(values []float64) Range {
	slices.Sort(values)
	total := 0.0
	for _, v := range values {
		total += v
	}
	at := func(q float64) float64 { return values[int(q*float64(len(values)-1)+0.5)] }
	return Range{Mean: total / float64(len(values)), Low: at(0.05), High: at(0.95)}
}
