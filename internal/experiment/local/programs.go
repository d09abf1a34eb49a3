package local

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/ledger"
)

// mayRunPrograms reports whether the agent may run programs of the project: where they are
// isolated, or where a person wrote the context of the arm.
func (a *attempt) mayRunPrograms() bool {
	return sandbox.Isolates(a.space.Isolation) || slices.Contains(a.prepared.ProjectPrograms, a.arm.Name)
}

// refusePrograms returns an error if the project has programs which the agent would run with
// nothing between them and the person's files.
func (a *attempt) refusePrograms() error {
	if a.mayRunPrograms() || len(a.stock.programs) == 0 {
		return nil
	}
	return &RefusedError{fmt.Errorf("without isolation, %s would run programs that the files of task %s bring: %s; "+
		"isolate the runs (fit doctor), leave the project out with context: none (which does not stop git), or accept it "+
		"with context: project", a.arm.Agent, a.task.ID, strings.Join(a.stock.programs, ", "))}
}

// ready takes stock of what the agent finds, and ends an attempt that must not start.
func (a *attempt) ready(ctx context.Context) bool {
	err := a.takeStock()
	if err == nil {
		err = a.refusePrograms()
	}
	if err != nil {
		return a.fail(ctx, ledger.ErrorSetup, err)
	}
	return true
}

// checkPrograms refuses an experiment in which an agent would run programs of a task without
// isolation. Only working directories show what the files of a task bring, so those of the tasks
// without isolation are made.
func (s *stage) checkPrograms(ctx context.Context) error {
	for i := range s.prepared.Family.Tasks {
		t := &s.prepared.Family.Tasks[i]
		why, err := workspace.NotIsolated(ctx, s.prepared.Isolation, t)
		if err != nil {
			return err
		}
		if why == "" {
			continue
		}
		for number := range s.prepared.Arms {
			a := s.newAttempt(number, t, "programs")
			if slices.Contains(s.prepared.ProjectPrograms, a.arm.Name) {
				continue
			}
			err := a.inWorkspace(ctx, func(a *attempt) error {
				if err := a.takeStock(); err != nil {
					return err
				}
				return a.refusePrograms()
			})
			if err != nil {
				return &probeError{Who: "arm " + a.arm.Name, Err: err}
			}
		}
	}
	return nil
}
