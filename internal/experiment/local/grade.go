package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"path/filepath"

	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/ledger"
)

// grade runs the mechanical graders on copies. From here on there is a verdict, unless the grader
// itself is broken.
func (a *attempt) grade(ctx context.Context) bool {
	if !a.taskUnchanged(ctx) {
		return false
	}
	if err := a.keepAnswer(); err != nil {
		return a.fail(ctx, ledger.ErrorInternal, err)
	}
	a.record.GraderNetwork, a.record.ServiceNetwork = a.space.GraderNetwork(), a.space.ServiceNetwork()
	a.record.SharedProcess = grade.SharedProcess(a.task)
	config := a.gradeConfig()
	// leftovers are removed with the directory of all workspaces
	defer func() { _ = scratch.RemoveAll(config.Scratch) }()
	config.Answer, config.Steps = a.answered(a.record.PhaseMs["agent"]), a.steps
	result, err := grade.Run(ctx, config)
	if err != nil {
		return a.fail(ctx, ledger.ErrorGrader, err)
	}
	if ctx.Err() != nil {
		return a.fail(ctx, ledger.ErrorInterrupted, ctx.Err())
	}
	if !a.servicesLive(ctx) {
		return false
	}
	a.adopt(result)
	a.record.Notes = append(a.record.Notes, result.Notes...)
	a.verified(result)
	a.lint(ctx, config)
	return a.record.Verdict == ledger.Pass
}

// gradeConfig returns the grading config of the attempt, with a new directory for graders.
func (a *attempt) gradeConfig() grade.Config {
	return grade.Config{
		Task:      a.task,
		Source:    a.space,
		Artifacts: filepath.Join(a.dir, GradingDir),
		Scratch:   filepath.Join(a.work, "grading-"+rand.Text()),
		Baseline:  a.baseline,
		Spawner:   a.spawner,
		Redactor:  a.redact,
		Verify:    verifyCommands(a.task),
	}
}

// adopt copies the mechanical grade into the record.
func (a *attempt) adopt(result grade.Result) {
	applyGrade(&a.record, result)
	if a.task.Instance != nil && result.Grade.Verdict == ledger.Pass {
		a.note("resolved by the log of the tests, to which the tested code can also print: look at the patch")
	}
}

func applyGrade(r *ledger.Record, result grade.Result) {
	g := result.Grade
	r.Grade, r.Invariants, r.HiddenTests, r.Score = &g, &result.Invariants, result.HiddenTests, result.Score
	switch g.Verdict {
	case ledger.Pass, ledger.Fail:
		r.Verdict, r.ErrorClass, r.ErrorMessage, r.ErrorCause = g.Verdict, "", "", ""
	default:
		r.Verdict, r.ErrorClass, r.ErrorCause = ledger.Error, ledger.ErrorGrader, result.Cause
		if result.Cause == grade.CauseNoProcess {
			r.ErrorClass, r.ErrorCause = ledger.ErrorSandbox, ""
		}
		r.ErrorMessage = cmp.Or(g.Reason, "the grader reached no verdict")
		if result.Unverified {
			r.Unverified = 1
		}
	}
}
