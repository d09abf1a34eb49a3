package benchmarkcli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
)

func newList(con *console.Console) *cobra.Command {
	var family string
	var verify, written bool
	var key string
	var format console.Format
	var from experimentcli.From
	command := &cobra.Command{
		Use:   "list [DIR]",
		Short: "List the tasks of a family, or the cells of a run directory or of results of another harness",
		Example: `  fit-benchmark list --family my-family
  fit-benchmark list benchmark-runs
  fit-benchmark list benchmark-runs --verify
  fit-benchmark list benchmark-runs --notes --format json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			switch {
			case family != "" && len(args) == 0:
				return listFamily(command.Context(), con, family, format.Value)
			case family == "" && len(args) == 1 && written:
				return listNotes(con, args[0], format.JSON())
			case family == "" && len(args) == 1 && verify:
				return verifyRuns(con, args[0], key)
			case family == "" && len(args) == 1:
				return listRuns(con, args[0], format.Value, from.Options())
			default:
				return console.Usagef("choose one thing to list: --family FAMILY, or a run directory")
			}
		},
	}
	command.Flags().StringVar(&family, "family", "", "directory of the task family, or url//subdir@ref")
	command.Flags().BoolVar(&verify, "verify", false,
		"compare traces, diffs and graders' output of a run directory with the hashes in its ledger instead; exit 1 "+
			"if one differs")
	command.Flags().BoolVar(&written, "notes", false,
		"list the notes, tags and saved views that people wrote in fit view instead, with who signed each")
	command.Flags().StringVar(&key, "key", "",
		"with --verify: the key that must have signed the ledger (default: yours)")
	format.Register(command.Flags(), "output format")
	from.Register(command.Flags())
	return command
}

// verifyRuns compares the artefacts of a run directory, or of a directory of shards, with what the
// ledgers say about them.
func verifyRuns(con *console.Console, dir, key string) error {
	// a ledger that does not verify vouches for nothing
	found, err := readResults(con, []string{dir}, false, nil)
	if err == nil {
		err = found.needRecords(dir)
	}
	if err != nil {
		return err
	}
	looked, wrong := 0, 0
	for _, read := range found.Ledgers {
		if err := checkSigner(con, read, key); err != nil {
			return err
		}
		n, problems := local.CheckArtefacts(filepath.Dir(read.Path), read.Contents.Records)
		looked, wrong = looked+n, wrong+len(problems)
		for _, problem := range problems {
			fmt.Fprintln(con.Stdout, display.Text(problem))
		}
	}
	fmt.Fprintf(con.Stdout, "%d of %s match the record\n", looked-wrong, report.Count(looked, "file"))
	if wrong > 0 {
		return console.Exitf(console.ExitNegative, "%d of %s differ from the ledger", wrong,
			report.Count(looked, "file"))
	}
	return nil
}

// listedTask is a task as list prints it.
type listedTask struct {
	ID       string   `json:"id"`
	Checks   []string `json:"checks"`
	Hooks    []string `json:"hooks,omitempty"`
	Judge    bool     `json:"judge"`
	Solution bool     `json:"solution"`
	Tags     []string `json:"tags,omitempty"`
	Cluster  string   `json:"cluster,omitempty"`
	Visible  string   `json:"visible"`
	Hidden   string   `json:"hidden"`
}

func listFamily(ctx context.Context, con *console.Console, origin, format string) error {
	family, err := loadFamily(ctx, con, origin)
	if err != nil {
		return err
	}
	var tasks []listedTask
	for i := range family.Tasks {
		t := &family.Tasks[i]
		one := listedTask{
			ID:       t.ID,
			Checks:   t.Settings.Checks,
			Judge:    t.JudgeTemplate != "",
			Solution: t.HasSolution() || solves(t),
			Tags:     t.Settings.Tags,
			Cluster:  t.Settings.Cluster,
			Visible:  t.Digest.Visible,
			Hidden:   t.Digest.Hidden,
		}
		if t.Hooks.Preflight != "" {
			one.Hooks = append(one.Hooks, "preflight")
		}
		if t.Hooks.Invariants != "" {
			one.Hooks = append(one.Hooks, "invariants")
		}
		if t.Suite != nil {
			for _, check := range t.Suite.Checks {
				one.Checks = append(one.Checks, check.Name)
			}
		}
		tasks = append(tasks, one)
	}
	if format == "json" {
		return jsonenc.WriteIndented(con.Stdout,
			map[string]any{"name": family.Name, "revision": family.Revision, "tasks": tasks})
	}
	if err := con.Foldedf("%s, %s\n", display.Line(family.Name), family.Revision); err != nil {
		return err
	}
	table := con.Table()
	fmt.Fprintln(table, "task\thooks\tchecks\tjudge\tsolution\ttags")
	for _, t := range tasks {
		fmt.Fprintf(table, "%s\t%s\t%s\t%t\t%t\t%s\n", display.Name(t.ID), strings.Join(t.Hooks, ","),
			display.Name(strings.Join(t.Checks, ",")), t.Judge, t.Solution, display.Name(strings.Join(t.Tags, ",")))
	}
	return table.Flush()
}

func listRuns(con *console.Console, dir, format string, from *foreign.Options) error {
	found, err := loadResults(con, []string{dir}, false, from)
	if err != nil {
		return err
	}
	last := ledger.Last(found.Records)
	if format == "json" {
		return jsonenc.WriteIndented(con.Stdout, last)
	}
	table := con.Table()
	fmt.Fprintln(table, "task\tarm\trun\tattempt\tverdict\tturns\tdirectory")
	for _, r := range last {
		verdict := r.Verdict
		if r.ErrorClass != "" {
			verdict += " (" + r.ErrorClass + ")"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%d\t%s\n", display.Name(r.TaskID), display.Name(r.Arm), r.RunIndex,
			r.Attempt, display.Name(verdict), r.Turns, display.Name(r.RunDir))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, plan := range found.Plans {
		fmt.Fprintf(con.Stdout, "experiment %s: %d of %d cells recorded\n", plan.ID, len(last), len(plan.Cells()))
	}
	return nil
}

func newClean(con *console.Console) *cobra.Command {
	var dryRun, images bool
	command := &cobra.Command{
		Use:   "clean [DIR]",
		Short: "Remove stored working directories, and stale workspaces of killed processes",
		Example: `  fit-benchmark clean benchmark-runs --dry-run
  fit-benchmark clean benchmark-runs`,
		Long: `Remove the stored working directories of runs, stale workspaces and containers of killed processes, and
with --images the images that were built for tasks. Records, traces and diffs stay; runs whose final directory is gone
cannot be graded again.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			dir := defaultOutput
			if len(args) == 1 {
				dir = args[0]
			}
			_, err := os.Stat(con.Path(dir))
			if len(args) == 1 || !errors.Is(err, fs.ErrNotExist) { // else there are only containers
				if err := runClean(con, dir, dryRun); err != nil {
					return err
				}
			}
			if dryRun {
				return nil
			}
			return cleanContainers(command.Context(), con, images)
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "dry run: only print what would be removed")
	command.Flags().BoolVar(&images, "images", false, "also remove images built for tasks")
	return command
}

// cleanContainers removes what killed processes have left with the container engines of this
// machine.
func cleanContainers(ctx context.Context, con *console.Console, images bool) error {
	for _, kind := range []string{sandbox.IsolationPodman, sandbox.IsolationDocker} {
		engine, err := sandbox.FindEngine(ctx, kind)
		if err != nil {
			continue // it is not installed, or nobody answers: then it has left nothing
		}
		count, err := engine.Sweep(ctx)
		if err != nil {
			return err
		}
		built := 0
		if images {
			if built, err = engine.RemoveImages(ctx); err != nil {
				return err
			}
		}
		if count+built > 0 {
			fmt.Fprintf(con.Stdout, "%s: %d containers, %d images\n", kind, count, built)
		}
	}
	return nil
}

func runClean(con *console.Console, dir string, dryRun bool) error {
	path, err := absolute(con, dir)
	if err != nil {
		return err
	}
	plan, err := experiment.ReadPlan(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return console.Usagef("%s is not a run directory: it has no %s", dir, experiment.PlanFile)
		}
		return err
	}
	opened, err := experiment.OpenDirectory(path, plan, nil) // nobody may be at work in it
	if err != nil {
		return experimentcli.DirectoryError(err)
	}
	defer opened.Close()
	// runs/<task>/<arm>/<run>/<attempt>/cwd; nothing deeper is looked at, because agents wrote it.
	kept := glob.Below(path, experiment.RunsDir+"/*/*/*/*/"+local.FinalDir)
	work, err := local.WorkDir(path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(work); err == nil {
		kept = append(kept, work)
	}
	for _, one := range kept {
		fmt.Fprintln(con.Stdout, one)
		if dryRun {
			continue
		}
		if err := scratch.RemoveAll(one); err != nil {
			return fmt.Errorf("clean: %w", err)
		}
	}
	what := "directories"
	if len(kept) == 1 {
		what = "directory"
	}
	fmt.Fprintf(con.Stderr, "%d %s %s\n", len(kept), what,
		map[bool]string{true: "would be removed", false: "removed"}[dryRun])
	return nil
}

// solves reports whether a Harbor task, or every step of it, has a solution.
func solves(t *task.Task) bool {
	if len(t.Steps) == 0 {
		return t.Verifier != nil && t.Verifier.Solution != ""
	}
	return !slices.ContainsFunc(t.Steps, func(step task.Step) bool { return step.Verifier.Solution == "" })
}
