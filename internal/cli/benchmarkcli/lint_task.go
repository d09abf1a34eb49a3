package benchmarkcli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/tree"
	"github.com/fit-eval/fit/internal/workspace"
)

// taskLinter checks one task.
type taskLinter struct {
	*linter
	t        *task.Task
	number   int // of the task in its family
	findings []finding
	spaces   int
	// undeclared says that undeclared checks of the task's hook were reported.
	undeclared bool
}

func (l *taskLinter) errorf(format string, args ...any) {
	l.findings = append(l.findings, finding{Task: l.t.ID, Level: "error", Message: fmt.Sprintf(format, args...)})
}

func (l *taskLinter) warnf(format string, args ...any) {
	l.findings = append(l.findings, finding{Task: l.t.ID, Level: "warning", Message: fmt.Sprintf(format, args...)})
}

func (l *taskLinter) check(ctx context.Context) error {
	t := l.t
	if t.Instance != nil && len(t.Instance.Lacks) > 0 {
		l.errorf("it cannot be graded: the row has no %s", strings.Join(t.Instance.Lacks, ", "))
		return nil
	}
	untouched, ok, err := l.gradeOnce(ctx, "", nil)
	if err != nil || !ok {
		return err
	}
	switch {
	case untouched.Grade.Verdict == grade.VerdictPass:
		l.errorf("the graders pass on the untouched scaffold: an agent that does nothing would pass")
	case untouched.Grade.Verdict != grade.VerdictFail:
		l.errorf("the graders reach no verdict on the untouched scaffold: %s", untouched.Grade.Reason)
	default:
		for _, row := range untouched.Rows {
			check := grade.Classify(row)
			switch {
			case check.Role != grade.Scored || !check.Pass:
			case t.Verifier != nil: // its author may count differently
				l.warnf("reward %q is 1 on the untouched scaffold", check.Name)
			default:
				l.errorf("check %q passes on the untouched scaffold: it gives credit for no work; make it a gate, "+
					"or remove it", check.Name)
			}
		}
	}
	if untouched.Grade.Malformed > 0 {
		l.errorf("%d rows are malformed; a row has a test and a boolean pass, and either gate:true or a weight "+
			"that is not negative", untouched.Grade.Malformed)
	}
	l.declared(untouched)
	warnings, notes := grade.Hints(t)
	for _, warning := range warnings {
		l.warnf("%s", warning)
	}
	for _, note := range notes {
		l.findings = append(l.findings, finding{Task: t.ID, Level: "note", Message: note})
	}
	switch {
	case t.Sample != nil && t.Sample.Reference != nil, t.Verifier != nil && solves(t),
		t.Instance != nil && t.Instance.Gold != "":
		return l.solution(ctx)
	case t.Instance != nil:
		l.warnf("the row has no patch, so it is unknown whether the task can be solved")
	case t.Verifier != nil:
		l.warnf("there is no solution/solve.sh, so it is unknown whether the task can be solved")
	case t.Sample != nil: // one warning for the whole dataset says so
	case t.Solution != "":
		return l.solution(ctx)
	default:
		l.warnf(
			"there is no reference solution (tasks/%s/solution), so it is unknown whether the task can be solved",
			t.ID)
	}
	return nil
}

func (l *taskLinter) solution(ctx context.Context) error {
	var flaky []grade.FlakyCheck
	solved, ok, err := l.gradeOnce(ctx, l.t.Solution, &flaky)
	if err != nil || !ok {
		return err
	}
	if solved.Grade.Verdict != grade.VerdictPass {
		l.errorf("the graders do not pass on the reference solution: %s%s", solved.Grade.Reason, failing(solved.Rows))
	}
	l.declared(solved)
	for _, check := range flaky {
		l.errorf("check %q is flaky: it gave different results for the same files", check.Name)
	}
	return nil
}

// declared wants the names of a hook's checks in task.yaml. Where they are, a row that anybody else
// writes counts for nothing; where they are not, a program of the agent that the hook starts could
// add rows that pass.
func (l *taskLinter) declared(result grade.Result) {
	if len(l.t.Settings.Checks) > 0 || l.undeclared {
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
	l.undeclared = true
	quoted, err := json.Marshal(names)
	if err != nil {
		return
	}
	l.errorf("the checks of hooks/invariants.sh are not declared, so an agent's program that it runs could add "+
		"some; add to task.yaml: checks: %s", quoted)
}

// gradeOnce grades a fresh workspace with the solution laid over it, if there is one. It reports
// false where the workspace could not even be set up, which is a finding and no reason to stop.
func (l *taskLinter) gradeOnce(ctx context.Context, solution string, flaky *[]grade.FlakyCheck,
) (result grade.Result, ok bool, err error) {
	t := l.t
	l.spaces++
	cfg := l.space(fmt.Sprintf("w%d-%d", l.number, l.spaces), t)
	if t.Verifier != nil { // its solution is run as an agent would be
		cfg.AgentNetwork = t.Settings.AgentNetwork.Kind
	}
	if err := l.warm(ctx, cfg); err != nil {
		return result, false, err
	}
	space, err := workspace.Prepare(ctx, cfg)
	if err != nil {
		if ctx.Err() != nil {
			return result, false, ctx.Err()
		}
		l.errorf("%v", err)
		return result, false, nil
	}
	defer func() { _ = space.Remove(context.WithoutCancel(ctx)) }()
	preflight, err := space.Preflight(ctx, "")
	if err != nil {
		return result, false, err
	}
	if !preflight.OK() {
		l.errorf("hooks/preflight.sh fails on the untouched scaffold: %s", preflight.Message)
		return result, false, nil
	}
	if solution != "" {
		if err := (tree.Copy{Over: tree.Merge}).Dir(ctx, solution, space.Dir); err != nil {
			return result, false, err
		}
	}
	steps, err := l.oracle(ctx, space, flaky != nil)
	if err != nil {
		if ctx.Err() != nil {
			return result, false, ctx.Err()
		}
		l.errorf("%v", err)
		return result, false, nil
	}
	answer, err := l.answer(space.Dir, flaky != nil)
	if err != nil {
		return result, false, err
	}
	if _, err := space.Seal(ctx); err != nil {
		return result, false, err
	}
	config := grade.Config{
		Task:   t,
		Source: space,
		Answer: answer,
		Steps:  steps,
	}
	if t.Instance != nil && flaky != nil {
		config.Patch = &t.Instance.Gold
	}
	if result, err = grade.Run(ctx, config); err != nil {
		return result, false, err
	}
	if flaky != nil || t.Solution == "" {
		exposure, err := grade.Exposed(ctx, config)
		if err != nil {
			return result, false, err
		}
		l.exposed(exposure)
	}
	if flaky != nil && l.opts.repeat.Value > 1 && t.Verifier == nil {
		*flaky, err = grade.Repeat(ctx, config, l.opts.repeat.Value)
	}
	return result, err == nil, err
}

// exposed says which hidden files were read when lint tried it.
func (l *taskLinter) exposed(found grade.Exposure) {
	for _, file := range found.Program {
		l.warnf("a program that is started with fit-untrusted can read %s on this machine or in this image: see "+
			"docs/security.md", file)
	}
	if found.Unloaded {
		l.findings = append(l.findings, finding{Task: l.t.ID, Level: "note", Message: "no hidden test loads the code " +
			"under test, so lint could not try what that can read"})
	}
	for _, file := range found.Code {
		level := "warning"
		if !filepath.IsAbs(file) && found.Language != task.LanguageGo { // which Hints say of the language
			level = "note"
		}
		l.findings = append(l.findings, finding{Task: l.t.ID, Level: level, Message: fmt.Sprintf(
			"lint tried it: code under test in %s can read %s while that runs", found.Language, file)})
	}
}

// oracle does what the agent of a Harbor task would do: all of it, or nothing.
func (l *taskLinter) oracle(ctx context.Context, space *workspace.Workspace, solved bool) ([]grade.StepResult, error) {
	config := grade.Config{Task: l.t, Source: space}
	switch {
	case l.t.Verifier == nil:
		return nil, nil
	case len(l.t.Steps) > 0:
		return grade.RunSteps(ctx, config, space, func(ctx context.Context, step *task.Step) error {
			if !solved {
				return nil
			}
			return grade.Solve(ctx, config, step.Verifier, step.User)
		})
	case solved:
		return nil, grade.Solve(ctx, config, l.t.Verifier, "")
	}
	return nil, nil
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
