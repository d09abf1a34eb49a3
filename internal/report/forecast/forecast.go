// Package forecast says what an answer takes, from the results of a pilot and the price of a run.
package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/stats"
)

// Forecast says how many tasks and runs an answer takes, and what it costs.
type Forecast struct {
	Effect float64      `json:"effect"`
	Design stats.Design `json:"design"`
	Pilot  *Pilot       `json:"pilot,omitempty"`
	// TasksNeeded are for the runs asked for; Cheapest trades tasks for runs where the price of a
	// run is known.
	TasksNeeded int         `json:"tasksNeeded,omitempty"`
	CostUSD     *float64    `json:"costUsd,omitempty"`
	Cheapest    *stats.Plan `json:"cheapest,omitempty"`
	Affordable  *stats.Plan `json:"affordable,omitempty"`
	// MDE is the smallest effect that so many tasks would find.
	Tasks    int      `json:"tasks,omitempty"`
	MDE      *float64 `json:"mde,omitempty"`
	RunsFor  *float64 `json:"runsNeeded,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Pilot describes the earlier results of a forecast.
type Pilot struct {
	Tasks      int      `json:"tasks"`
	Runs       int      `json:"runs"`
	CostPerRun *float64 `json:"costPerRun,omitempty"`
}

// Config is the input of a forecast. Zero fields are no limit.
type Config struct {
	Runs       int // of every task with every arm
	Tasks      int // available: what they would find is computed too
	MaxTasks   int
	CostPerRun float64 // 0 is that of the pilot
	BudgetUSD  float64
	Alpha      float64
	Power      float64
}

// UsePilot takes variances and prices from earlier results of two arms.
func (p *Forecast) UsePilot(a, b *report.Group) error {
	pairs := report.Pairs(a, b)
	design, unclamped, err := stats.VarianceComponents(pairs)
	if err != nil {
		return fmt.Errorf("variances of the pilot: %w", err)
	}
	p.Design = design
	if unclamped < 0 {
		p.Warnings = append(p.Warnings,
			"the pilot shows no variance between tasks beyond that of the runs; use a larger pilot")
	}
	p.Pilot = &Pilot{Tasks: max(len(a.Tasks), len(b.Tasks)), Runs: a.Totals.Runs + b.Totals.Runs}
	if p.Pilot.Tasks < 20 {
		p.Warnings = append(p.Warnings,
			fmt.Sprintf("the pilot has only %d tasks; variances from fewer than 20 are rough", p.Pilot.Tasks))
	}
	units := map[string]bool{}
	for i := range pairs {
		units[cmp.Or(pairs[i].Cluster, "task "+pairs[i].Task)] = true
	}
	if len(units) < len(pairs) {
		p.Warnings = append(p.Warnings, fmt.Sprintf("the pilot: %d tasks in %d clusters, such as copies, each of "+
			"which counts as one", len(pairs), len(units)))
	}
	for _, g := range []*report.Group{a, b} { // near copies are fewer units than tasks
		if g.Scope != "" && !slices.Contains(p.Warnings, "the pilot: "+g.Scope) {
			p.Warnings = append(p.Warnings, "the pilot: "+g.Scope)
		}
	}
	if a.Totals.CostUSD != nil && b.Totals.CostUSD != nil && p.Pilot.Runs > 0 {
		each := (*a.Totals.CostUSD + *b.Totals.CostUSD) / float64(p.Pilot.Runs)
		p.Pilot.CostPerRun = &each
	}
	return nil
}

// Compute makes the forecast from its effect and its design.
func (p *Forecast) Compute(cfg Config) error {
	p.Design.RunsCandidate, p.Design.RunsBaseline = cfg.Runs, cfg.Runs
	p.Design.Alpha, p.Design.Power = cfg.Alpha, cfg.Power
	needed, err := stats.TasksNeeded(p.Effect, p.Design)
	if err != nil {
		return err
	}
	p.TasksNeeded = max(stats.MinClaimTasks, int(math.Ceil(needed)))
	price := cfg.CostPerRun
	if price == 0 && p.Pilot != nil && p.Pilot.CostPerRun != nil {
		price = *p.Pilot.CostPerRun
	}
	switch {
	case price > 0:
		if err := p.computeCost(cfg, price); err != nil {
			return err
		}
	case cfg.BudgetUSD > 0:
		return fmt.Errorf("the best experiment for %s depends on the cost of a run: set --cost-per-run, or use a "+
			"pilot whose costs are known", display.Dollars(cfg.BudgetUSD))
	}
	if cfg.Tasks > 0 {
		mde, err := stats.MinimumDetectableEffect(cfg.Tasks, p.Design)
		if err != nil {
			return err
		}
		p.Tasks, p.MDE = cfg.Tasks, &mde
		if runs, err := stats.RunsNeeded(p.Effect, cfg.Tasks, p.Design); err == nil && !math.IsInf(runs, 0) {
			p.RunsFor = &runs
		}
	}
	return nil
}

// computeCost adds what the experiment costs, and which is the cheapest and the best for a budget.
func (p *Forecast) computeCost(cfg Config, price float64) error {
	cost := float64(p.TasksNeeded*2*cfg.Runs) * price
	p.CostUSD = &cost
	prices := stats.Prices{PerRun: price}
	cheapest, err := stats.CostOfDecision(p.Effect, stats.MinClaimTasks, cfg.MaxTasks, p.Design, prices)
	if err == nil {
		p.Cheapest = &cheapest
	} else {
		p.Warnings = append(p.Warnings, err.Error())
	}
	if cfg.BudgetUSD > 0 {
		affordable, err := stats.Allocate(cfg.BudgetUSD, cfg.MaxTasks, p.Design, prices)
		if err != nil {
			return err
		}
		p.Affordable = &affordable
	}
	return nil
}
