package benchmarkcli

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/report"
	"github.com/fit-eval/fit/stats"
)

type planOptions struct {
	effect, alpha, power float64
	runs                 console.Count
	tasks, maxTasks      console.Count
	costPerRun, budget   console.Dollars
	between, within      float64
	format               console.Choice
}

// planned is the answer of plan.
type planned struct {
	Effect float64      `json:"effect"`
	Design stats.Design `json:"design"`
	Pilot  *pilotFacts  `json:"pilot,omitempty"`
	// TasksNeeded are for the runs asked for; Cheapest trades tasks for runs where the price of a
	// run is known.
	TasksNeeded int         `json:"tasksNeeded,omitempty"`
	CostUSD     *float64    `json:"costUsd,omitempty"`
	Cheapest    *stats.Plan `json:"cheapest,omitempty"`
	Affordable  *stats.Plan `json:"affordable,omitempty"`
	// MDE is what so many tasks would find.
	Tasks    int      `json:"tasks,omitempty"`
	MDE      *float64 `json:"mde,omitempty"`
	RunsFor  *float64 `json:"runsNeeded,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

type pilotFacts struct {
	Tasks      int      `json:"tasks"`
	Runs       int      `json:"runs"`
	CostPerRun *float64 `json:"costPerRun,omitempty"`
}

// Usual variances of pass rates, where there is no pilot.
const (
	usualBetween = 0.10
	usualWithin  = 0.12
)

func newPlan(con *console.Console) *cobra.Command {
	opts := planOptions{
		runs:     console.Count{Value: 3, Min: 1},
		tasks:    console.Count{Min: 1},
		maxTasks: console.Count{Min: 1},
		format:   console.Choice{Value: "text", Choices: []string{"text", "json"}},
	}
	command := &cobra.Command{
		Use:   "plan [PILOT-A PILOT-B | PILOT]",
		Short: "Show how many tasks and runs an answer takes, and what it costs",
		Long: `Show how many tasks and runs it takes to find a difference, and what that costs. Earlier results serve as a pilot: two arms (DIR:ARM DIR:ARM, or a directory with two arms)
show how much tasks and runs vary and what a run costs. Without a pilot, plan uses typical variances of pass rates.`,
		Example: `  fit-benchmark plan --effect 0.1 --runs 5
  fit-benchmark plan --effect 0.1 benchmark-runs:before benchmark-runs:after --max-cost-usd 50`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return runPlan(con, &opts, args) },
	}
	flags := command.Flags()
	flags.Float64Var(&opts.effect, "effect", 0.1, "difference in pass rate that matters")
	flags.Var(&opts.runs, "runs", "runs of every task with every arm")
	flags.Var(&opts.tasks, "tasks", "number of tasks you have: show the difference they would find")
	flags.Var(&opts.maxTasks, "max-tasks", "largest number of tasks available")
	flags.Var(&opts.costPerRun, "cost-per-run", "cost of one run in dollars (default: the pilot's)")
	flags.Var(&opts.budget, "max-cost-usd", "budget in dollars: show the best experiment for it")
	flags.Float64Var(&opts.between, "between", usualBetween,
		"variance of the difference between tasks, without a pilot")
	flags.Float64Var(&opts.within, "within", usualWithin, "variance of runs within a task, without a pilot")
	flags.Float64Var(&opts.alpha, "alpha", stats.DefaultAlpha, "significance level")
	flags.Float64Var(&opts.power, "power", stats.DefaultPower, "chance of finding the difference if it exists")
	flags.Var(&opts.format, "format", "output format")
	return command
}

func runPlan(con *console.Console, opts *planOptions, args []string) error {
	if !(opts.effect > 0 && opts.effect < 1) {
		return console.Usagef("--effect %g: want a difference between 0 and 1, such as 0.1", opts.effect)
	}
	p := &planned{
		Effect: opts.effect,
		Design: stats.Design{Between: opts.between, WithinCandidate: opts.within, WithinBaseline: opts.within},
	}
	if len(args) > 0 {
		if err := p.usePilot(con, args); err != nil {
			return err
		}
	}
	p.Design.RunsCandidate, p.Design.RunsBaseline = opts.runs.Value, opts.runs.Value
	p.Design.Alpha, p.Design.Power = opts.alpha, opts.power
	if err := p.compute(opts); err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	if opts.format.Value == "json" {
		return jsonenc.WriteIndented(con.Stdout, p)
	}
	return p.print(con)
}

// usePilot takes variances and prices from earlier results.
func (p *planned) usePilot(con *console.Console, args []string) error {
	groups, err := sides(con, args, &compareOptions{})
	if err != nil {
		return err
	}
	if len(groups) != 2 {
		return console.Usagef("%s has %d arms; name two: %s:ARM %s:ARM", args[0], len(groups), args[0], args[0])
	}
	a, b := groups[0], groups[1]
	design, unclamped, err := stats.VarianceComponents(report.Pairs(a, b))
	if err != nil {
		return console.Exitf(console.ExitIncomplete, "the pilot shows no variances: %w", err)
	}
	p.Design = design
	if unclamped < 0 {
		p.Warnings = append(p.Warnings,
			"the pilot shows no variance between tasks beyond that of the runs; use a larger pilot")
	}
	p.Pilot = &pilotFacts{Tasks: max(len(a.Tasks), len(b.Tasks)), Runs: a.Totals.Runs + b.Totals.Runs}
	if p.Pilot.Tasks < 20 {
		p.Warnings = append(p.Warnings,
			fmt.Sprintf("the pilot has only %d tasks; variances from fewer than 20 are rough", p.Pilot.Tasks))
	}
	if a.Totals.CostUSD != nil && b.Totals.CostUSD != nil && p.Pilot.Runs > 0 {
		each := (*a.Totals.CostUSD + *b.Totals.CostUSD) / float64(p.Pilot.Runs)
		p.Pilot.CostPerRun = &each
	}
	return nil
}

func (p *planned) compute(opts *planOptions) error {
	needed, err := stats.TasksNeeded(opts.effect, p.Design)
	if err != nil {
		return err
	}
	p.TasksNeeded = max(stats.MinClaimTasks, int(math.Ceil(needed)))
	price := opts.costPerRun.Value
	if price == 0 && p.Pilot != nil && p.Pilot.CostPerRun != nil {
		price = *p.Pilot.CostPerRun
	}
	if price > 0 {
		cost := float64(p.TasksNeeded*2*opts.runs.Value) * price
		p.CostUSD = &cost
		prices := stats.Prices{PerRun: price}
		if cheapest, err := stats.CostOfDecision(opts.effect, stats.MinClaimTasks, opts.maxTasks.Value, p.Design,
			prices); err == nil {
			p.Cheapest = &cheapest
		} else {
			p.Warnings = append(p.Warnings, err.Error())
		}
		if opts.budget.Value > 0 {
			affordable, err := stats.Allocate(opts.budget.Value, opts.maxTasks.Value, p.Design, prices)
			if err != nil {
				return err
			}
			p.Affordable = &affordable
		}
	} else if opts.budget.Value > 0 {
		return fmt.Errorf("the best experiment for $%.2f depends on the cost of a run: give --cost-per-run, or a "+
			"pilot whose costs are known", opts.budget.Value)
	}
	if opts.tasks.Given {
		mde, err := stats.MinimumDetectableEffect(opts.tasks.Value, p.Design)
		if err != nil {
			return err
		}
		p.Tasks, p.MDE = opts.tasks.Value, &mde
		if runs, err := stats.RunsNeeded(opts.effect, opts.tasks.Value, p.Design); err == nil && !math.IsInf(runs, 0) {
			p.RunsFor = &runs
		}
	}
	return nil
}

func (p *planned) print(con *console.Console) error {
	w := con.Stdout
	if p.Pilot != nil {
		fmt.Fprintf(w, "pilot: %s, %s\n", report.Count(p.Pilot.Tasks, "task"), report.Count(p.Pilot.Runs, "run"))
	}
	fmt.Fprintf(w, "variance between tasks %.3f, within %.3f and %.3f\n", p.Design.Between, p.Design.WithinBaseline,
		p.Design.WithinCandidate)
	fmt.Fprintf(w, "to find a difference of %.1f points in %.0f of 100 cases: %d tasks × 2 arms × %s = %d cells",
		100*p.Effect, 100*p.Design.Power, p.TasksNeeded,
		report.Count(p.Design.RunsBaseline, "run"), p.TasksNeeded*2*p.Design.RunsBaseline)
	if p.CostUSD != nil {
		fmt.Fprintf(w, ", about $%.2f", *p.CostUSD)
	}
	fmt.Fprintln(w)
	if c := p.Cheapest; c != nil {
		fmt.Fprintf(w, "cheapest: %d tasks × 2 arms × %s, about $%.2f\n", c.Tasks, report.Count(c.Runs, "run"), c.Cost)
	}
	if a := p.Affordable; a != nil {
		fmt.Fprintf(w, "for the budget: %d tasks × 2 arms × %s, about $%.2f, find %s\n", a.Tasks,
			report.Count(a.Runs, "run"), a.Cost, report.Detectable(a.MDE))
	}
	if p.MDE != nil {
		fmt.Fprintf(w, "%s × 2 arms × %s find %s", report.Count(p.Tasks, "task"),
			report.Count(p.Design.RunsBaseline, "run"), report.Detectable(*p.MDE))
		if p.RunsFor != nil {
			fmt.Fprintf(w, "; for %.1f points they need %s", 100*p.Effect,
				report.Count(int(math.Ceil(*p.RunsFor)), "run"))
		} else {
			fmt.Fprintf(w, "; for %.1f points no number of runs is enough, because the tasks vary too much",
				100*p.Effect)
		}
		fmt.Fprintln(w)
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(w, "note: %s\n", warning)
	}
	return nil
}
