package local

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/sandbox"
)

// programs lists the files of the project that make the agent run programs of the project.
func (a *attempt) programs() ([]string, error) {
	chosen, err := a.machine.Registry.Get(a.arm.Agent)
	if err != nil || a.arm.Context == agent.ContextNone {
		return nil, err
	}
	root, err := os.OpenRoot(a.space.Base().Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return chosen.Info().Places.ProgramsIn(root)
}

// mayRunPrograms reports whether the agent may run programs of the project: where they are
// isolated, or where a person wrote the context of the arm.
func (a *attempt) mayRunPrograms() bool {
	return sandbox.Isolates(a.space.Isolation) || a.arm.Context == agent.ContextProject
}

// refusePrograms returns an error if the project has programs which the agent would run with
// nothing between them and the person's files.
func (a *attempt) refusePrograms() error {
	if a.mayRunPrograms() {
		return nil
	}
	found, err := a.programs()
	if err != nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("without isolation, %s would run programs that the files of task %s bring: %s; isolate the "+
		"runs (fit doctor), leave the project out with context: none, or accept it with context: project",
		a.arm.Agent, a.task.ID, strings.Join(found, ", "))
}

// checkPrograms ends an attempt whose agent would run such programs.
func (a *attempt) checkPrograms(ctx context.Context) bool {
	if err := a.refusePrograms(); err != nil {
		return a.fail(ctx, ledger.ErrorSetup, err)
	}
	return true
}
