package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
)

// scenario is 100 cells of ten minutes and 50 cents, of two providers.
func scenario(t *testing.T) Scenario {
	t.Helper()
	usd, plan := 0.5, &experiment.Plan{Runs: 5, Seed: 7}
	for i := range 10 {
		plan.Tasks = append(plan.Tasks, experiment.PlannedTask{ID: fmt.Sprintf("t%d", i)})
	}
	for _, name := range []string{"a", "b"} {
		plan.Arms = append(plan.Arms, experiment.PlannedArm{Arm: experiment.Arm{Name: name, Agent: "builtin"}})
	}
	return Scenario{
		Plan:     plan,
		Provider: func(arm *experiment.Arm) string { return "of-" + arm.Name },
		Draw: func(experiment.Cell, *rand.Rand) Sample {
			return Sample{Duration: 10 * time.Minute, USD: &usd}
		},
		Workers:  5,
		Slots:    2,
		Attempts: 3,
		Repeats:  20,
		Seed:     1,
	}
}

func simulate(t *testing.T, s Scenario) Forecast {
	t.Helper()
	f, err := Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// What can be computed by hand comes out as it should.
func TestSimulateWhatIsKnown(t *testing.T) {
	minutes := func(f Forecast) float64 { return f.Makespan.Mean / 60_000 }
	s := scenario(t)
	f := simulate(t, s)
	if f.Cells != 100 || minutes(f) != 100 || f.Cost.Mean != 50 || f.SlotUse.Mean != 1 || f.Bound != "slots" {
		t.Errorf("100 cells of 10 minutes on 10 slots: %+v", f)
	}
	s.Workers = 1000
	if f := simulate(t, s); minutes(f) != 10 || f.Bound != "the longest cells" {
		t.Errorf("as many slots as you like: %+v", f)
	}
	s.Workers = 120 // 83% are in use, and nothing waits for one
	if f := simulate(t, s); f.Bound != "the longest cells" {
		t.Errorf("more slots than cells: %+v", f)
	}
	s.Caps = map[string]int{"of-a": 2}
	f = simulate(t, s)
	if minutes(f) != 250 || f.Bound != "the cap of of-a" || len(f.Caps) != 1 || f.Caps[0].Use.Mean != 1 {
		t.Errorf("50 cells two at a time: %+v", f)
	}
}

// One attempt whose cost is unknown makes the whole unknown.
func TestSimulateWithoutPrices(t *testing.T) {
	s := scenario(t)
	draw := s.Draw
	s.Draw = func(cell experiment.Cell, random *rand.Rand) Sample {
		sample := draw(cell, random)
		if cell.TaskID == "t3" {
			sample.USD = nil
		}
		return sample
	}
	if f := simulate(t, s); f.Cost != nil || f.Makespan.Mean == 0 {
		t.Errorf("%+v", f)
	}
}

// Failed attempts cost half of a whole one on average, and are repeated.
func TestSimulateFailures(t *testing.T) {
	s := scenario(t)
	s.FailRate, s.Repeats, s.Attempts = 0.2, 400, 50
	f := simulate(t, s)
	if math.Abs(f.Attempts.Mean-125) > 1 || math.Abs(f.Cost.Mean-56.25) > 0.5 || f.Missing.High != 0 {
		t.Errorf("a fifth fails: %+v", f)
	}
	if f.Makespan.Low >= f.Makespan.High {
		t.Errorf("every repeat takes the same: %+v", f)
	}
	s.Attempts = 1
	if f := simulate(t, s); math.Abs(f.Missing.Mean-20) > 1 {
		t.Errorf("no second attempts: %+v", f)
	}
}

func TestSimulateIsRepeatable(t *testing.T) {
	s := scenario(t)
	s.FailRate = 0.3
	first := simulate(t, s)
	if again := simulate(t, s); !reflect.DeepEqual(first, again) {
		t.Errorf("%+v, then %+v", first, again)
	}
	s.Seed = 2
	if other := simulate(t, s); reflect.DeepEqual(first, other) {
		t.Error("another seed gives the same")
	}
	for name, change := range map[string]func(s *Scenario){
		"everything fails":  func(s *Scenario) { s.FailRate = 1 },
		"not a number":      func(s *Scenario) { s.FailRate = math.NaN() },
		"too many slots":    func(s *Scenario) { s.Workers, s.Slots = 1<<40, 1<<40 },
		"too many repeats":  func(s *Scenario) { s.Repeats = 1 << 40 },
		"too many attempts": func(s *Scenario) { s.Attempts = 1 << 40 },
		"too many cells": func(s *Scenario) {
			plan := *s.Plan
			plan.Runs, s.Plan = 1<<40, &plan
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario(t)
			change(&s)
			if _, err := Run(t.Context(), s); err == nil {
				t.Errorf("%s, and nobody says so", name)
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ended, s); !errors.Is(err, context.Canceled) {
		t.Errorf("it was cancelled: %v", err)
	}
}
