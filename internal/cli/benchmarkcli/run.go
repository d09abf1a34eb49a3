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
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/metrics"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
)

// NewRun returns the command fit-benchmark run. before, if set, is called first and returns the URL
// of the fleet that the cells run on.
func NewRun(con *console.Console, registry *agent.Registry, before func(context.Context) (string, error),
) *cobra.Command {
	var opts runOptions
	command := &cobra.Command{
		Use:   "run",
		Short: "Run every task with every arm N times; rerun to resume",
		Long: `Run every task with every arm N times and record each result. Rerun the same command to resume; more
runs, tasks or arms are added to the existing results.

Before the first cell, every arm's model must reply once. After Ctrl-C, running cells have some time to finish
(--drain); a second Ctrl-C stops immediately.`,
		Example: fmt.Sprintf(`  fit-benchmark run --family benchmarks/todo --runs 10 --agent %s
  fit-benchmark run --family benchmarks/todo --arms arms.yaml --max-cost-usd 20 --output runs/skill-v2
  fit-benchmark run --family benchmarks/todo --task 'fix-*' --tag quick --limit 3
  fit-benchmark run --family https://example.com/benchmarks.git//todo@v1.2 --shard 1/4`, registry.Examples(1)...),
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if before != nil {
				var err error
				if opts.Fleet, err = before(command.Context()); err != nil {
					return err
				}
			}
			return runRun(command.Context(), con, registry, &opts, command.Flags())
		},
	}
	opts.register(command.Flags(), registry)
	return command
}

func runRun(ctx context.Context, con *console.Console, registry *agent.Registry, opts *runOptions,
	flags *pflag.FlagSet,
) error {
	if opts.family == "" { // before a fleet is started
		return console.Usagef("--family is required: the directory of the tasks, or url//subdir@ref")
	}
	if opts.Output == "" {
		return console.Usagef("--output must name a directory for the results")
	}
	machine := experimentcli.Machine(con, registry)
	machine.OutputLimit = opts.OutputLimit()
	policy, fleet, err := opts.Begin(ctx, con, machine)
	if err != nil {
		return err
	}
	defer fleet.Close()
	if policy.Replay != "" && !isFile(filepath.Join(policy.Replay, experiment.LedgerFile)) {
		return console.Usagef("--replay must name a run directory: %s has no %s", policy.Replay, experiment.LedgerFile)
	}
	prepared, err := opts.prepare(ctx, con, machine, flags, policy)
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
	run := &running{opts: opts, con: con, kChosen: flags.Changed("k")}
	if run.Run, err = opts.Run(con, machine, prepared, fleet); err != nil {
		return err
	}
	if run.Output, err = filepath.Abs(con.Path(opts.Output)); err != nil {
		return err
	}
	run.Record = run.printer()
	if opts.DryRun {
		return run.dryRun(ctx)
	}
	if run.Dir, err = experimentcli.OpenDirectory(con, run.Output, prepared.Plan, machine.Redactor); err != nil {
		return err
	}
	if err := keepLabels(prepared.Family, run.Output); err != nil {
		return errors.Join(err, run.Dir.Close())
	}
	outcome, err := run.Do(ctx)
	err = cmp.Or(err, run.Dir.Close())
	if err != nil {
		return err
	}
	return run.conclude(ctx, outcome, ks)
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

// prepare checks everything before a cent is spent.
func (o *runOptions) prepare(ctx context.Context, con *console.Console, machine *local.Machine,
	flags *pflag.FlagSet, policy gateway.Policy,
) (*experiment.Prepared, error) {
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
	if arms, err = o.addControls(con, arms, family.Dir); err != nil {
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
	stop, err := o.stopRule()
	if err != nil {
		return nil, err
	}
	setup := o.Setup(con, arms, policy)
	setup.Family, setup.Only, setup.Selected = family, only, o.selection.String()
	setup.Shard, setup.StopEarly = shard, stop
	if setup.Question, err = o.question(o.alpha); err != nil {
		return nil, err
	}
	setup.Judge, setup.Skills, setup.NodeModules = o.judge(con), skills, modules
	prepared, err := local.Prepare(ctx, setup, machine)
	if err != nil {
		return nil, experimentcli.PrepareError(ctx, err)
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
func (o *runOptions) judge(con *console.Console) experiment.JudgeConfig {
	return experiment.JudgeConfig{
		Agent: o.judgeAgent.Value,
		Model: o.judgeModel,

		SameFamily: o.sameFamily,
		ModelURL:   cmp.Or(o.judgeURL, o.ModelURL, con.Getenv("FIT_MODEL_URL")),
		Votes:      o.judgeVotes.Value,
	}
}

func nonEmpty(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(item string) bool { return item == "" })
}

// loadFamily reads a family; everything that is wrong with it is reported at once.
func loadFamily(ctx context.Context, con *console.Console, origin string) (*task.Family, error) {
	if parsed, err := task.ParseOrigin(origin); err == nil && parsed.Path != "" {
		origin = con.Path(parsed.Path)
	}
	family, err := task.Load(ctx, origin, task.Options{Environ: con.Environ})
	if err != nil {
		return nil, experimentcli.PrepareError(ctx, err)
	}
	if family.Calibration != "" {
		if _, err := judge.LoadLabels(family.Calibration); err != nil {
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
	experimentcli.Run
	con     *console.Console
	opts    *runOptions
	kChosen bool // by the user
}

// dryRun shows what the run would do, after a rehearsal.
func (r *running) dryRun(ctx context.Context) error {
	if err := experimentcli.DryRun(ctx, &r.Run); err != nil {
		return err
	}
	if r.opts.Format.JSON() {
		return jsonenc.WriteIndented(r.con.Stdout, r.Prepared.Plan)
	}
	experimentcli.ShowPlan(r.con, r.Prepared.Plan, r.opts.Output)
	return nil
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
	return r.opts.Format.Value == "text" || r.opts.Format.Value == "" && r.con.StdoutIsTerminal()
}

// conclude prints the report, writes the summary, and turns the outcome into an exit code.
func (r *running) conclude(ctx context.Context, outcome experiment.Outcome, ks []int) error {
	if outcome.Progress.Total == 0 {
		fmt.Fprintf(r.con.Stderr, "note: shard %s selects no cells\n", r.Dir.Plan.Shard)
		return nil
	}
	built, err := r.report(context.WithoutCancel(ctx), ks)
	if err != nil {
		return err
	}
	if err := r.Conclude(outcome); err != nil {
		return err
	}
	return r.opts.gates.check(built, &r.opts.Proof)
}

func (r *running) report(ctx context.Context, ks []int) (*report.Report, error) {
	found, err := readResults(r.con, []string{r.Output}, false, nil) // run has said whether it signs them
	if err != nil {
		return nil, err
	}
	found.Signers(experimentcli.OwnKey(r.con))
	found.Allow = r.opts.Proof.Allow.List()
	found.KeepToShard()
	built, err := found.build(ctx, experimentcli.Auditor(r.con, r.Machine.Registry), ks, true)
	if err != nil {
		return nil, err
	}
	comparison, err := comparisonOf(built, report.CompareConfig{
		Seed:  r.opts.Seed,
		Allow: r.opts.Proof.Allow.List(),
	})
	if err != nil {
		fmt.Fprintf(r.con.Stderr, "note: %v\n", err)
	}
	if r.textWanted() {
		shown := shownOf(r.con, built, ks, r.kChosen)
		print := func(w io.Writer) error { return printReport(w, built, comparison, shown) }
		if err := r.con.Folded(print); err != nil {
			return nil, err
		}
	}
	if r.opts.metrics != "" {
		if err := metrics.Append(r.con.Path(r.opts.metrics), built); err != nil {
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

func printReport(w io.Writer, built *report.Report, compared comparison, ks []int) error {
	if err := built.Text(w, ks); err != nil {
		return err
	}
	if compared == nil {
		return nil
	}
	fmt.Fprintln(w)
	return compared.Text(w)
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
