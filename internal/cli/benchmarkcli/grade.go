package benchmarkcli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
)

type gradeOptions struct {
	family, task, dir, output string
	predictions, logs         string
	isolation                 experimentcli.Isolation
}

// gradeRecord is what grade prints about a stored run.
type gradeRecord struct {
	TaskID      string              `json:"taskId"`
	Grade       ledger.Grade        `json:"grade"`
	Score       *float64            `json:"score,omitempty"`
	Invariants  ledger.Invariants   `json:"invariants"`
	HiddenTests *ledger.HiddenTests `json:"hiddenTests,omitempty"`
	ExitCode    int                 `json:"exitCode"`
	// Arm, RunIndex and Attempt are there when a whole run directory is graded, Before is the
	// verdict that it has recorded.
	Arm      string `json:"arm,omitempty"`
	RunIndex *int   `json:"runIndex,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Before   string `json:"before,omitempty"`
}

func newGrade(con *console.Console, registry *agent.Registry) *cobra.Command {
	var opts gradeOptions
	var older olderDirs
	command := &cobra.Command{
		Use:   "grade [DIR]",
		Short: "Regrade stored runs, with their services, or grade SWE-bench predictions",
		Long: `Grade stored runs again: every run of a run directory that has a verdict, or none because its grader was
broken, or, with --task, one attempt, whose directory has the agent's final directory as cwd. Services that the
preflight hook starts are started again on a copy. Stored files do not change, and the judge is not asked again.

With --predictions, grade patches that other agents made for the tasks of a SWE-bench family (.jsonl, or .json with a
list or an object); the report has its fields. Empty patches are counted but not run; a patch that does not apply, or
whose tests do not finish, is an error.

The exit code is 0 if the run passes, if all verdicts of a run directory are confirmed, or if all predictions were
graded, whatever the result; otherwise it is 1, or 3 if the tests of a prediction do not run without its patch either.`,
		Example: `  fit-benchmark grade --family my-family --task fix-add benchmark-runs/runs/fix-add/default/0/1
  fit-benchmark grade --family my-family benchmark-runs
  fit-benchmark grade --family rows.jsonl --predictions predictions.jsonl --output report.json`,
		RunE: func(command *cobra.Command, args []string) error {
			dirs := slices.Concat(older.dirs, args)
			if len(nonEmpty(append(dirs, opts.predictions))) != 1 {
				return console.Usagef("choose one thing to grade: a run directory, the directory of an attempt and " +
					"its --task, or --predictions for a file of patches")
			}
			if len(dirs) > 0 {
				opts.dir = dirs[0]
			}
			return runGrade(command.Context(), con, &opts, registry)
		},
	}
	flags := command.Flags()
	flags.StringVar(&opts.family, "family", "", "directory of the task family, or url//subdir@ref")
	flags.StringVar(&opts.task, "task", "", "task of the attempt whose directory DIR is")
	older.register(flags, "run-dir", "input")
	flags.StringVar(&opts.predictions, "predictions", "", "file of SWE-bench predictions to grade")
	flags.StringVar(&opts.logs, "logs", "",
		"with --predictions: directory for the patch, the log and the report of each task")
	flags.StringVar(&opts.output, "output", "", "file to write instead of standard output")
	opts.isolation.Register(flags)
	return command
}

func runGrade(ctx context.Context, con *console.Console, opts *gradeOptions, registry *agent.Registry) error {
	switch {
	case opts.family == "":
		return console.Usagef("--family is required")
	case opts.logs != "" && opts.predictions == "":
		return console.Usagef("--logs is for --predictions; run directories have their logs")
	}
	family, err := loadFamily(ctx, con, opts.family)
	if err != nil {
		return err
	}
	bench, clear, err := openBench(con, family, &opts.isolation, "fit-grade-")
	if err != nil {
		return err
	}
	defer clear()
	g := &grader{
		bench:    bench,
		opts:     opts,
		baseline: grade.NewBaseline(),
		redactor: experimentcli.Redactor(con, registry),
		registry: registry,
	}
	switch {
	case opts.predictions != "":
		return g.predictions(ctx)
	case opts.task == "":
		return g.all(ctx)
	}
	return g.one(ctx)
}

type grader struct {
	*bench
	opts     *gradeOptions
	baseline *grade.Baseline
	redactor *redact.Redactor
	registry *agent.Registry
	spaces   int
}

// one grades one attempt.
func (g *grader) one(ctx context.Context) error {
	t, err := g.find(g.opts.task)
	if err != nil {
		return err
	}
	if t.Sample != nil {
		return console.Usagef("answers to samples can be regraded only with the whole run directory, which has " +
			"their records")
	}
	if err := g.checkUnaltered(g.con.Path(g.opts.dir)); err != nil {
		return err
	}
	record, err := g.grade(ctx, t, filepath.Join(g.con.Path(g.opts.dir), local.FinalDir), nil)
	if err != nil {
		return err
	}
	if err := g.print([]gradeRecord{record}); err != nil {
		return err
	}
	switch record.Grade.Verdict {
	case ledger.Pass:
		return nil
	case ledger.Fail:
		return console.Exit(console.ExitNegative, nil)
	default:
		return console.Exitf(console.ExitIncomplete, "the grader reached no verdict: %s", record.Grade.Reason)
	}
}

// checkUnaltered compares the final directory of an attempt with the ledger of the run directory
// that it lies in; without one there is nothing to compare it with.
func (g *grader) checkUnaltered(dir string) error {
	top := filepath.Join(dir, "..", "..", "..", "..", "..") // runs/<task>/<arm>/<run>/<attempt>
	if !isFile(filepath.Join(top, experiment.LedgerFile)) {
		return nil
	}
	found, err := readResults(g.con, []string{top}, false, nil)
	if err != nil {
		return err
	}
	noteSigners(g.con, found.Results)
	inside, err := filepath.Rel(top, dir)
	if err != nil {
		return err
	}
	for _, r := range found.Records {
		if r.RunDir != filepath.ToSlash(inside) || r.Digests.Final == "" {
			continue
		}
		digest, err := experiment.TreeDigest(filepath.Join(dir, local.FinalDir))
		if err == nil && digest != r.Digests.Final {
			return console.Exitf(console.ExitNegative, "%s: the final directory is not the one that was recorded: its "+
				"grade would say nothing about the run", r.Key())
		}
	}
	return nil
}

// all grades every verdict of a run directory again and shows where the answer differs.
func (g *grader) all(ctx context.Context) error {
	found, err := loadResults(g.con, []string{g.opts.dir}, false, nil)
	if err != nil {
		return err
	}
	var records []gradeRecord
	different, altered := 0, 0
	for _, r := range ledger.Last(found.Records) {
		broken := r.Verdict == ledger.Error && r.ErrorClass == ledger.ErrorGrader && r.Container == nil
		if !broken && (r.Grade == nil || r.Verdict == ledger.Error) {
			continue
		}
		t, err := g.find(r.TaskID)
		if err != nil {
			return err
		}
		if t.Verifier != nil && r.Container != nil {
			return goneContainer(t)
		}
		final := filepath.Join(g.con.Path(g.opts.dir), filepath.FromSlash(r.RunDir), local.FinalDir)
		digest, err := experiment.TreeDigest(final)
		if err == nil && r.Digests.Final != "" && digest != r.Digests.Final {
			altered++
			fmt.Fprintf(g.con.Stderr, "%s: the final directory is not the one that was recorded\n", r.Key())
			continue
		}
		var answer *grade.Answer
		if t.Sample != nil {
			if answer, err = local.StoredAnswer(g.con.Path(g.opts.dir), &r, g.registry.Dialects()); err != nil {
				return err
			}
		}
		record, err := g.grade(ctx, t, final, answer)
		if err != nil {
			return err
		}
		run := r.RunIndex
		record.Arm, record.RunIndex, record.Attempt, record.Before = r.Arm, &run, r.Attempt, r.Verdict
		if !broken { // a judge may have decided, who is not asked again
			record.Before = r.Grade.Verdict
		}
		if record.Before != record.Grade.Verdict {
			different++
			fmt.Fprintf(g.con.Stderr, "%s: was %s, is %s now: %s\n", r.Key(), record.Before, record.Grade.Verdict,
				record.Grade.Reason)
		}
		records = append(records, record)
	}
	if altered > 0 {
		return console.Exitf(console.ExitNegative, "%d of the final directories changed since they were recorded: "+
			"their grades would say nothing about the runs", altered)
	}
	if len(records) == 0 {
		return console.Exitf(console.ExitIncomplete, "%s has no run that a grader has seen", g.opts.dir)
	}
	if err := g.print(records); err != nil {
		return err
	}
	fmt.Fprintf(g.con.Stderr, "%s graded again, %d differ\n", report.Count(len(records), "run"), different)
	if different > 0 {
		return console.Exit(console.ExitNegative, nil)
	}
	return nil
}

func (g *grader) find(id string) (*task.Task, error) {
	known := make([]string, 0, len(g.family.Tasks))
	for i := range g.family.Tasks {
		if g.family.Tasks[i].ID == id {
			return &g.family.Tasks[i], nil
		}
		known = append(known, g.family.Tasks[i].ID)
	}
	return nil, console.Exit(console.ExitUsage, &local.UnknownTaskError{ID: id, Known: known})
}

// goneContainer refuses to grade what is more than a directory.
func goneContainer(t *task.Task) error {
	return console.Usagef("task %s cannot be regraded: its container no longer exists; rerun the task", t.ID)
}

// grade looks at a stored final directory again.
func (g *grader) grade(ctx context.Context, t *task.Task, final string, answer *grade.Answer) (gradeRecord, error) {
	if t.Verifier != nil && g.isolation != sandbox.IsolationBwrap {
		return gradeRecord{}, goneContainer(t)
	}
	g.spaces++
	cfg := g.space(fmt.Sprintf("w%d", g.spaces), t)
	if info, err := os.Lstat(final); err != nil || !info.IsDir() {
		return gradeRecord{}, console.Usagef("%s is not a directory: the run has no stored final directory, or clean "+
			"has removed it", final)
	}
	if err := g.warm(ctx, cfg); err != nil {
		return gradeRecord{}, err
	}
	result, err := local.GradeStored(ctx, cfg, grade.Config{
		Task:     t,
		Baseline: g.baseline,
		Redactor: g.redactor,
		Answer:   answer,
	}, final)
	if err != nil {
		return gradeRecord{}, err
	}
	return gradeRecord{
		TaskID:      t.ID,
		Grade:       result.Grade,
		Score:       result.Score,
		Invariants:  result.Invariants,
		HiddenTests: result.HiddenTests,
		ExitCode:    result.Invariants.ExitCode,
	}, nil
}

// openOutput opens what is written to.
func (g *grader) openOutput() (io.WriteCloser, error) {
	if g.opts.output == "" {
		return nopCloser{g.con.Stdout}, nil
	}
	file, err := os.Create(g.con.Path(g.opts.output))
	if err != nil {
		return nil, console.Exit(console.ExitUsage, fmt.Errorf("--output: %w", err))
	}
	return file, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// print writes one line of JSON per graded run.
func (g *grader) print(records []gradeRecord) error {
	out, err := g.openOutput()
	if err != nil {
		return err
	}
	defer out.Close()
	for _, record := range records {
		line, err := json.Marshal(record)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", g.redactor.JSON(line)); err != nil {
			return err
		}
	}
	return nil
}
