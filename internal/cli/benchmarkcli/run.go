package benchmarkcli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/experiment/local"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/report"
	"github.com/fit-eval/fit/stats"
	"github.com/fit-eval/fit/task"
	"github.com/fit-eval/fit/workspace"
)

func newRun(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := runOptions{
		runs:       console.Count{Value: defaultRuns, Min: 1},
		attempts:   console.Count{Min: 1},
		breakAfter: console.Count{Min: 1},
		judgeVotes: console.Count{Min: 1},
		drain:      console.Span{Value: 10 * time.Second},
		selection:  newSelection(),
	}
	command := &cobra.Command{
		Use:   "run",
		Short: "Run every task with every arm N times; rerun to resume",
		Long: `Run every task with every arm N times and record each result. Rerun the same command to resume; more runs, tasks or arms are added to what is there.

Before the first cell, every arm must give one reply. Ctrl-C lets the cells under way finish for a while (--drain); a second one stops at once.`,
		Example: fmt.Sprintf(`  fit-benchmark run --family benchmarks/todo --runs 10 --agent %s
  fit-benchmark run --family benchmarks/todo --arms arms.yaml --max-cost-usd 20 --output runs/skill-v2
  fit-benchmark run --family benchmarks/todo --task 'fix-*' --tag quick --limit 3
  fit-benchmark run --family https://example.com/benchmarks.git//todo@v1.2 --shard 1/4`, registry.Examples(1)...),
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runRun(command.Context(), con, registry, &opts, command.Flags())
		},
	}
	opts.register(command.Flags(), registry)
	return command
}

func runRun(ctx context.Context, con *console.Console, registry *agent.Registry, opts *runOptions,
	flags *pflag.FlagSet,
) error {
	machine := &local.Machine{
		Registry: registry,
		Host:     hostOf(con),
		Prices:   con.Prices(),
		Redactor: redactorOf(con, registry),
	}
	prepared, err := opts.prepare(ctx, con, machine, flags)
	if err != nil {
		return err
	}
	ks, err := parseK(opts.k)
	if err == nil {
		err = checkMetrics(con, opts.metrics)
	}
	if err != nil {
		return err
	}
	if opts.summary && con.Getenv(summaryVariable) == "" {
		return errNoSummary
	}
	workers, err := opts.workers(con)
	if err != nil {
		return err
	}
	output, err := absolute(con, opts.output)
	if err != nil {
		return err
	}
	dir, err := experiment.OpenDirectoryWith(output, prepared.Plan, machine.Redactor,
		ledger.Config{Key: signingKey(con)})
	if err != nil {
		return directoryError(err)
	}
	if err := keepLabels(prepared.Family, output); err != nil {
		return errors.Join(err, dir.Close())
	}
	run := &running{
		con:      con,
		opts:     opts,
		prepared: prepared,
		machine:  machine,
		dir:      dir,
		output:   output,
		workers:  workers,
	}
	outcome, err := run.run(ctx)
	if closeErr := dir.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return run.conclude(outcome, ks)
}

// keepLabels puts the family's human verdicts on the judge's work beside the results, where reports
// find them.
func keepLabels(family *task.Family, output string) error {
	if family.Calibration == "" {
		return nil
	}
	content, err := os.ReadFile(family.Calibration)
	if err == nil {
		err = os.WriteFile(filepath.Join(output, experiment.LabelsFile), content, 0o644)
	}
	if err != nil {
		return fmt.Errorf("keep the family's labels: %w", err)
	}
	return nil
}

func directoryError(err error) error {
	var different *experiment.DifferentError
	var damage *ledger.Damage
	switch {
	case errors.As(err, &different):
		return console.Exit(console.ExitUsage, err)
	case errors.As(err, &damage), errors.Is(err, experiment.ErrBusy), errors.Is(err, ledger.ErrLocked):
		return console.Exit(console.ExitIncomplete, err)
	default:
		return err
	}
}

// prepare checks everything before a cent is spent.
func (o *runOptions) prepare(ctx context.Context, con *console.Console, machine *local.Machine,
	flags *pflag.FlagSet,
) (*experiment.Prepared, error) {
	if o.family == "" {
		return nil, console.Usagef("--family is required: the directory of the tasks, or url//subdir@ref")
	}
	shard, err := experiment.ParseShard(o.shard)
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	arms, err := o.chooseArms(con, flags)
	if err != nil {
		return nil, err
	}
	family, err := loadFamily(ctx, con, o.family)
	if err != nil {
		return nil, err
	}
	if err := o.checkJudgeProfile(family); err != nil {
		return nil, err
	}
	only, err := o.selection.choose(family)
	if err != nil {
		return nil, err
	}
	skills, err := stageSkills(ctx, con, family, o.skillsFrom, machine.Host.CacheDir)
	if err != nil {
		return nil, err
	}
	modules, err := stageModules(ctx, con, family, machine.Host.CacheDir)
	if err != nil {
		return nil, err
	}
	defaultTurns, err := o.turns()
	if err != nil {
		return nil, err
	}
	stop, err := o.stopRule()
	if err != nil {
		return nil, err
	}
	prepared, err := local.Prepare(ctx, experiment.Setup{
		Family:          family,
		Only:            only,
		Arms:            arms,
		Runs:            o.runs.Value,
		Seed:            o.seed,
		Shard:           shard,
		Isolation:       o.isolation.Value,
		CellBudget:      o.budget.cell(),
		DollarBudget:    o.budget.cost.Value > 0 || o.budget.armCost.Value > 0,
		AgentTimeout:    o.timeout.Value,
		Judge:           o.judge(),
		Skills:          skills,
		NodeModules:     modules,
		DefaultMaxTurns: defaultTurns,
		StopEarly:       stop,
		KeepRaw:         o.keepRaw,
		Tools:           toolVersions(con),
		Commands:        hookCommands(),
	}, machine)
	var notFound *agent.NotFoundError
	switch {
	case errors.As(err, &notFound):
		return nil, console.Exit(console.ExitIncomplete, err)
	case err != nil:
		return nil, console.Exit(console.ExitUsage, err)
	}
	return prepared, nil
}

// checkJudgeProfile refuses every profile but the family's own.
func (o *runOptions) checkJudgeProfile(family *task.Family) error {
	has := "it"
	if family.JudgeProfile == "" {
		has = "none"
	}
	if o.judgeProfile == "" || o.judgeProfile == "judge" && has == "it" {
		return nil
	}
	return console.Usagef("--judge-profile %s: the profile of a judge is the family's judge.md, called judge; this "+
		"family has %s", o.judgeProfile, has)
}

// judge is who judges; it finds its model where the agents find theirs, unless it has a
// URL of its own.
func (o *runOptions) judge() experiment.JudgeConfig {
	return experiment.JudgeConfig{
		Agent:    o.judgeAgent.Value,
		Model:    o.judgeModel,
		ModelURL: cmp.Or(o.judgeURL, o.modelURL),
		Votes:    o.judgeVotes.Value,
	}
}

func nonEmpty(list []string) []string {
	var kept []string
	for _, item := range list {
		if item != "" {
			kept = append(kept, item)
		}
	}
	return kept
}

// loadFamily reads a family; everything that is wrong with it is reported at once.
func loadFamily(ctx context.Context, con *console.Console, origin string) (*task.Family, error) {
	if parsed, err := task.ParseOrigin(origin); err == nil && parsed.Path != "" {
		origin = con.Path(parsed.Path)
	}
	family, err := task.Load(ctx, origin, task.Options{Environ: con.Environ})
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	if family.Calibration != "" {
		if _, err := report.LoadLabels(family.Calibration); err != nil {
			return nil, console.Exit(console.ExitUsage, err)
		}
	}
	for _, warning := range family.Warnings {
		fmt.Fprintf(con.Stderr, "note: %s\n", warning)
	}
	return family, nil
}

// running is one call of run.
type running struct {
	con      *console.Console
	opts     *runOptions
	prepared *experiment.Prepared
	machine  *local.Machine
	dir      *experiment.Directory
	output   string
	workers  int
}

func (r *running) run(ctx context.Context) (experiment.Outcome, error) {
	for _, note := range r.dir.Notes {
		fmt.Fprintf(r.con.Stderr, "note: %s\n", note)
	}
	estimate := r.dir.Estimate(r.opts.budget.budgets())
	r.announce(estimate)
	if estimate.Cells > 0 {
		r.warnOfIsolation(ctx)
		r.describeOnly()
	}
	work, err := local.WorkDir(r.output)
	if err != nil {
		return experiment.Outcome{}, err
	}
	executor, err := local.New(ctx, local.Config{
		Prepared:  r.prepared,
		Machine:   r.machine,
		Artefacts: r.dir,
		Work:      work,
	})
	if err != nil {
		return experiment.Outcome{}, err
	}
	outcome, err := r.execute(ctx, executor, estimate.Cells)
	return outcome, errors.Join(err, executor.Close())
}

// execute probes the models, warms caches and runs the cells that are left.
func (r *running) execute(ctx context.Context, executor *local.Executor, cells int) (experiment.Outcome, error) {
	if err := r.probe(ctx, executor, cells); err != nil {
		return experiment.Outcome{}, err
	}
	if cells > 0 {
		if err := executor.Warm(ctx); err != nil {
			return experiment.Outcome{}, err
		}
	}
	show := newShow(r.con, r.printer())
	stopNow, forget := secondSignal()
	defer forget()
	outcome, err := experiment.Run(ctx, r.dir, experiment.Config{
		Executor:    executor,
		Concurrency: r.workers,
		Attempts:    r.opts.attempts.Value,
		BreakAfter:  r.opts.breakAfter.Value,
		Budgets:     r.opts.budget.budgets(),
		RetryErrors: r.opts.retryErrors,
		Drain:       r.opts.drain.Value,
		Interrupted: func(cells int) { show.interrupted(cells, r.opts.drain.Value) },
		StopNow:     stopNow,
		Progress:    show.progress,
	})
	show.end()
	return outcome, err
}

// probe finds what cannot work before the first cell.
func (r *running) probe(ctx context.Context, executor *local.Executor, cells int) error {
	if cells == 0 {
		return nil
	}
	check, hint := executor.Probe, "check credentials, model and URL, or skip the models' part of this check with "+
		"--no-probe"
	if r.opts.noProbe {
		check, hint = executor.Check, "no cell could be run like this"
	}
	if !r.opts.noProbe {
		fmt.Fprintf(r.con.Stderr, "waiting for one reply with every arm\n")
	}
	err := check(ctx)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return console.Exitf(console.ExitIncomplete, "%w\nnothing was started; %s", err, hint)
}

// printer writes records to standard output as they are made; nil where the report is printed
// instead.
func (r *running) printer() func(*ledger.Record) {
	if r.textWanted() {
		return nil
	}
	return func(record *ledger.Record) {
		line, err := json.Marshal(record)
		if err == nil {
			fmt.Fprintf(r.con.Stdout, "%s\n", line)
		}
	}
}

func (r *running) textWanted() bool {
	return r.opts.format.Value == "text" || r.opts.format.Value == "" && r.con.StdoutIsTerminal()
}

// announce says what will be run and what it may cost.
func (r *running) announce(e experiment.Estimate) {
	plan := r.dir.Plan
	total := len(plan.Cells())
	fmt.Fprintf(r.con.Stderr, "experiment %s: %s × %s × %s", plan.ID, report.Count(len(plan.Tasks), "task"),
		report.Count(len(plan.Arms), "arm"), report.Count(plan.Runs, "run"))
	if plan.Shard.N > 0 {
		fmt.Fprintf(r.con.Stderr, ", shard %s", plan.Shard)
	}
	fmt.Fprintf(r.con.Stderr, " = %s, %d to do, %d at a time, in %s\n", report.Count(total, "cell"), e.Cells, r.workers,
		r.output)
	switch {
	case e.Cells == 0:
	case e.Known:
		fmt.Fprintf(r.con.Stderr, "estimate: $%.2f, up to $%.2f", e.USD, e.USDHigh)
	default:
		fmt.Fprint(r.con.Stderr, "estimate: unknown until every arm has finished a cell")
	}
	if e.Cells > 0 {
		if e.AtMost > 0 {
			fmt.Fprintf(r.con.Stderr, "; at most $%.2f by the budgets", e.AtMost)
		}
		fmt.Fprintln(r.con.Stderr)
	}
}

// warnOfIsolation says before anything is spent that agents will not be isolated, and how to change
// that.
func (r *running) warnOfIsolation(ctx context.Context) {
	reasons := map[string]int{}
	for i := range r.prepared.Family.Tasks {
		if why := workspace.NotIsolated(ctx, r.prepared.Isolation, &r.prepared.Family.Tasks[i]); why != "" {
			reasons[why]++
		}
	}
	for why, tasks := range reasons {
		fmt.Fprintf(r.con.Stderr, "warning: the runs of %s are not isolated: %s\n"+
			"  their agents can read hidden tests, other runs and your files (docs/security.md)\n",
			report.Count(tasks, "task"), why)
	}
}

// describeOnly says, before anything is spent, that an experiment is too small for a claim.
func (r *running) describeOnly() {
	if plan := r.dir.Plan; len(plan.Arms) > 1 && len(plan.Tasks) < stats.MinClaimTasks {
		fmt.Fprintf(r.con.Stderr, "%s: at least %d are needed for a claim; this run can only describe\n",
			report.Count(len(plan.Tasks), "task"), stats.MinClaimTasks)
	}
}

// explain shows every cause of errors once.
func (r *running) explain(causes []experiment.ErrorCause) {
	for _, cause := range causes {
		fmt.Fprintf(r.con.Stderr, "%s without a verdict (%s): %s\n", report.Count(cause.Cells, "cell"), cause.Class,
			display.CutRunes(display.Line(cause.Message), 400))
		if hint := wayOut[cause.Class]; hint != "" {
			fmt.Fprintf(r.con.Stderr, "  %s\n", hint)
		}
	}
}

// wayOut says what to do about a class of errors.
var wayOut = map[string]string{
	ledger.ErrorSetup:      "the workspace could not be made: mend the family, or see what is missing with fit doctor",
	ledger.ErrorPreflight:  "the task's preflight hook fails without an agent: try fit-benchmark lint --family FAMILY",
	ledger.ErrorProvider:   "the model's service failed: wait, lower --concurrency, then --retry-errors",
	ledger.ErrorAgentStart: "the agent got no reply from its model: check the model's name, --model-url and fit doctor",
	ledger.ErrorAuth:       "check the credentials with fit doctor",
	ledger.ErrorGrader:     "the grader is broken or flaky: try fit-benchmark lint --family FAMILY --repeat 5",
	ledger.ErrorJudge:      "the judge did not conclude: see its trace, or give another --judge-model",
	ledger.ErrorSandbox:    "the sandbox stopped working: see fit doctor",
	ledger.ErrorResources:  "make room, then run the same command again",
}

// conclude prints the report, writes the summary, and turns the outcome into an exit code.
func (r *running) conclude(outcome experiment.Outcome, ks []int) error {
	if outcome.Progress.Total == 0 {
		fmt.Fprintf(r.con.Stderr, "note: shard %s selects no cells\n", r.dir.Plan.Shard)
		return nil
	}
	built, err := r.report(ks)
	if err != nil {
		return err
	}
	r.explain(outcome.Causes)
	switch outcome.Status {
	case experiment.Complete, experiment.Decided:
		if outcome.Reason != "" {
			fmt.Fprintf(r.con.Stderr, "%s\n", outcome.Reason)
		}
		return r.opts.gates.check(built)
	case experiment.OverBudget:
		return console.Exitf(console.ExitBudget, "stopped by budget: %s", outcome.Reason)
	case experiment.Interrupted:
		return console.Exitf(console.ExitInterrupted, "%s", outcome.Reason)
	default:
		return console.Exitf(console.ExitIncomplete, "%s", outcome.Reason)
	}
}

func (r *running) report(ks []int) (*report.Report, error) {
	found, err := loadResults(r.con, []string{r.output}, false)
	if err != nil {
		return nil, err
	}
	found.keepToShard()
	built, err := found.build(ks, true)
	if err != nil {
		return nil, err
	}
	comparison, err := answerOf(built, report.CompareConfig{Seed: r.opts.seed, Alpha: r.opts.alpha})
	if err != nil {
		fmt.Fprintf(r.con.Stderr, "note: %v\n", err)
	}
	if r.textWanted() {
		if err := printReport(r.con.Stdout, built, comparison, ks); err != nil {
			return nil, err
		}
	}
	if r.opts.metrics != "" {
		if err := built.AppendMetrics(r.con.Path(r.opts.metrics)); err != nil {
			return nil, err
		}
	}
	if r.opts.summary {
		return built, appendSummary(r.con, func(w io.Writer) error {
			if comparison != nil {
				if err := comparison.Markdown(w); err != nil {
					return err
				}
				fmt.Fprintln(w)
			}
			return built.Markdown(w, ks, report.Full)
		})
	}
	return built, nil
}

func printReport(w io.Writer, built *report.Report, comparison answer, ks []int) error {
	if err := built.Text(w, ks); err != nil {
		return err
	}
	if comparison == nil {
		return nil
	}
	fmt.Fprintln(w)
	return comparison.Text(w)
}

// summaryVariable names the file that GitHub shows as the summary of a step.
const summaryVariable = "GITHUB_STEP_SUMMARY"

var errNoSummary = console.Usagef("--summary writes to the file that %s names, which is not set", summaryVariable)

// appendSummary adds to the page that GitHub shows for a step.
func appendSummary(con *console.Console, write func(io.Writer) error) error {
	path := con.Getenv(summaryVariable)
	if path == "" {
		return errNoSummary
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("write the step summary: %w", err)
	}
	err = write(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the step summary: %w", err)
	}
	return nil
}
