package fit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/task"
)

type (
	// Arm is a complete agent configuration: agent, model, skills, instructions, prompt, tools.
	// "One agent against another" and "this skill against that one" are the same question: two
	// arms.
	Arm = experiment.Arm
	// Comparison is the answer: the decision with its confidence interval, what the models of the
	// two arms were given, and what each arm cost. Its methods Text and Markdown print it.
	Comparison = report.Comparison
)

// ExperimentConfig asks a question: do these arms differ on these tasks?
type ExperimentConfig struct {
	// Family is the directory of the tasks, or url//subdir@ref of a git repository.
	Family string
	Tasks  []string // ids of the tasks to run; empty is all
	Arms   []Arm    // the first is the baseline
	Runs   int      // repetitions of each task per arm; 0 is 5
	// Output is the run directory. One that holds the same experiment is continued.
	Output string
	Seed   uint64

	Concurrency int           // attempts in flight; 0 is 1
	MaxCostUSD  float64       // of the whole experiment; 0 is no limit
	Timeout     time.Duration // of one agent's work, beside the task's own limit; 0 is none
	// NoProbe skips the one paid call with which every arm's model must reply first.
	NoProbe bool
	// Allow accepts reasons that would withhold a claim: same, drift, historical, unsigned.
	Allow []string
	// Progress, if set, is called after every attempt.
	Progress func(done, total int)
}

// ExperimentResult is how an experiment ended.
type ExperimentResult struct {
	// Status is complete, decided, budget, interrupted or another word for why it stopped; Reason
	// says more.
	Status string
	Reason string
	// Errors are the causes for which cells have no verdict, the most frequent one first.
	Errors []error
	// Comparison is that of two arms; nil where there is one arm, or more than two.
	Comparison *Comparison
}

// Experiment runs every task with every arm, proves that each arm's change reached its model,
// grades the outcome with checks the agent cannot touch, and compares the arms. Its error is for
// experiments that could not run; what a run found is in the result.
func Experiment(ctx context.Context, cfg ExperimentConfig) (ExperimentResult, error) {
	return Wiring{}.Experiment(ctx, cfg)
}

// Compare compares two arms: the directories of two experiments, or DIR:ARM of either, or results
// of other harnesses. after is
// compared with before.
func Compare(before, after string) (*Comparison, error) {
	groups, err := Wiring{}.filled().reader(context.Background(), nil).Sides([]string{before, after})
	if err != nil {
		return nil, err
	}
	return report.Compare(groups[0], groups[1], report.CompareConfig{})
}

// reader reads results for comparisons.
func (w Wiring) reader(ctx context.Context, allow []string) *results.Reader {
	return &results.Reader{
		Load: func(dir string) (*results.Results, error) {
			return results.Load([]string{dir}, false, &foreign.Options{})
		},
		Build: func(found *results.Results) (*report.Report, error) {
			found.Allow = allow
			auditor := results.Auditor{Dialects: w.Registry.Dialects(), Prices: w.Prices}
			return found.Build(ctx, auditor, []int{1}, false)
		},
	}
}

// Experiment is the function of the same name, with this wiring.
func (w Wiring) Experiment(ctx context.Context, cfg ExperimentConfig) (ExperimentResult, error) {
	w = w.filled()
	prepared, machine, err := w.prepareExperiment(ctx, &cfg)
	if err != nil {
		return ExperimentResult{}, err
	}
	if cfg.Output, err = filepath.Abs(cfg.Output); err != nil {
		return ExperimentResult{}, err
	}
	dir, err := experiment.OpenDirectory(cfg.Output, prepared.Plan, machine.Redactor)
	if err != nil {
		return ExperimentResult{}, err
	}
	outcome, err := w.runCells(ctx, &cfg, prepared, machine, dir)
	if err = errors.Join(err, dir.Close()); err != nil {
		return ExperimentResult{}, err
	}
	result := ExperimentResult{Status: outcome.Status, Reason: outcome.Reason}
	for i := range outcome.Causes {
		result.Errors = append(result.Errors, errors.New(strings.Join(outcome.Causes[i].Lines(), "\n")))
	}
	reader := w.reader(context.WithoutCancel(ctx), cfg.Allow)
	found, err := reader.Load(cfg.Output)
	if err != nil {
		return result, err
	}
	built, err := reader.Build(found)
	if err != nil {
		return result, err
	}
	result.Comparison, _, err = results.Answer(built, report.CompareConfig{Seed: cfg.Seed, Allow: cfg.Allow})
	return result, err
}

// prepareExperiment checks everything before a cent is spent.
func (w Wiring) prepareExperiment(ctx context.Context, cfg *ExperimentConfig) (*experiment.Prepared, *local.Machine,
	error,
) {
	switch {
	case cfg.Family == "":
		return nil, nil, &ConfigError{"ExperimentConfig.Family", errors.New("it is empty; name a directory of tasks")}
	case cfg.Output == "":
		return nil, nil, &ConfigError{"ExperimentConfig.Output", errors.New("it is empty; name a run directory")}
	}
	if err := experiment.CheckArms(cfg.Arms); err != nil {
		return nil, nil, &ConfigError{"ExperimentConfig.Arms", err}
	}
	family, err := task.Load(ctx, cfg.Family, task.Options{Environ: w.Environ})
	if err != nil {
		return nil, nil, err
	}
	base := agent.Config{Environ: w.Environ}
	if err := w.fillBase(&base); err != nil {
		return nil, nil, err
	}
	machine := &local.Machine{
		Registry: w.Registry,
		Host:     agent.Host{Environ: w.Environ, Spawner: w.Spawner, CacheDir: base.CacheDir},
		Prices:   w.Prices,
		Redactor: w.NewRedactor(),

		OutputLimit: w.OutputLimit,
	}
	setup := experiment.Setup{
		Family:          family,
		Only:            cfg.Tasks,
		Arms:            cfg.Arms,
		Runs:            cmp.Or(cfg.Runs, experiment.DefaultRuns),
		Seed:            cfg.Seed,
		Network:         w.Network,
		DollarBudget:    cfg.MaxCostUSD > 0,
		AgentTimeout:    cfg.Timeout,
		DefaultMaxTurns: DefaultRunTurns,
		Policy:          w.Calls.Policy,
		Tools:           map[string]string{"fit": moduleVersion()},
	}
	if w.Isolation != "auto" {
		setup.Isolation = w.Isolation
	}
	prepared, err := local.Prepare(ctx, setup, machine)
	if err != nil {
		return nil, nil, err
	}
	if same := prepared.Same(); same != nil && !slices.Contains(cfg.Allow, "same") {
		return nil, nil, &ConfigError{"ExperimentConfig.Arms", fmt.Errorf("%s and %s are the same; change what you "+
			"want to compare, or allow an A/A experiment: Allow: []string{\"same\"}", prepared.Arms[0].Name, same.Name)}
	}
	return prepared, machine, nil
}

// runCells rehearses every arm, asks its model once, and runs the cells that are left.
func (w Wiring) runCells(ctx context.Context, cfg *ExperimentConfig, prepared *experiment.Prepared,
	machine *local.Machine, dir *experiment.Directory,
) (experiment.Outcome, error) {
	work, err := local.WorkDir(cfg.Output)
	if err != nil {
		return experiment.Outcome{}, err
	}
	budgets := experiment.Budgets{Experiment: experiment.Budget{USD: cfg.MaxCostUSD}}
	executor, err := local.New(ctx, local.Config{
		Prepared:  prepared,
		Machine:   machine,
		Artefacts: dir,
		Work:      work,
		Rate:      gateway.NewRateControl(),
		Accounts:  dir.Accounts(),
	})
	if err != nil {
		return experiment.Outcome{}, err
	}
	if dir.Estimate(budgets).Cells > 0 {
		err = w.checkArms(ctx, cfg, executor, machine, dir)
	}
	var outcome experiment.Outcome
	if err == nil {
		outcome, err = experiment.Run(ctx, dir, experiment.Config{
			Executor:    executor,
			Concurrency: cfg.Concurrency,
			Budgets:     budgets,
			Progress: func(p experiment.Progress) {
				if cfg.Progress != nil {
					cfg.Progress(p.Done, p.Total)
				}
			},
		})
	}
	return outcome, errors.Join(err, executor.Close())
}

// checkArms finds what cannot work before the first cell: an arm whose change does not reach its
// model, an agent that does not start, a model that does not reply.
func (w Wiring) checkArms(ctx context.Context, cfg *ExperimentConfig, executor *local.Executor,
	machine *local.Machine, dir *experiment.Directory,
) error {
	if err := executor.Warm(ctx); err != nil {
		return err
	}
	found, err := executor.Rehearse(ctx, max(cfg.Concurrency, 1))
	if err != nil {
		return err
	}
	for _, warning := range slices.Concat(found.Unknown, found.Warnings) {
		w.warnf("warning: %s", machine.Redactor.String(warning))
	}
	if err := found.Write(dir.Path, machine.Redactor); err != nil {
		return err
	}
	if len(found.Problems) > 0 {
		return errors.New(machine.Redactor.String(strings.Join(found.Problems, "\n")))
	}
	if err := executor.Check(ctx); err != nil || cfg.NoProbe {
		return err
	}
	return executor.Probe(ctx, dir.RecordProbe)
}

// moduleVersion is the version of this module in the running program.
func moduleVersion() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return "unknown"
	}
	for _, module := range append(info.Deps, &info.Main) {
		if module.Path == "github.com/fit-eval/fit" {
			return cmp.Or(module.Version, "unknown")
		}
	}
	return "unknown"
}
