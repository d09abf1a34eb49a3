package experimentcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/failure"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/ledger"
)

// Run is one experiment that is run from the command line.
type Run struct {
	Console  *console.Console
	Prepared *experiment.Prepared
	Machine  *local.Machine
	Dir      *experiment.Directory
	Output   string // where Dir lies
	Workers  int    // attempts at a time; 0 on a fleet: as many as its workers have place for
	Attempts int
	// BreakAfter is how many infrastructure errors in a row stop the experiment.
	BreakAfter  int
	Budgets     experiment.Budgets
	RetryErrors bool
	NoProbe     bool
	Drain       time.Duration
	// Record, if set, sees every record as it is made.
	Record func(*ledger.Record)
	// Before, if set, is called before anything is spent, with the number of cells that are left.
	Before func(ctx context.Context, executor *local.Executor, cells int) error
	// Watch and KeepWorkspaces are those of local.Config.
	Watch          func(local.Step)
	KeepWorkspaces bool
	// Fleet runs the cells elsewhere; nil: on this machine.
	Fleet *Fleet
	// Proof is what the user wants to know before anything is spent.
	Proof Proof

	rate *gateway.RateControl
}

// Do runs the cells that are left.
func (r *Run) Do(ctx context.Context) (experiment.Outcome, error) {
	estimate := r.Dir.Estimate(r.Budgets)
	if estimate.Cells > 0 {
		if err := r.refuseSame(); err != nil {
			return experiment.Outcome{}, err
		}
	}
	if estimate.Cells > 0 && r.Fleet == nil {
		if err := r.warnOfIsolation(ctx); err != nil { // first of all
			return experiment.Outcome{}, startError(ctx, err)
		}
	}
	for _, note := range r.Dir.Notes {
		fmt.Fprintf(r.Console.Stderr, "note: %s\n", note)
	}
	r.announce(estimate)
	if estimate.Cells > 0 {
		r.describeOnly()
	}
	r.rate = gateway.NewRateControl()
	if r.Fleet != nil {
		return r.Fleet.do(ctx, r, estimate.Cells)
	}
	executor, err := r.local(ctx)
	if err != nil {
		return experiment.Outcome{}, startError(ctx, err)
	}
	if estimate.Cells > 0 {
		r.warnOfNetwork(executor)
	}
	outcome, err := r.execute(ctx, executor, estimate.Cells)
	return outcome, errors.Join(err, executor.Close())
}

// local makes the executor of this machine.
func (r *Run) local(ctx context.Context) (*local.Executor, error) {
	work, err := local.WorkDir(r.Output)
	if err != nil {
		return nil, err
	}
	return local.New(ctx, local.Config{
		Prepared:  r.Prepared,
		Machine:   r.Machine,
		Artefacts: r.Dir,
		Work:      work,
		Rate:      r.rate,
		Accounts:  r.Dir.Accounts(),

		Watch:          r.Watch,
		KeepWorkspaces: r.KeepWorkspaces,
	})
}

// startError is what keeps an experiment from its first cell. Whatever a signal broke off, it is an
// interruption.
func startError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return console.Exitf(console.ExitInterrupted, "interrupted before the first cell; nothing was started")
	}
	return err
}

// prepare warms caches and finds what is wrong with the tasks before anything is spent.
func (r *Run) prepare(ctx context.Context, executor *local.Executor, cells int) error {
	if cells > 0 {
		if err := executor.Warm(ctx); err != nil {
			return err
		}
	}
	if r.Before != nil {
		return r.Before(ctx, executor, cells)
	}
	return nil
}

// execute runs the cells that are left.
func (r *Run) execute(ctx context.Context, executor *local.Executor, cells int) (experiment.Outcome, error) {
	err := r.prepare(ctx, executor, cells)
	if err == nil && cells > 0 {
		err = r.rehearse(ctx, executor)
	}
	if err == nil {
		err = r.probe(ctx, executor, cells)
	}
	if err != nil {
		return experiment.Outcome{}, r.neverBegan(startError(ctx, err))
	}
	return r.runCells(ctx, experiment.Config{Executor: executor}, nil)
}

// neverBegan notes in the run directory why no attempt was begun, for reports and pages.
func (r *Run) neverBegan(err error) error {
	reason := strings.ReplaceAll(r.Machine.Redactor.String(err.Error()), "\n", "; ")
	return errors.Join(err, r.Dir.RecordProcess(experiment.Process{
		Budgets: r.Budgets,
		NoProbe: r.NoProbe,
		Status:  experiment.Incomplete,
		Reason:  reason,
	}, time.Now()))
}

// runCells runs the cells that are left with an executor. sealed, if set, is called with every
// record that the ledger has.
func (r *Run) runCells(ctx context.Context, cfg experiment.Config, sealed func(*ledger.Record)) (experiment.Outcome,
	error,
) {
	show := newShow(r.Console, r.Record, r.rate)
	stopNow, forget := secondSignal()
	defer forget()
	outcome, err := experiment.Run(ctx, r.Dir, experiment.Config{
		Executor:    cfg.Executor,
		Claimable:   r.claimable(ctx),
		Steered:     true,
		Places:      cfg.Places,
		Changed:     cfg.Changed,
		Concurrency: r.Workers,
		Attempts:    r.Attempts,
		BreakAfter:  r.BreakAfter,
		Budgets:     r.Budgets,
		RetryErrors: r.RetryErrors,
		NoProbe:     r.NoProbe,
		Drain:       r.Drain,
		Interrupted: func(cells int) { show.interrupted(cells, r.Drain) },
		StopNow:     stopNow,
		Progress: func(p experiment.Progress) {
			if p.Last != nil && sealed != nil {
				sealed(p.Last)
			}
			show.progress(p)
		},
	})
	show.end()
	return outcome, err
}

// claimable reports whether the results so far may be claimed; nil where no rule stops the
// experiment.
func (r *Run) claimable(ctx context.Context) func() (bool, error) {
	stop := r.Dir.Plan.Stop
	if stop == nil {
		return nil
	}
	return func() (bool, error) {
		return results.Claimable(ctx, Auditor(r.Console, r.Machine.Registry), r.Dir.Path, stop.Alpha)
	}
}

// probe finds what cannot work before the first cell.
func (r *Run) probe(ctx context.Context, executor *local.Executor, cells int) error {
	if cells == 0 {
		return nil
	}
	hint := "no cell can run with this setup"
	err := executor.Check(ctx)
	if err == nil && !r.NoProbe {
		fmt.Fprintf(r.Console.Stderr, "checking that every arm's model replies\n")
		err = executor.Probe(ctx, r.Dir.RecordProbe)
		hint = "check credentials, model and URL, or skip the models' part of this check with --no-probe"
	}
	if err = startError(ctx, err); err == nil || ctx.Err() != nil {
		return err
	}
	return console.Exitf(console.ExitIncomplete, "%w\nnothing was started; %s", err, hint)
}

// announce says what will be run and what it may cost.
func (r *Run) announce(e experiment.Estimate) {
	plan := r.Dir.Plan
	total := len(plan.Cells())
	var text strings.Builder
	fmt.Fprintf(&text, "experiment %s: %s × %s × %s", plan.ID, report.Count(len(plan.Tasks), "task"),
		report.Count(len(plan.Arms), "arm"), report.Count(plan.Runs, "run"))
	if plan.Shard.N > 0 {
		fmt.Fprintf(&text, ", shard %s", plan.Shard)
	}
	where := fmt.Sprintf("%d at a time", r.Workers)
	if r.Workers > 1 && r.sharesLoopback() {
		where += " on one loopback, which cells of different tasks and arms share; those of a task take turns " +
			"(network host; --network model gives each its own)"
	}
	if r.Fleet != nil {
		where = "on a fleet"
		if r.Workers > 0 {
			where += fmt.Sprintf(", at most %d at a time", r.Workers)
		}
	}
	fmt.Fprintf(&text, " = %s, %d to do, %s, in %s\n", report.Count(total, "cell"), e.Cells, where, r.Output)
	if part := plan.Part(); part != "" {
		fmt.Fprintln(&text, display.Line(part))
	}
	if plan.Judge.Agent != "" {
		fmt.Fprintf(&text, "judge: %s\n", r.Prepared.Judge.Name())
	}
	switch {
	case e.Cells == 0:
	case e.Known:
		fmt.Fprintf(&text, "estimate: %s, up to %s", display.Dollars(e.USD), display.Dollars(e.USDHigh))
	default:
		text.WriteString("estimate: unknown until every arm has finished a cell")
	}
	if e.Cells > 0 {
		if e.AtMost > 0 {
			fmt.Fprintf(&text, "; limited to %s by the budgets", display.Dollars(e.AtMost))
		}
		text.WriteByte('\n')
	}
	_, _ = io.WriteString(r.Console.Stderr, text.String())
}

// sharesLoopback reports whether agents have the machine's network, and its loopback.
func (r *Run) sharesLoopback() bool {
	return slices.ContainsFunc(r.Prepared.Family.Tasks, func(t task.Task) bool {
		return cmp.Or(r.Prepared.Network, t.Settings.AgentNetwork.Kind, sandbox.NetworkHost) == sandbox.NetworkHost
	})
}

// warnOfIsolation says before anything is spent that agents will not be isolated, and how to change
// that, and what the sandbox of this machine leaves open.
func (r *Run) warnOfIsolation(ctx context.Context) error {
	reasons, open := map[string]int{}, ""
	for i := range r.Prepared.Family.Tasks {
		t := &r.Prepared.Family.Tasks[i]
		why, err := workspace.NotIsolated(ctx, r.Prepared.Isolation, t)
		if err != nil {
			return console.Exitf(console.ExitIncomplete, "%w\nnothing was started", err)
		}
		if why != "" {
			reasons[why]++
		}
		open = cmp.Or(open, workspace.LeftOpen(ctx, r.Prepared.Isolation, t))
	}
	if err := ctx.Err(); err != nil {
		return err // not everything was looked at
	}
	if open != "" {
		fmt.Fprintf(r.Console.Stderr, "warning: the sandbox on this machine has known gaps: %s (details: fit "+
			"doctor)\n", open)
	}
	for why, tasks := range reasons {
		fmt.Fprintf(r.Console.Stderr, "warning: the runs of %s are not isolated: %s\n"+
			"  their agents can read hidden tests, other runs and your files (docs/security.md)\n",
			report.Count(tasks, "task"), why)
	}
	return nil
}

// warnOfNetwork says before anything is spent that agents will have the machine's network where
// their task prefers another.
func (r *Run) warnOfNetwork(executor *local.Executor) {
	for why, tasks := range executor.NetworkFallbacks() {
		fmt.Fprintf(r.Console.Stderr, "note: the agents of %s can use this machine's network, although the task "+
			"prefers that they reach only their model: %s\n", report.Count(tasks, "task"), why)
	}
}

// describeOnly says, before anything is spent, what keeps an experiment from a claim.
func (r *Run) describeOnly() {
	for _, note := range r.Prepared.Plan.Limits() {
		fmt.Fprintln(r.Console.Stderr, note)
	}
}

// explain shows every cause of errors once.
func (r *Run) explain(causes []failure.Cause) {
	for i := range causes {
		fmt.Fprintln(r.Console.Stderr, strings.Join(causes[i].Lines(), "\n"))
	}
}

// Conclude explains what went wrong and returns the error with the exit code that the outcome
// deserves; nil for an experiment that is complete or decided.
func (r *Run) Conclude(outcome experiment.Outcome) error {
	r.explain(outcome.Causes)
	switch outcome.Status {
	case experiment.Complete, experiment.Decided:
		if outcome.Reason != "" {
			fmt.Fprintf(r.Console.Stderr, "%s\n", outcome.Reason)
		}
		return nil
	case experiment.OverBudget:
		return console.Exitf(console.ExitBudget, "%s", outcome.Why())
	case experiment.Interrupted:
		return console.Exitf(console.ExitInterrupted, "%s", outcome.Reason)
	default:
		return console.Exitf(console.ExitIncomplete, "%s", outcome.Reason)
	}
}
