package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// errNotHere is returned for an attempt that needs more than what it left to be graded again.
var errNotHere = errors.New("its container no longer exists")

// Regrade grades what an attempt left in a run directory again, in a place of its own. The judge is
// not asked again.
func (m *Machine) Regrade(ctx context.Context, prepared *experiment.Prepared, top string, r *ledger.Record,
) (verdict string, err error) {
	var t *task.Task
	for i := range prepared.Family.Tasks {
		if prepared.Family.Tasks[i].ID == r.TaskID {
			t = &prepared.Family.Tasks[i]
		}
	}
	if t == nil {
		return "", fmt.Errorf("no task %q", r.TaskID)
	}
	if r.Container != nil {
		return "", errNotHere
	}
	room, err := scratch.Make("", "fit-regrade-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, room.Remove()) }()
	config := grade.Config{
		Task:     t,
		Baseline: grade.NewBaseline(),
		Redactor: m.Redactor,
		Verify:   verifyCommands(t),
	}
	if t.Sample != nil {
		if config.Answer, err = StoredAnswer(top, r, m.Registry.Dialects()); err != nil {
			return "", err
		}
	}
	result, err := GradeStored(ctx, workspace.Config{
		Root:        room.Path,
		Name:        "regrade",
		Family:      prepared.Family,
		Task:        t,
		NodeModules: prepared.NodeModules,
		Environ:     m.Host.Environ,
		Isolation:   prepared.Isolation,
		Ports:       &workspace.Ports{},
		Engines:     m.engines(),
		Commands:    prepared.Commands,
	}, config, filepath.Join(top, filepath.FromSlash(r.RunDir), FinalDir))
	return result.Grade.Verdict, err
}

// GradeStored grades a final directory that an attempt left. Services that the preflight hook
// starts are started again, on a copy.
func GradeStored(ctx context.Context, space workspace.Config, config grade.Config, final string) (grade.Result, error) {
	adopted, err := workspace.Adopt(ctx, space, final)
	if err != nil {
		return grade.Result{}, err
	}
	defer func() { _ = adopted.Remove(context.WithoutCancel(ctx)) }()
	if space.Task.Hooks.Preflight != "" {
		services, err := adopted.Copy(ctx, workspace.CopyConfig{})
		if err != nil {
			return grade.Result{}, err
		}
		result, err := adopted.Preflight(ctx, services.Dir)
		if err == nil && !result.OK() {
			err = fmt.Errorf("task %s: preflight: %s", space.Task.ID, result.Message)
		}
		if err != nil {
			return grade.Result{}, err
		}
	}
	config.Source = adopted
	return grade.Run(ctx, config)
}

// CostOf returns what the tokens of a record cost by the prices of this machine; nil: unknown.
func (m *Machine) CostOf(r *ledger.Record) *float64 {
	if m.Prices == nil || r.Tokens == nil {
		return nil
	}
	usd, known := m.Prices(r.Model.Agent, session.TokenUsage(*r.Tokens), r.StartMs)
	if !known {
		return nil
	}
	return &usd
}
