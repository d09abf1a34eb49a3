package statscli

import (
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/stats"
)

// powerOptions are the flags of `fit stats power`.
type powerOptions struct {
	Effect, Between, Within, Alpha, Power float64
	Tasks, Runs, MaxTasks                 int
	Budget                                float64
	Prices                                stats.Prices
}

// powerResult is the JSON of `fit stats power`; what was not asked for is null.
type powerResult struct {
	Effect *float64 `json:"effect"`
	Tasks  *int     `json:"tasks"`
	Runs   int      `json:"runs"`
	Alpha  float64  `json:"alpha"`
	Target float64  `json:"targetPower"`
	Omega2 float64  `json:"omega2"`
	Sigma2 float64  `json:"sigma2"`
	// MDE and Power need --tasks, TasksNeeded --effect, RunsNeeded both; RunsNeeded is null where
	// no number of runs is enough.
	MDE         *float64    `json:"mde"`
	Power       *float64    `json:"power"`
	TasksNeeded *int        `json:"tasksNeeded"`
	RunsNeeded  *int        `json:"runsNeeded"`
	Cheapest    *stats.Plan `json:"cheapest,omitempty"`
	Affordable  *stats.Plan `json:"affordable,omitempty"`
}

func newPower(con *console.Console, options *statsOptions) *cobra.Command {
	var flags powerOptions
	cmd := &cobra.Command{
		Use:   "power [--effect D] [--tasks N] [--runs K]",
		Short: "Estimate power: minimum detectable effect and required sample size",
		Long: `Plans a paired experiment in which the task is the unit. The variance of a task's
observed difference is omega2 + 2*sigma2/K: omega2 between tasks, which only more
tasks lower, and sigma2 within tasks, which repetitions lower.

With --tasks: the minimum detectable difference (80% power).
With --effect: the tasks needed, and with --tasks the power and the runs needed.
With --cost-per-run: the cheapest experiment for --effect, or with --budget the
sharpest experiment that money buys.`,
		Example: `  fit stats power --tasks 20 --runs 3
  fit stats power --effect 0.10 --runs 3
  fit stats power --effect 0.10 --tasks 60 --runs 3 --cost-per-run 0.4 --max-tasks 150
  fit stats power --budget 200 --cost-per-run 0.4 --cost-per-task 2`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("effect") && !cmd.Flags().Changed("tasks") && !cmd.Flags().Changed("budget") {
				return console.Usagef("power needs --effect, --tasks or --budget; see %s --help", cmd.CommandPath())
			}
			result, err := plan(flags, cmd.Flags().Changed)
			if err != nil {
				return refused(cmd, err)
			}
			return emit(con, options, result, func(w io.Writer) { writePower(w, result) })
		},
	}
	cmd.Flags().Float64Var(&flags.Effect, "effect", 0, "difference to detect, 0.10 for ten points")
	cmd.Flags().IntVar(&flags.Tasks, "tasks", 0, "number of tasks")
	cmd.Flags().IntVar(&flags.Runs, "runs", 1, "runs per arm and task")
	cmd.Flags().Float64Var(&flags.Between, "omega2", 0.10, "variance between tasks of the true difference")
	cmd.Flags().Float64Var(&flags.Within, "sigma2", 0.12, "mean variance of the runs within a task")
	cmd.Flags().Float64Var(&flags.Alpha, "alpha", stats.DefaultAlpha, "two-sided significance level")
	cmd.Flags().Float64Var(&flags.Power, "power", stats.DefaultPower, "statistical power")
	cmd.Flags().IntVar(&flags.MaxTasks, "max-tasks", 0, "the most tasks that are available (0: no limit)")
	cmd.Flags().Float64Var(&flags.Budget, "budget", 0, "money for the experiment")
	cmd.Flags().Float64Var(&flags.Prices.PerRun, "cost-per-run", 0, "cost of one run")
	cmd.Flags().Float64Var(&flags.Prices.PerTask, "cost-per-task", 0, "cost of one more task, without its runs")
	return cmd
}

// check refuses what the outcomes of runs, which lie between 0 and 1, cannot be; the library also
// plans for other scales.
func (o powerOptions) check(changed func(string) bool) error {
	if changed("effect") && !(o.Effect > 0 && o.Effect <= 1) {
		if o.Effect == 0 {
			return fmt.Errorf("effect is 0: no experiment can find a difference that is not there")
		}
		return fmt.Errorf("--effect %v: must be above 0 and at most 1 (0.10 is ten points, in either direction)",
			o.Effect)
	}
	if changed("tasks") && (o.Tasks < 1 || o.Tasks > math.MaxInt32) {
		return fmt.Errorf("--tasks %d: must be from 1 to %d", o.Tasks, math.MaxInt32)
	}
	if o.Runs < 1 || o.Runs > math.MaxInt32 {
		return fmt.Errorf("--runs %d: must be from 1 to %d", o.Runs, math.MaxInt32)
	}
	for _, row := range []struct {
		name       string
		value, top float64
	}{{"omega2", o.Between, 1}, {"sigma2", o.Within, 0.25}} {
		if !(row.value >= 0 && row.value <= row.top) {
			return fmt.Errorf("%s %v: must be from 0 to %v: outcomes between 0 and 1 vary no more", row.name,
				row.value, row.top)
		}
	}
	for _, row := range []struct {
		name  string
		value float64
	}{{"alpha", o.Alpha}, {"power", o.Power}} {
		// The library takes 0 for "default"; a person who writes 0 has made a mistake.
		if !(row.value > 0 && row.value < 1) {
			return fmt.Errorf("%s must be above 0 and below 1, not %v", row.name, row.value)
		}
	}
	for _, name := range []string{"budget", "cost-per-task", "max-tasks"} {
		if changed(name) && !changed("cost-per-run") {
			return fmt.Errorf("--%s needs --cost-per-run", name)
		}
	}
	return nil
}

func plan(flags powerOptions, changed func(string) bool) (powerResult, error) {
	if err := flags.check(changed); err != nil {
		return powerResult{}, err
	}
	design := stats.Design{
		Between:         flags.Between,
		WithinCandidate: flags.Within,
		WithinBaseline:  flags.Within,
		RunsCandidate:   flags.Runs,
		RunsBaseline:    flags.Runs,
		Alpha:           flags.Alpha,
		Power:           flags.Power,
	}
	result := powerResult{
		Runs:   flags.Runs,
		Alpha:  flags.Alpha,
		Target: flags.Power,
		Omega2: flags.Between,
		Sigma2: flags.Within,
	}
	if changed("tasks") {
		result.Tasks = &flags.Tasks
		mde, err := stats.MinimumDetectableEffect(flags.Tasks, design)
		if err != nil {
			return powerResult{}, err
		}
		result.MDE = &mde
	}
	if changed("effect") {
		if err := result.addEffect(flags, design); err != nil {
			return powerResult{}, err
		}
	}
	return result, result.addMoney(flags, design, changed)
}

func (r *powerResult) addEffect(flags powerOptions, design stats.Design) error {
	r.Effect = &flags.Effect
	tasks, err := stats.TasksNeeded(flags.Effect, design)
	if err != nil {
		return err
	}
	if tasks > math.MaxInt32 {
		return fmt.Errorf("an effect of %g needs %.3g tasks: too small to plan for", flags.Effect, tasks)
	}
	r.TasksNeeded = roundedUp(tasks)
	if r.Tasks == nil {
		return nil
	}
	power, err := stats.PowerOf(flags.Effect, flags.Tasks, design)
	if err != nil {
		return err
	}
	r.Power = &power
	runs, err := stats.RunsNeeded(flags.Effect, flags.Tasks, design)
	if err != nil {
		return err
	}
	if runs <= math.MaxInt32 {
		r.RunsNeeded = roundedUp(runs)
	}
	return nil
}

func (r *powerResult) addMoney(flags powerOptions, design stats.Design, changed func(string) bool) error {
	if !changed("cost-per-run") {
		return nil
	}
	if r.Effect != nil {
		cheapest, err := stats.CostOfDecision(flags.Effect, stats.MinClaimTasks, flags.MaxTasks, design, flags.Prices)
		if err != nil {
			return err
		}
		r.Cheapest = &cheapest
	}
	if changed("budget") {
		affordable, err := stats.Allocate(flags.Budget, flags.MaxTasks, design, flags.Prices)
		if err != nil {
			return err
		}
		r.Affordable = &affordable
	}
	return nil
}

// roundedUp forgives the last rounding error, so that exactly 20 tasks stay 20.
func roundedUp(x float64) *int {
	return new(int(math.Ceil(x - 1e-9)))
}

func writePower(w io.Writer, result powerResult) {
	fmt.Fprintf(w, "per task: variance %g between and %g within, %s per arm; alpha %g, %g%% power\n",
		result.Omega2, result.Sigma2, report.Count(result.Runs, "run"), result.Alpha, 100*result.Target)
	switch {
	case result.MDE == nil:
	case *result.MDE > 1:
		fmt.Fprintf(w, "%s: no difference is detectable, not even all against none\n",
			report.Count(*result.Tasks, "task"))
	default:
		fmt.Fprintf(w, "%s: minimum detectable difference %.1f points\n", report.Count(*result.Tasks, "task"),
			100**result.MDE)
	}
	if result.Effect != nil {
		fmt.Fprintf(w, "a difference of %.1f points needs %s\n", 100**result.Effect,
			report.Count(*result.TasksNeeded, "task"))
	}
	if result.Power != nil {
		fmt.Fprintf(w, "%s: power %.2f for it\n", report.Count(*result.Tasks, "task"), *result.Power)
		if result.RunsNeeded == nil {
			fmt.Fprintf(w, "no number of runs makes %s enough: the variance between tasks is too high\n",
				report.Count(*result.Tasks, "task"))
		} else {
			fmt.Fprintf(w, "enough: %s with %s per arm and task\n", report.Count(*result.Tasks, "task"),
				report.Count(*result.RunsNeeded, "run"))
		}
	}
	if result.Cheapest != nil {
		fmt.Fprintf(w, "cheapest: %s × %s per arm, cost %.2f\n", report.Count(result.Cheapest.Tasks, "task"),
			report.Count(result.Cheapest.Runs, "run"), result.Cheapest.Cost)
	}
	if result.Affordable != nil {
		fmt.Fprintf(w, "affordable: %s × %s per arm, cost %.2f, minimum detectable difference %.1f points\n",
			report.Count(result.Affordable.Tasks, "task"), report.Count(result.Affordable.Runs, "run"),
			result.Affordable.Cost, 100*result.Affordable.MDE)
	}
}
