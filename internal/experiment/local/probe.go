package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// probeTimeout bounds the wait for one reply: of a program that may take long to start on a busy
// machine, and of a model that may have to be loaded first.
const probeTimeout = 5 * time.Minute

// probePrompt asks for as little as possible.
const probePrompt = "Reply with the single word ready. Use no tool."

// probeError says that an arm, or the judge, cannot be used.
type probeError struct {
	Who string
	Err error
}

func (p *probeError) Error() string { return fmt.Sprintf("%s: %v", p.Who, p.Err) }
func (p *probeError) Unwrap() error { return p.Err }

// Check creates and removes one workspace per arm, to find permanent problems before the first cell
// instead of in each cell.
func (e *Executor) Check(ctx context.Context) error {
	return e.inEveryArm(ctx, func(*attempt) error { return nil })
}

// Probe waits for one good reply in every arm: from the agent itself, in a workspace like that of a
// cell, with the arm's own settings, and from its lead. Wrong credentials, a wrong URL, a wrong
// model's name or a broken program cost one call and not a grid.
//
// The cost of every reply is passed to record, even if the reply failed.
func (e *Executor) Probe(ctx context.Context, record func(experiment.Probe) error) error {
	if e.prepared.Offline() {
		return nil // a record has no answer to a new question
	}
	err := e.inEveryArm(ctx, func(a *attempt) error {
		a.probed = record
		chosen, err := e.machine.Registry.Get(a.arm.Agent)
		if err != nil {
			return err
		}
		settings, _, err := a.agentConfig(chosen)
		if err != nil {
			return err
		}
		if err := a.reply(ctx, chosen, settings); err != nil || a.arm.Lead == "" {
			return err
		}
		lead, err := e.machine.Registry.Get(a.arm.Lead)
		if err != nil {
			return err
		}
		settings = a.placeConfig(a.space.Agent(), a.arm.Lead)
		settings.Model, settings.ModelURL, settings.Auth = a.arm.LeadModel, a.cell.ModelURL(a.arm.ModelURL), a.arm.Auth
		if err := a.reply(ctx, lead, settings); err != nil {
			return fmt.Errorf("lead: %w", err)
		}
		return nil
	})
	if err != nil || e.prepared.Judge.Agent == "" {
		return err
	}
	if err := e.probeJudge(ctx, record); err != nil {
		return &probeError{Who: "judge", Err: err}
	}
	return nil
}

// inEveryArm makes a workspace of the first task for every arm and does something in it.
func (e *Executor) inEveryArm(ctx context.Context, do func(*attempt) error) error {
	for i := range e.prepared.Arms {
		arm := &e.prepared.Arms[i]
		a := &attempt{
			Executor: e,
			cell:     experiment.Cell{TaskID: "probe", Arm: arm.Name},
			arm:      arm,
			task:     &e.prepared.Family.Tasks[0],
			redact:   e.machine.Redactor,
		}
		err := a.inWorkspace(ctx, do)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return &probeError{Who: "arm " + arm.Name, Err: err}
		}
	}
	return nil
}

func (a *attempt) inWorkspace(ctx context.Context, do func(*attempt) error) error {
	space, err := workspace.Prepare(ctx, a.workspaceConfig(a.arm, a.task, a.cell.Alias(), ""))
	if err != nil {
		return err
	}
	a.space = space
	if err := a.findInside(ctx); err != nil {
		return errors.Join(err, space.Remove(context.WithoutCancel(ctx)))
	}
	return errors.Join(do(a), space.Remove(context.WithoutCancel(ctx)))
}

// reply waits for one reply of an agent.
func (a *attempt) reply(ctx context.Context, chosen agent.Agent, settings agent.Config) error {
	settings.MaxTurns, settings.Account = 0, nil // it is charged when it is over
	if chosen.Info().Capabilities.MaxTurns != agent.Unsupported {
		settings.MaxTurns = 1
	}
	result, err := harness.Run(ctx, harness.RunConfig{
		Agent:   chosen,
		Session: settings,
		Task:    probePrompt,
		Timeout: probeTimeout,
		Trace:   trace.NewWriter(io.Discard, trace.Config{}),
	})
	a.spend(result.Usage)
	recorded := a.probed(experiment.Probe{
		Who:        a.cell.Arm,
		Tokens:     a.record.Tokens,
		CostUSD:    a.record.CostUSD,
		CostSource: a.record.CostSource,
	})
	if err = errors.Join(err, recorded); recorded != nil {
		return err
	}
	end := ending{reason: result.Reason, err: result.Err}
	replied := result.Turns > 0 && (result.Reason == session.OutcomeSuccess || result.Reason == session.OutcomeMaxTurns)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case !replied && settings.Model != "":
		return fmt.Errorf("%s did not get one reply from model %s (%s): %w", chosen.Info().ID, settings.Model,
			result.Reason, end.cause())
	case !replied:
		return fmt.Errorf("%s did not get one reply from its model (%s): %w", chosen.Info().ID, result.Reason,
			end.cause())
	}
	return nil
}

// probeJudge waits for one reply of the judge, in its own directory.
func (e *Executor) probeJudge(ctx context.Context, record func(experiment.Probe) error) error {
	room, err := os.MkdirTemp(e.work, "probe-")
	if err != nil {
		return err
	}
	defer func() { _ = scratch.RemoveAll(room) }() // leftovers are removed with the directory of all workspaces
	settings := agent.Config{
		Dir:      filepath.Join(room, "work"),
		Home:     filepath.Join(room, "home"),
		Environ:  e.machine.Host.Environ,
		Prices:   e.machine.Prices,
		Model:    e.prepared.Judge.Model,
		ModelURL: experiment.Cell{TaskID: "probe", Arm: "judge"}.ModelURL(e.prepared.Judge.ModelURL),
		Spawner:  e.spawner,
		Gateway:  e.gatewayOf(gateway.Member{Cell: "probe"}, nil),
	}
	for _, dir := range []string{settings.Dir, settings.Home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	if installation, known := e.machine.lookUp(e.prepared.Judge.Agent); known {
		settings.Installation = &installation
	}
	chosen, err := e.machine.Registry.Get(e.prepared.Judge.Agent)
	if err != nil {
		return err
	}
	a := &attempt{Executor: e, cell: experiment.Cell{Arm: "judge"}, probed: record}
	return a.reply(ctx, chosen, settings)
}
