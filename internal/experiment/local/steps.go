package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
)

// errEnded says that the record of the attempt has the reason why a step is the last.
var errEnded = errors.New("the attempt is over")

// runSteps lets the agent do one step of its task after the other. Each has its own session and is
// verified before the next begins.
func (a *attempt) runSteps(ctx context.Context, cfg harness.RunConfig) bool {
	if !a.taskUnchanged(ctx) {
		return false
	}
	config := a.gradeConfig()
	defer func() { _ = scratch.RemoveAll(config.Scratch) }()
	began, worked := time.Now(), time.Duration(0)
	steps, err := grade.RunSteps(ctx, config, a.space, func(ctx context.Context, step *task.Step) error {
		started := time.Now()
		defer func() { worked += time.Since(started) }()
		own := cfg
		own.Task, own.Timeout = step.Prompt, a.agentTimeout(step.Timeout)
		own.Session.Isolation.User = step.User
		if !a.runSession(ctx, own) {
			return errEnded
		}
		return a.space.Withdraw() // until the next step begins
	})
	a.steps, a.verifying = steps, time.Since(began)-worked
	switch {
	case err == nil:
		return true
	case !errors.Is(err, errEnded):
		a.fail(ctx, ledger.ErrorSetup, fmt.Errorf("task %s: %w", a.task.ID, err))
	}
	return false
}

// checkSteps refuses what a task with steps cannot have.
func (p *preparation) checkSteps(context.Context) error {
	for i := range p.Family.Tasks {
		t := &p.Family.Tasks[i]
		for _, arm := range p.Arms {
			if len(t.Steps) > 0 && arm.Lead != "" {
				return fmt.Errorf("arm %s has a lead, and task %s has steps: a lead works on one prompt; leave one of "+
					"them out", arm.Name, t.ID)
			}
		}
	}
	return nil
}
