package fleetcli

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/simulate"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/ledger"
)

// simulateOptions are the flags of fit fleet simulate.
type simulateOptions struct {
	workers, slots, attempts, repeats, runs console.Count

	caps     []string
	failRate float64
	duration string
	cost     console.Dollars
	seed     uint64
	format   console.Format
}

func newSimulate(con *console.Console, registry *agent.Registry) *cobra.Command {
	o := &simulateOptions{
		workers:  console.Count{Value: 10, Min: 1},
		slots:    console.Count{Value: 1, Min: 1},
		attempts: console.Count{Value: 3, Min: 1},
		repeats:  console.Count{Value: 200, Min: 1},
		runs:     console.Count{Min: 1},
	}
	cmd := &cobra.Command{
		Use:   "simulate PLAN",
		Short: "Estimate an experiment's duration and cost on a fleet",
		Long: `Forecast makespan, cost and use of caps before you spend anything. PLAN is a run directory: its plan is
simulated from the beginning.

Durations and costs of cells are drawn from the directory's records, of the same arm and task if there are any: run a
few cells first, then simulate more with --runs. --duration and --cost-usd replace the measured values. Ranges hold
nine of ten repeats. Every worker can run every cell; needs, budgets and the fleet's own overhead are not simulated.`,
		Example: `  fit fleet simulate runs/pilot --runs 20 --workers 50 --slots 4 --cap anthropic=40 --fail-rate 0.02
  fit fleet simulate runs/plan --workers 10 --duration 5m-40m --cost-usd 0.60 --format json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			scenario, measured, err := o.scenario(registry, con.Path(args[0]))
			if err != nil {
				return console.Exit(console.ExitUsage, err)
			}
			forecast, err := simulate.Run(cmd.Context(), scenario)
			if cmd.Context().Err() != nil {
				return console.Exitf(console.ExitInterrupted, "interrupted")
			}
			if err != nil {
				return console.Exit(console.ExitUsage, err)
			}
			if o.format.JSON() {
				return jsonenc.WriteIndented(con.Stdout, forecast)
			}
			return showForecast(con, &forecast, measured)
		},
	}
	flags := cmd.Flags()
	flags.Var(&o.workers, "workers", "workers of the fleet")
	flags.Var(&o.slots, "slots", "cells each worker runs concurrently")
	flags.StringArrayVar(&o.caps, "cap", nil,
		"`PROVIDER=N`: limit the cells of a provider that run concurrently, over the whole fleet; N alone limits each provider; "+
			"may be repeated")
	flags.Float64Var(&o.failRate, "fail-rate", 0, "fraction of attempts that end in an infrastructure error, e.g. 0.02")
	flags.Var(&o.attempts, "attempts", "attempts at a cell that keeps failing with infrastructure errors")
	flags.Var(&o.runs, "runs", "repetitions of each task per arm (default: the plan's)")
	flags.StringVar(&o.duration, "duration", "",
		"duration of a cell: `TIME` (12m) or a range (5m-40m) (default: as measured)")
	flags.Var(&o.cost, "cost-usd", "cost of a cell (default: as measured)")
	flags.Var(&o.repeats, "repeats", "simulations, from which means and ranges are computed")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the random numbers")
	o.format.Register(flags, "output format")
	return cmd
}

// scenario reads the plan and what its cells take. It returns how many records that rests on.
func (o *simulateOptions) scenario(registry *agent.Registry, dir string) (simulate.Scenario, int,
	error,
) {
	if strings.HasSuffix(dir, experiment.PlanFile) {
		dir = filepath.Dir(dir)
	}
	plan, err := experiment.ReadPlan(dir)
	if err != nil {
		return simulate.Scenario{}, 0, err
	}
	if o.runs.Given {
		plan.Runs = o.runs.Value
	}
	s := simulate.Scenario{
		Plan:     plan,
		Provider: func(arm *experiment.Arm) string { return experimentcli.ProviderOf(registry, arm) },
		Workers:  o.workers.Value,
		Slots:    o.slots.Value,
		FailRate: o.failRate,
		Attempts: o.attempts.Value,
		Repeats:  o.repeats.Value,
		Seed:     o.seed,
	}
	if s.Caps, err = o.parseCaps(&s); err != nil {
		return s, 0, err
	}
	m, err := readMeasured(dir)
	if err != nil {
		return s, 0, err
	}
	low, high, err := parseRange(o.duration)
	switch {
	case err != nil:
		return s, 0, err
	case len(m.all) == 0 && high == 0:
		return s, 0, fmt.Errorf("%s has no records yet: run some cells first, or set --duration and --cost-usd", dir)
	}
	s.Draw = func(cell experiment.Cell, random *rand.Rand) simulate.Sample {
		sample := m.draw(cell, random)
		if high > 0 {
			sample.Duration = low + time.Duration(random.Float64()*float64(high-low))
		}
		if o.cost.Given {
			sample.USD = &o.cost.Value
		}
		return sample
	}
	return s, len(m.all), nil
}

// parseCaps reads the flags --cap.
func (o *simulateOptions) parseCaps(s *simulate.Scenario) (map[string]int, error) {
	known := map[string]bool{}
	for i := range s.Plan.Arms {
		known[s.Provider(&s.Plan.Arms[i].Arm)] = true
	}
	caps := map[string]int{}
	for _, text := range o.caps {
		provider, number, named := strings.Cut(text, "=")
		if !named {
			provider, number = "", text
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--cap %q: must be PROVIDER=N or N, with N at least 1", text)
		}
		if named && !known[provider] {
			return nil, fmt.Errorf("--cap %q: the plan's providers are %s", text, strings.Join(sorted(known), ", "))
		}
		for name := range known {
			if name == provider || !named {
				caps[name] = n
			}
		}
	}
	return caps, nil
}

func sorted(set map[string]bool) []string {
	var list []string
	for name := range set {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// parseRange reads a duration or a range of them.
func parseRange(text string) (low, high time.Duration, err error) {
	if text == "" {
		return 0, 0, nil
	}
	first, second, ranged := strings.Cut(text, "-")
	if !ranged {
		second = first
	}
	low, err = time.ParseDuration(first)
	if err == nil {
		high, err = time.ParseDuration(second)
	}
	if err != nil || low < 0 || high < low || high == 0 {
		return 0, 0, fmt.Errorf("--duration %q: must be a time (12m) or a range (5m-40m)", text)
	}
	return low, high, nil
}

// measured are the attempts of a run directory that ended with a verdict.
type measured struct {
	all    []simulate.Sample
	byArm  map[string][]simulate.Sample
	byCell map[[2]string][]simulate.Sample // by arm and task
}

func readMeasured(dir string) (*measured, error) {
	m := &measured{byArm: map[string][]simulate.Sample{}, byCell: map[[2]string][]simulate.Sample{}}
	contents, err := ledger.ReadFile(filepath.Join(dir, experiment.LedgerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range contents.Records {
		r := &contents.Records[i]
		if r.Verdict == ledger.Error {
			continue
		}
		sample := simulate.Sample{Duration: time.Duration(r.DurationMs) * time.Millisecond, USD: r.CostUSD}
		key := [2]string{r.Arm, r.TaskID}
		m.all = append(m.all, sample)
		m.byArm[r.Arm] = append(m.byArm[r.Arm], sample)
		m.byCell[key] = append(m.byCell[key], sample)
	}
	return m, nil
}

// draw returns what an attempt like this one took and cost.
func (m *measured) draw(cell experiment.Cell, random *rand.Rand) simulate.Sample {
	for _, list := range [][]simulate.Sample{m.byCell[[2]string{cell.Arm, cell.TaskID}], m.byArm[cell.Arm], m.all} {
		if len(list) > 0 {
			return list[random.IntN(len(list))]
		}
	}
	return simulate.Sample{}
}

// showForecast prints a forecast for people.
func showForecast(con *console.Console, f *simulate.Forecast, measured int) error {
	out := con.Table()
	fmt.Fprintf(out, "%d cells on %d workers × %d slots, %d repeats, from %d records\n\n", f.Cells, f.Workers, f.Slots,
		f.Repeats, measured)
	row := func(name string, r simulate.Range, show func(float64) string) {
		fmt.Fprintf(out, "%s\t%s\t[%s, %s]\n", name, show(r.Mean), show(r.Low), show(r.High))
	}
	fmt.Fprintln(out, "\tMEAN\t90% RANGE")
	row("makespan", f.Makespan, func(v float64) string {
		return (time.Duration(v) * time.Millisecond).Round(time.Second).String()
	})
	if f.Cost != nil {
		row("cost", *f.Cost, display.Dollars)
	} else {
		fmt.Fprintln(out, "cost\tunknown\tnot every cell has a known cost; set --cost-usd")
	}
	count := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	row("attempts", f.Attempts, count)
	row("cells without a verdict", f.Missing, count)
	percent := func(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }
	row("slots in use", f.SlotUse, percent)
	for _, c := range f.Caps {
		row(fmt.Sprintf("cap %d of %s in use", c.Cap, display.Line(c.Provider)), c.Use, percent)
	}
	fmt.Fprintf(out, "\nthe makespan is bounded by %s\n", display.Line(f.Bound))
	return out.Flush()
}
