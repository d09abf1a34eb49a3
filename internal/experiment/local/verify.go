package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
)

// verifyName is the name of the row that a task's own command makes.
const verifyName = "verify"

// verifyCommands returns the commands of a task's own file. The family's tasks have suites and
// hooks instead.
func verifyCommands(t *task.Task) []grade.Command {
	if t.Spec == nil {
		return nil
	}
	command := func(name, line string) grade.Command {
		return grade.Command{
			Name:    name,
			Argv:    []string{"sh", "-c", line},
			Parser:  task.ParserExit,
			Gate:    true,
			Timeout: t.Settings.Timeouts.Test,
		}
	}
	commands := []grade.Command{command(verifyName, t.Spec.VerifyCommand)}
	for _, line := range t.Spec.AlsoVerify {
		commands = append(commands, command(line, line))
	}
	return commands
}

// verified records how the task's own commands ended: the first that failed or, if all passed, the
// first.
func (a *attempt) verified(result grade.Result) {
	a.record.Verify = nil
	for _, command := range result.Commands {
		if a.record.Verify != nil && (!a.record.Verify.Passed || command.Passed) {
			continue
		}
		a.record.Verify = &ledger.Verify{
			Passed:   command.Passed,
			ExitCode: command.ExitCode,
			TimedOut: command.TimedOut,
			StartMs:  command.StartMs,
			EndMs:    command.EndMs,
			Error:    command.Error,
		}
		if command.Output != "" {
			a.record.Verify.OutputPath = a.artefact(filepath.ToSlash(filepath.Join(GradingDir, command.Output)))
		}
	}
}

// lint records the linter's result for the changed files. It decides nothing, so a linter that
// cannot be run is only noted.
func (a *attempt) lint(ctx context.Context, cfg grade.Config) {
	if a.task.Spec == nil || a.task.Spec.LintCommand == "" || len(a.changed) == 0 {
		return
	}
	linter := grade.Linter{Command: a.task.Spec.LintCommand, Timeout: a.task.Settings.Timeouts.Test}
	result, err := grade.Lint(ctx, cfg, linter, a.changed)
	if err != nil {
		result.Error = err.Error()
	}
	a.record.Lint = &result
}

// TaskError says that a task measures nothing: an agent that does nothing would pass, or no
// solution can.
type TaskError struct {
	Task    string
	Problem string
}

func (e *TaskError) Error() string { return fmt.Sprintf("task %s: %s", e.Task, e.Problem) }

// TaskFacts holds what checking a task finds out about it.
type TaskFacts struct {
	// Passing are the names of the rows that pass on the base.
	Passing []string
	// Tests are the test files of the base.
	Tests map[string][]byte
}

// maxTestFile bounds the test files that are looked at.
const maxTestFile = 1 << 20

// CheckTasks makes sure, before any money is spent, that the verifying command of every task with
// its own file fails on the base and passes on the reference solution, if there is one. A task that
// does not is a *TaskError.
func (e *Executor) CheckTasks(ctx context.Context, isTest func(t *task.Task, name string) bool,
) (map[string]TaskFacts, error) {
	facts := map[string]TaskFacts{}
	for i := range e.prepared.Family.Tasks {
		t := &e.prepared.Family.Tasks[i]
		if t.Spec == nil {
			continue
		}
		found, err := e.checkTask(ctx, t, isTest)
		if err != nil {
			return nil, err
		}
		facts[t.ID] = found
	}
	return facts, nil
}

func (e *Executor) checkTask(ctx context.Context, t *task.Task, isTest func(*task.Task, string) bool,
) (facts TaskFacts, err error) {
	a := &attempt{
		Executor: e,
		cell:     experiment.Cell{TaskID: "check." + t.ID, Arm: e.prepared.Arms[0].Name},
		arm:      &e.prepared.Arms[0],
		task:     t,
		redact:   e.machine.Redactor,
	}
	err = a.inWorkspace(ctx, func(a *attempt) error {
		base, err := a.gradeAsIs(ctx)
		if err != nil {
			return err
		}
		switch base.Grade.Verdict {
		case ledger.Pass:
			return &TaskError{t.ID, "verifyCommand passes on the base: an agent that does nothing would pass"}
		case ledger.Error:
			return &TaskError{t.ID, "verifyCommand reaches no verdict on the base: " + base.Grade.Reason}
		}
		facts.Passing = passing(base.Rows)
		facts.Tests, err = a.space.BaseFiles(func(name string) bool { return isTest(t, name) }, maxTestFile)
		if err != nil || !t.HasSolution() {
			return err
		}
		return a.checkSolution(ctx)
	})
	if err != nil && !errors.As(err, new(*TaskError)) {
		err = fmt.Errorf("check task %s: %w", t.ID, err)
	}
	return facts, err
}

func (a *attempt) checkSolution(ctx context.Context) error {
	if err := grade.ApplyPatch(ctx, a.space.Dir, a.task.Spec.Reference.Patch); err != nil {
		return &TaskError{a.task.ID, "the reference patch does not apply to the base: " + err.Error()}
	}
	solved, err := a.gradeAsIs(ctx)
	if err != nil {
		return err
	}
	if solved.Grade.Verdict == ledger.Pass {
		return nil
	}
	why := solved.Grade.Reason
	for _, raw := range solved.Rows {
		var row struct{ Test, Message string }
		if json.Unmarshal(raw, &row) == nil && row.Message != "" {
			why = row.Message
			break
		}
	}
	return &TaskError{a.task.ID, "verifyCommand does not pass on the reference patch: " + why}
}

// gradeAsIs grades what is in the workspace now.
func (a *attempt) gradeAsIs(ctx context.Context) (grade.Result, error) {
	if _, err := a.space.Seal(ctx); err != nil {
		return grade.Result{}, err
	}
	return grade.Run(ctx, grade.Config{
		Task:     a.task,
		Source:   a.space,
		Baseline: a.baseline,
		Spawner:  a.spawner,
		Redactor: a.redact,
		Verify:   verifyCommands(a.task),
	})
}

// passing returns the names of the rows that pass.
func passing(rows []json.RawMessage) []string {
	var names []string
	for _, raw := range rows {
		if row := grade.Classify(raw); row.Pass {
			names = append(names, row.Name)
		}
	}
	return names
}
