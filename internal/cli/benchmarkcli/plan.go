package benchmarkcli

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/forecast"
	"github.com/fit-eval/fit/stats"
)

type planOptions struct {
	effect, alpha, power float64
	runs                 console.Count
	tasks, maxTasks      console.Count
	costPerRun, budget   console.Dollars
	between, within      float64
	format               console.Format
	from                 experimentcli.From
}

// Usual variances of pass rates, where there is no pilot.
const (
	typicalBetween = 0.10
	typicalWithin  = 0.12
)

func newPlan(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := planOptions{
		runs:     console.Count{Value: experiment.DefaultRuns, Min: 1},
		tasks:    console.Count{Min: 1},
		maxTasks: console.Count{Min: 1},
	}
	command := &cobra.Command{
		Use:   "plan [PILOT-A PILOT-B | PILOT]",
		Short: "Estimate the sample size an experiment needs, and its cost",
		Long: `Show how many tasks and runs it takes to find a difference, and what that costs. Earlier results serve
as a pilot: two arms (DIR:ARM DIR:ARM, or a directory with two arms) show how much tasks and runs vary and what a run
costs. Without a pilot, plan uses typical variances of pass rates.`,
		Example: `  fit-benchmark plan --effect 0.1 --runs 5
  fit-benchmark plan --effect 0.1 benchmark-runs:before benchmark-runs:after --max-cost-usd 50`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return runPlan(command.Context(), con, registry, &opts, args)
		},
	}
	flags := command.Flags()
	flags.Float64Var(&opts.effect, "effect", 0.1, "difference in pass rate to detect")
	flags.Var(&opts.runs, "runs", "repetitions of each task per arm")
	flags.Var(&opts.tasks, "tasks", "number of tasks you have: show their minimum detectable difference")
	flags.Var(&opts.maxTasks, "max-tasks", "largest number of tasks available")
	flags.Var(&opts.costPerRun, "cost-per-run", "cost of one run in dollars (default: the pilot's)")
	flags.Var(&opts.budget, "max-cost-usd", "budget in dollars: show the best experiment for it")
	flags.Float64Var(&opts.between, "between", typicalBetween,
		"variance of the difference between tasks, without a pilot")
	flags.Float64Var(&opts.within, "within", typicalWithin, "variance of runs within a task, without a pilot")
	flags.Float64Var(&opts.alpha, "alpha", stats.DefaultAlpha, "significance level")
	flags.Float64Var(&opts.power, "power", stats.DefaultPower, "statistical power: probability of detecting the "+
		"difference if it exists")
	opts.from.Register(flags)
	opts.format.Register(flags, "output format")
	return command
}

func runPlan(ctx context.Context, con *console.Console, registry *agent.Registry, opts *planOptions,
	args []string,
) error {
	if !(opts.effect > 0 && opts.effect < 1) {
		return console.Usagef("--effect %g: must be a fraction between 0 and 1: 0.1 is 10 percentage points",
			opts.effect)
	}
	p := &forecast.Forecast{
		Effect: opts.effect,
		Design: stats.Design{Between: opts.between, WithinCandidate: opts.within, WithinBaseline: opts.within},
	}
	if len(args) > 0 {
		if err := opts.usePilot(ctx, con, registry, p, args); err != nil {
			return err
		}
	}
	config := forecast.Config{
		Runs:       opts.runs.Value,
		MaxTasks:   opts.maxTasks.Value,
		CostPerRun: opts.costPerRun.Value,
		BudgetUSD:  opts.budget.Value,
		Alpha:      opts.alpha,
		Power:      opts.power,
	}
	if opts.tasks.Given {
		config.Tasks = opts.tasks.Value
	}
	if err := p.Compute(config); err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	if opts.format.JSON() {
		return jsonenc.WriteIndented(con.Stdout, p)
	}
	return con.Folded(func(w io.Writer) error { return printForecast(w, p) })
}

// usePilot takes variances and prices from earlier results.
func (o *planOptions) usePilot(ctx context.Context, con *console.Console, registry *agent.Registry,
	p *forecast.Forecast, args []string,
) error {
	groups, err := sides(ctx, con, registry, args, &compareOptions{from: o.from})
	if err != nil {
		return err
	}
	if len(groups) != 2 {
		return console.Usagef("%s has %d arms; name two: %s:ARM %s:ARM", args[0], len(groups), args[0], args[0])
	}
	if err := p.UsePilot(groups[0], groups[1]); err != nil {
		return console.Exit(console.ExitIncomplete, err)
	}
	return nil
}

// varianceKnown says of a planned difference why the results may detect less: compare allows for
// the uncertainty of the variance that it estimates.
const varianceKnown = " if the variances are exactly these"

func printForecast(w io.Writer, p *forecast.Forecast) error {
	if p.Pilot != nil {
		fmt.Fprintf(w, "pilot: %s, %s\n", report.Count(p.Pilot.Tasks, "task"), report.Count(p.Pilot.Runs, "run"))
	}
	fmt.Fprintf(w, "variance between tasks %.3f, within %.3f and %.3f\n", p.Design.Between, p.Design.WithinBaseline,
		p.Design.WithinCandidate)
	fmt.Fprintf(w, "to detect %.1f percentage points with %.0f%% power: %d tasks × 2 arms × %s = %d cells",
		100*p.Effect, 100*p.Design.Power, p.TasksNeeded,
		report.Count(p.Design.RunsBaseline, "run"), p.TasksNeeded*2*p.Design.RunsBaseline)
	if p.CostUSD != nil {
		fmt.Fprintf(w, ", about %s", display.Dollars(*p.CostUSD))
	}
	fmt.Fprintln(w)
	if c := p.Cheapest; c != nil {
		fmt.Fprintf(w, "cheapest: %d tasks × 2 arms × %s, about %s\n", c.Tasks, report.Count(c.Runs, "run"),
			display.Dollars(c.Cost))
	}
	if a := p.Affordable; a != nil {
		fmt.Fprintf(w, "for the budget: %d tasks × 2 arms × %s, about %s, minimum detectable difference %s%s\n",
			a.Tasks, report.Count(a.Runs, "run"), display.Dollars(a.Cost), report.Detectable(a.MDE), varianceKnown)
	}
	if p.MDE != nil {
		fmt.Fprintf(w, "%s × 2 arms × %s: minimum detectable difference %s%s", report.Count(p.Tasks, "task"),
			report.Count(p.Design.RunsBaseline, "run"), report.Detectable(*p.MDE), varianceKnown)
		if few := (stats.Comparison{Tasks: p.Tasks}).TooFew(); few != "" {
			fmt.Fprintf(w, "; %s whatever the number of runs: add tasks", few)
		} else if p.RunsFor != nil {
			fmt.Fprintf(w, "; for %.1f points each task needs %s", 100*p.Effect,
				report.Count(int(math.Ceil(*p.RunsFor)), "run"))
		} else {
			fmt.Fprintf(w, "; for %.1f points no number of runs is enough, because the variance between tasks is "+
				"too high",
				100*p.Effect)
		}
		fmt.Fprintln(w)
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(w, "note: %s\n", warning)
	}
	return nil
}
