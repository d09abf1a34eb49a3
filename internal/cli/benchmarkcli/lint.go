package benchmarkcli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/experiment/local"
	"github.com/fit-eval/fit/grade"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/report"
	"github.com/fit-eval/fit/task"
	"github.com/fit-eval/fit/workspace"
)

type lintOptions struct {
	family    string
	selection selection
	isolation console.Choice
	repeat    console.Count
	format    console.Choice
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
		isolation: console.Choice{Choices: []string{"none", "bwrap"}},
		repeat:    console.Count{Value: 2, Min: 1},
		format: console.Choice{
			Value:   "text",
			Choices: []string{"text", "json"},
		},
	}
	command := &cobra.Command{
		Use:   "lint",
		Short: "Check that graders fail on the untouched scaffold and pass on the reference solution",
		Long: `Check a family before you spend money on it. The graders of every task are run without an agent: on the untouched scaffold, where they must fail, and on the reference
solution (tasks/<id>/solution), where they must pass, several times, to find checks that do not always say the same. Hooks that are not executable, placeholders
that nobody fills in, and checks that pass without any work are errors. Exit code 1 if there is an error.`,
		Example: `  fit-benchmark lint --family my-family
  fit-benchmark lint --family my-family --task 'fix-*' --repeat 5`,
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
	flags.Var(&opts.isolation, "isolation", "how graders are isolated")
	flags.Var(&opts.repeat, "repeat", "how often to grade the reference solution")
	flags.Var(&opts.format, "format", "how to print it")
	return command
}

func runLint(ctx context.Context, con *console.Console, opts *lintOptions) error {
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
	work, err := os.MkdirTemp("", "fit-lint-")
	if err != nil {
		return err
	}
	defer func() { _ = local.RemoveAll(work) }()
	l := &linter{
		con:    con,
		opts:   opts,
		family: family,
		work:   work,
		ports:  &workspace.Ports{},
	}
	if cache := experimentcli.CacheDir(); cache != "" {
		l.caches = workspace.NewCaches(filepath.Join(cache, "build"))
	}
	chosen := 0
	for i := range family.Tasks {
		t := &family.Tasks[i]
		if only != nil && !slices.Contains(only, t.ID) {
			continue
		}
		chosen++
		began := time.Now()
		if err := l.task(ctx, t); err != nil {
			return fmt.Errorf("lint task %s: %w", t.ID, err)
		}
		total := len(family.Tasks)
		if only != nil {
			total = len(only)
		}
		fmt.Fprintf(con.Stderr, "%d/%d %s (%s)\n", chosen, total, t.ID, report.Duration(time.Since(began)))
	}
	return l.conclude(chosen)
}

type linter struct {
	con      *console.Console
	opts     *lintOptions
	family   *task.Family
	work     string
	ports    *workspace.Ports
	caches   *workspace.Caches
	findings []finding
	spaces   int
	// undeclared are the tasks that were reported.
	undeclared map[string]bool
}

func (l *linter) wrong(t *task.Task, format string, args ...any) {
	l.findings = append(l.findings, finding{Task: t.ID, Level: "error", Message: fmt.Sprintf(format, args...)})
}

func (l *linter) doubt(t *task.Task, format string, args ...any) {
	l.findings = append(l.findings, finding{Task: t.ID, Level: "warning", Message: fmt.Sprintf(format, args...)})
}

func (l *linter) task(ctx context.Context, t *task.Task) error {
	untouched, ok, err := l.gradeOnce(ctx, t, "", nil)
	if err != nil || !ok {
		return err
	}
	switch {
	case untouched.Grade.Verdict == grade.VerdictPass:
		l.wrong(t, "the graders pass on the untouched scaffold: an agent that does nothing would pass")
	case untouched.Grade.Verdict != grade.VerdictFail:
		l.wrong(t, "the graders reach no verdict on the untouched scaffold: %s", untouched.Grade.Reason)
	default:
		for _, row := range untouched.Rows {
			if name, free := freeCredit(row); free {
				l.wrong(t, "check %q passes on the untouched scaffold: it gives credit for nothing; make it a gate, "+
					"or remove it", name)
			}
		}
	}
	if untouched.Grade.Malformed > 0 {
		l.wrong(t, "%d rows are malformed; a row has a test and a boolean pass, and either gate:true or a weight "+
			"that is not negative", untouched.Grade.Malformed)
	}
	l.declared(t, untouched)
	warnings, notes := grade.Hints(t)
	for _, warning := range warnings {
		l.doubt(t, "%s", warning)
	}
	for _, note := range notes {
		l.findings = append(l.findings, finding{Task: t.ID, Level: "note", Message: note})
	}
	if t.Solution == "" {
		l.doubt(t,
			"there is no reference solution (tasks/%s/solution), so it is unknown whether the task can be solved",
			t.ID)
		return nil
	}
	return l.solution(ctx, t)
}

func (l *linter) solution(ctx context.Context, t *task.Task) error {
	var flaky []grade.FlakyCheck
	solved, ok, err := l.gradeOnce(ctx, t, t.Solution, &flaky)
	if err != nil || !ok {
		return err
	}
	if solved.Grade.Verdict != grade.VerdictPass {
		l.wrong(t, "the graders do not pass on the reference solution: %s%s", solved.Grade.Reason, failing(solved.Rows))
	}
	l.declared(t, solved)
	for _, check := range flaky {
		l.wrong(t, "check %q is flaky: it gave different results for the same files", check.Name)
	}
	return nil
}

// declared wants the names of a hook's checks in task.yaml. Where they are, a row that anybody else
// writes counts for nothing; where they are not, a program of the agent that the hook starts could
// add rows that pass.
func (l *linter) declared(t *task.Task, result grade.Result) {
	if len(t.Settings.Checks) > 0 || l.undeclared[t.ID] {
		return
	}
	var names []string
	for _, raw := range result.Invariants.Details {
		row := grade.Classify(raw)
		if (row.Role == grade.Gate || row.Role == grade.Scored) && !slices.Contains(names, row.Name) {
			names = append(names, row.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	if l.undeclared == nil {
		l.undeclared = map[string]bool{}
	}
	l.undeclared[t.ID] = true
	quoted, err := json.Marshal(names)
	if err != nil {
		return
	}
	l.wrong(t, "the checks of hooks/invariants.sh are not declared, so a program of the agent that it runs could add "+
		"some; write into task.yaml: checks: %s", quoted)
}

// gradeOnce grades a fresh workspace with the solution laid over it, if there is one. It reports
// false where the workspace could not even be set up, which is a finding and no reason to stop.
func (l *linter) gradeOnce(ctx context.Context, t *task.Task, solution string,
	flaky *[]grade.FlakyCheck,
) (result grade.Result, ok bool, err error) {
	l.spaces++
	cfg := workspace.Config{
		Root:      l.work,
		Name:      fmt.Sprintf("w%d", l.spaces),
		Family:    l.family,
		Task:      t,
		Environ:   l.con.Environ,
		Isolation: l.opts.isolation.Value,
		Ports:     l.ports,
		Caches:    l.caches,
		Commands:  experimentcli.HookCommands(),
	}
	if len(t.Settings.Cache) > 0 && l.caches != nil {
		warm := cfg
		warm.Name = fmt.Sprintf("warm%d", l.spaces)
		if err := l.caches.Warm(ctx, warm); err != nil {
			return result, false, err
		}
	}
	space, err := workspace.Prepare(ctx, cfg)
	if err != nil {
		if ctx.Err() != nil {
			return result, false, ctx.Err()
		}
		l.wrong(t, "%v", err)
		return result, false, nil
	}
	defer func() { _ = space.Remove(context.WithoutCancel(ctx)) }()
	preflight, err := space.Preflight(ctx, "")
	if err != nil {
		return result, false, err
	}
	if !preflight.OK() {
		l.wrong(t, "hooks/preflight.sh fails on the untouched scaffold: %s", preflight.Message)
		return result, false, nil
	}
	if solution != "" {
		if err := layOver(space.Dir, solution); err != nil {
			return result, false, err
		}
	}
	if _, err := space.Seal(ctx); err != nil {
		return result, false, err
	}
	config := grade.Config{Task: t, Source: space}
	if result, err = grade.Run(ctx, config); err != nil {
		return result, false, err
	}
	if flaky != nil && l.opts.repeat.Value > 1 {
		*flaky, err = grade.Repeat(ctx, config, l.opts.repeat.Value)
	}
	return result, err == nil, err
}

// freeCredit reports whether a row of the untouched scaffold passes and counts.
func freeCredit(raw json.RawMessage) (string, bool) {
	var row struct {
		Test   string   `json:"test"`
		Pass   bool     `json:"pass"`
		Gate   *bool    `json:"gate"`
		Weight *float64 `json:"weight"`
	}
	if json.Unmarshal(raw, &row) != nil {
		return "", false
	}
	return row.Test, row.Pass && row.Gate == nil && (row.Weight == nil || *row.Weight > 0)
}

func failing(rows []json.RawMessage) string {
	var names []string
	for _, raw := range rows {
		var row struct {
			Test    string `json:"test"`
			Pass    *bool  `json:"pass"`
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &row) == nil && row.Pass != nil && !*row.Pass {
			names = append(names, strings.TrimSpace(row.Test+" "+row.Message))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (failing: " + strings.Join(names, "; ") + ")"
}

func (l *linter) conclude(tasks int) error {
	counts := map[string]int{}
	for _, f := range l.findings {
		counts[f.Level]++
	}
	errs := counts["error"]
	if l.opts.format.Value == "json" {
		if l.findings == nil {
			l.findings = []finding{}
		}
		if err := jsonenc.WriteIndented(l.con.Stdout,
			map[string]any{"tasks": tasks, "errors": errs, "findings": l.findings}); err != nil {
			return err
		}
	} else {
		for _, f := range l.findings {
			fmt.Fprintf(l.con.Stdout, "%s: %s: %s\n", f.Task, f.Level, f.Message)
		}
		fmt.Fprintf(l.con.Stdout, "%s, %s, %s\n", report.Count(tasks, "task"), report.Count(errs, "error"),
			report.Count(counts["warning"], "warning"))
	}
	if errs > 0 {
		return console.Exit(console.ExitNegative, nil)
	}
	return nil
}
