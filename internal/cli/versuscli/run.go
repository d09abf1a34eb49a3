package versuscli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/jsonenc"
)

func newRun(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := &runOptions{}
	command := &cobra.Command{
		Use:   "run TASK.yaml…",
		Short: "Run every task with every agent N times; rerun to resume",
		Long: `Run every task with every agent N times, each in its own workspace, and record what happened. Rerun the
same command to resume.

Before anything is spent, the verifying command of every task must fail on the base and pass on the reference patch,
and every arm's model must reply once. After Ctrl-C, running attempts have a grace period; a second Ctrl-C stops
immediately.`,
		Example: fmt.Sprintf(`  fit versus run examples/versus/go.yaml --agents %[1]s,%[2]s,%[3]s --runs 3
  subq eval run tasks/*.yaml --arms arms.yaml --max-cost-usd 20 --format json >report.json
  fit versus run examples/versus/go.yaml --agents %[1]s,%[2]s --workspace worktree --dry-run`, registry.Examples(3)...),
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return runRun(command.Context(), con, registry, opts, args)
		},
	}
	opts.register(command.Flags(), registry)
	return command
}

func runRun(ctx context.Context, con *console.Console, registry *agent.Registry, opts *runOptions,
	files []string,
) error {
	machine := experimentcli.Machine(con, registry)
	machine.OutputLimit = opts.OutputLimit()
	if opts.Fleet != "" && opts.keepWorktrees {
		return console.Usagef("--keep-worktrees keeps directories of this machine: leave it out with --fleet")
	}
	policy, fleet, err := opts.Begin(ctx, con, machine)
	if err != nil {
		return err
	}
	defer fleet.Close()
	prepared, err := opts.prepare(ctx, con, machine, files, policy)
	if err != nil {
		return err
	}
	output, err := opts.directory(con, prepared.Plan)
	if err != nil {
		return err
	}
	run, err := opts.Run(con, machine, prepared, fleet)
	if err != nil {
		return err
	}
	run.Output, run.Watch, run.KeepWorkspaces = output.path, steps(con, output.shown), opts.keepWorktrees
	if opts.DryRun {
		return dryRun(ctx, &run, output, opts.Format.JSON())
	}
	if run.Dir, err = experimentcli.OpenDirectory(con, output.path, prepared.Plan, machine.Redactor); err != nil {
		return err
	}
	run.Before = func(ctx context.Context, executor *local.Executor, cells int) error {
		return checkTasks(ctx, executor, prepared, run.Dir, cells)
	}
	outcome, err := run.Do(ctx)
	if err := errors.Join(err, run.Dir.Close()); err != nil {
		return err
	}
	concluded := run.Conclude(outcome)
	if console.Code(concluded) == console.ExitInterrupted {
		return concluded
	}
	return cmp.Or(concluded, opts.finish(ctx, con, registry, output.shown))
}

// steps prints a line for every workspace that is made and every agent that is started.
func steps(con *console.Console, output string) func(local.Step) {
	return func(step local.Step) {
		fmt.Fprintf(con.Stderr, "%s %s/%s for task %s, run %d: %s\n", step.Kind, output, step.Cell.Arm,
			step.Cell.TaskID, step.Cell.RunIndex, step.Detail)
	}
}

// checkTasks finds tasks that measure nothing before anything is spent, and writes down what they
// are, so that judging needs neither task file, repository nor agent.
func checkTasks(ctx context.Context, executor *local.Executor, prepared *experiment.Prepared,
	dir *experiment.Directory, cells int,
) error {
	known, err := evidence.ReadTasks(dir.Path, dir.Plan.TasksDigest)
	switch {
	case err != nil && !errors.As(err, new(*evidence.TasksChanged)): // a changed file is written anew
		return err
	case cells == 0 && len(known) > 0:
		return nil
	}
	facts, err := executor.CheckTasks(ctx, isTest)
	switch {
	case errors.As(err, new(*local.TaskError)):
		return console.Exit(console.ExitUsage, err)
	case err != nil:
		return err
	}
	digest, err := evidence.WriteTasks(dir.Path, describe(prepared.Family, facts))
	if err != nil {
		return err
	}
	return dir.RecordTasks(digest)
}

// dryRun shows what a run would do, after a rehearsal.
func dryRun(ctx context.Context, run *experimentcli.Run, output runDirectory, asJSON bool) error {
	plan := run.Prepared.Plan
	if err := experimentcli.DryRun(ctx, run); err != nil {
		return err
	}
	if asJSON {
		return jsonenc.WriteIndented(run.Console.Stdout, plan)
	}
	experimentcli.ShowPlan(run.Console, plan, output.shown)
	for _, cell := range plan.Cells() {
		fmt.Fprintf(run.Console.Stdout, "%s: task %s, run %d\n",
			filepath.ToSlash(filepath.Join(output.shown, cell.Arm)), cell.TaskID, cell.RunIndex)
	}
	return nil
}
