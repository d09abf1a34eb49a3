package benchmarkcli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/task"
)

type lintOptions struct {
	family    string
	faults    string
	selection selection
	isolation experimentcli.Isolation
	repeat    console.Count
	format    console.Format
}

// finding is one thing that is wrong with a family, or that nobody could check.
type finding struct {
	Task    string `json:"task,omitempty"`
	Level   string `json:"level"` // error or warning
	Message string `json:"message"`
}

func newLint(con *console.Console) *cobra.Command {
	opts := lintOptions{
		selection: newSelection(),
		repeat:    console.Count{Value: 2, Min: 1},
	}
	command := &cobra.Command{
		Use:   "lint",
		Short: "Check that graders fail on the untouched scaffold and pass on the reference solution",
		Long: `Check a family before you spend money on it. The graders of every task run without an agent: on the
untouched scaffold, where they must fail, and several times on the reference solution (tasks/<id>/solution), where
they must pass every time: this finds flaky checks. Hooks that are not executable, unknown placeholders, and checks
that pass without any work are errors. The exit code is 1 if there is an error.`,
		Example: `  fit-benchmark lint --family my-family
  fit-benchmark lint --family my-family --task 'fix-*' --repeat 5
  fit-benchmark lint --faults plan.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 1 {
				opts.family = args[0]
			}
			return runLint(command.Context(), con, &opts)
		},
	}
	flags := command.Flags()
	flags.StringVar(&opts.family, "family", "", "directory of the task family, or url//subdir@ref")
	opts.selection.register(flags)
	flags.StringVar(&opts.faults, "faults", "", "check this fault plan too (YAML); alone, check only it")
	opts.isolation.Register(flags)
	flags.Var(&opts.repeat, "repeat", "how often to grade the reference solution")
	opts.format.Register(flags, "output format")
	return command
}

func runLint(ctx context.Context, con *console.Console, opts *lintOptions) error {
	if opts.faults != "" {
		if _, err := gateway.LoadFaults(con.Path(opts.faults)); err != nil {
			return console.Exit(console.ExitNegative, err)
		}
		if opts.family == "" {
			fmt.Fprintf(con.Stderr, "%s is a valid fault plan\n", opts.faults)
			return nil
		}
	}
	if opts.family == "" {
		return console.Usagef("--family is required: the directory of the tasks")
	}
	family, err := loadFamily(ctx, con, opts.family)
	if err != nil {
		if _, statErr := os.Stat(con.Path(opts.family)); statErr != nil {
			return err // there is nothing to check
		}
		return console.Exit(console.ExitNegative, err)
	}
	only, err := opts.selection.choose(family)
	if err != nil {
		return err
	}
	bench, clear, err := openBench(con, family, &opts.isolation, "fit-lint-")
	if err != nil {
		return err
	}
	defer clear()
	l := &linter{bench: bench, opts: opts}
	var chosen []*taskLinter
	for i := range family.Tasks {
		if t := &family.Tasks[i]; only == nil || slices.Contains(only, t.ID) {
			chosen = append(chosen, &taskLinter{linter: l, t: t, number: i})
		}
	}
	if err := l.tasks(ctx, chosen); err != nil {
		return err
	}
	for _, one := range chosen {
		l.findings = append(l.findings, one.findings...)
	}
	l.copies(chosen)
	l.datasetDoubts()
	return l.conclude(len(chosen))
}

// copies warns of tasks that are the same but for their names, and of those that share their files
// and tests and differ in what they ask.
func (l *linter) copies(chosen []*taskLinter) {
	same, near := map[task.Digest]string{}, map[string]string{}
	for _, one := range chosen {
		first, copied := same[one.t.Digest]
		shared := one.t.Shared()
		other, alike := near[shared]
		switch {
		case copied:
			l.findings = append(l.findings, finding{Level: "warning", Task: one.t.ID, Message: fmt.Sprintf(
				"a copy of task %s: together they count as one", first)})
		case alike && shared != "":
			l.findings = append(l.findings, finding{Level: "warning", Task: one.t.ID, Message: fmt.Sprintf(
				"nearly a copy of task %s, with the same files and tests; name one cluster for both, if who solves "+
					"one solves the other", other)})
		default:
			same[one.t.Digest], near[shared] = one.t.ID, one.t.ID
		}
	}
}

type linter struct {
	*bench
	opts     *lintOptions
	findings []finding
}

// tasks checks tasks side by side, and shows how far it is.
func (l *linter) tasks(ctx context.Context, chosen []*taskLinter) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	var mu sync.Mutex
	done := 0
	for _, one := range chosen {
		group.Go(func() error {
			began := time.Now()
			if err := one.check(ctx); err != nil {
				return fmt.Errorf("lint task %s: %w", one.t.ID, err)
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			took := display.Duration(time.Since(began))
			fmt.Fprintf(l.con.Stderr, "%d/%d %s (%s)\n", done, len(chosen), one.t.ID, took)
			return nil
		})
	}
	return group.Wait()
}

func (l *linter) conclude(tasks int) error {
	counts := map[string]int{}
	for _, f := range l.findings {
		counts[f.Level]++
	}
	errs := counts["error"]
	if l.opts.format.JSON() {
		if l.findings == nil {
			l.findings = []finding{}
		}
		if err := jsonenc.WriteIndented(l.con.Stdout,
			map[string]any{"tasks": tasks, "errors": errs, "findings": l.findings}); err != nil {
			return err
		}
	} else {
		for _, f := range l.findings {
			about := cmp.Or(f.Task, "family.yaml") // of no task: it is true for all samples
			text := display.Text(f.Message)
			if err := l.con.Foldedf("%s: %s: %s\n", display.Name(about), f.Level, text); err != nil {
				return err
			}
		}
		fmt.Fprintf(l.con.Stdout, "%s, %s, %s\n", report.Count(tasks, "task"), report.Count(errs, "error"),
			report.Count(counts["warning"], "warning"))
	}
	if errs > 0 {
		return console.Exit(console.ExitNegative, nil)
	}
	return nil
}
