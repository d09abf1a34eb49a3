package experimentcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/fleet"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/ledger"
)

// Fleet is a fleet that cells run on.
type Fleet struct {
	hub       *fleet.Hub
	isolation string
	engine    string
	sample    float64 // of the passes, that are graded again here
}

// openFleet connects to the fleet that the flags name. The agents of its workers count as those of
// the machine. It returns nil if they name none.
func (o *RunOptions) openFleet(ctx context.Context, con *console.Console, machine *local.Machine) (*Fleet, error) {
	if o.Fleet == "" {
		return nil, nil
	}
	if !(o.regrade >= 0 && o.regrade <= 1) {
		return nil, console.Usagef("--regrade-sample %v: must be from 0 to 1", o.regrade)
	}
	hub, err := Fleets{URL: o.Fleet, Insecure: o.insecure}.Dial(ctx, con, fleet.RoleCoordinator)
	if err != nil {
		return nil, err
	}
	f := &Fleet{hub: hub, sample: o.regrade}
	workers, err := hub.Workers(ctx)
	if err != nil {
		f.Close()
		return nil, console.Exit(console.ExitIncomplete, err)
	}
	machine.Versions, f.isolation = fleet.Common(workers, con.Version, machine.Installed(ctx))
	if f.isolation == "" {
		// nobody is there yet: whoever comes must isolate as this machine does, so that all are
		// alike
		modes, err := isolations(ctx)
		if err != nil {
			f.Close()
			return nil, err
		}
		f.isolation = modes[len(modes)-1]
	}
	f.engine = cmp.Or(fleet.CommonEngine(workers, con.Version), sandbox.IsolationPodman)
	return f, nil
}

// Close ends the connection.
func (f *Fleet) Close() {
	if f != nil {
		f.hub.Close()
	}
}

// do runs the cells that are left on the fleet.
func (f *Fleet) do(ctx context.Context, r *Run, cells int) (experiment.Outcome, error) {
	if r.Before != nil { // tasks are checked here, where their files are
		here, err := r.local(ctx)
		if err == nil {
			err = errors.Join(r.prepare(ctx, here, cells), here.Close())
		}
		if err != nil {
			return experiment.Outcome{}, startError(ctx, err)
		}
	}
	if cells > 0 {
		if err := r.rehearseOn(ctx, r.thisMachine()); err != nil {
			return experiment.Outcome{}, err
		}
	}
	executor, err := fleet.New(ctx, fleet.Config{
		Hub:       f.hub,
		Prepared:  r.Prepared,
		Dir:       r.Output,
		Version:   r.Console.Version,
		Provider:  func(arm *experiment.Arm) string { return ProviderOf(r.Machine.Registry, arm) },
		Isolation: f.isolation,
		Engine:    f.engine,
		Pull:      r.Machine.Engines != nil && r.Machine.Engines.Pull,
		Cost:      r.Machine.CostOf,
		Secrets:   r.Machine.Registry.Secrets(r.Console.Environ),

		Regrade:       f.regrader(ctx, r),
		RegradeSample: f.sample,

		Redactor: r.Machine.Redactor,
		Note:     func(text string) { fmt.Fprintf(r.Console.Stderr, "note: %s\n", text) },
	})
	if err != nil {
		return experiment.Outcome{}, startError(ctx, err)
	}
	if cells > 0 && !r.NoProbe {
		fmt.Fprintf(r.Console.Stderr, "checking that every arm's model replies\n")
		if err := executor.Probe(ctx, r.Dir.RecordProbe); err != nil {
			err = errors.Join(startError(ctx, err), executor.Close())
			if ctx.Err() == nil {
				err = console.Exitf(console.ExitIncomplete, "%w\nnothing was started; check "+
					"credentials, model and URL on the workers, or skip this check with --no-probe", err)
			}
			return experiment.Outcome{}, r.neverBegan(err)
		}
	}
	outcome, err := r.runCells(ctx, experiment.Config{
		Executor: executor,
		Places:   executor.Places,
		Changed:  executor.Changed(),
	}, executor.Sealed)
	return outcome, errors.Join(err, executor.Close())
}

// regrader returns what grades passes again on this machine: only in isolation, because what agents
// left is run.
func (f *Fleet) regrader(ctx context.Context, r *Run) func(context.Context, *ledger.Record) (string, error) {
	if f.sample == 0 {
		return nil
	}
	if modes, err := isolations(ctx); err == nil && modes[len(modes)-1] == sandbox.IsolationNone {
		fmt.Fprintln(r.Console.Stderr, "note: passes are not graded again here, because this machine has no isolation")
		return nil
	}
	machine := r.thisMachine()
	return func(ctx context.Context, record *ledger.Record) (string, error) {
		return machine.Regrade(ctx, r.Prepared, r.Output, record)
	}
}

// ProviderOf names the service that an arm's model is asked of: the host of its URL, or who made
// the protocol that the agent speaks with this model.
func ProviderOf(registry *agent.Registry, arm *experiment.Arm) string {
	if u, err := url.Parse(arm.ModelURL); err == nil && u.Host != "" {
		return u.Host
	}
	chosen, err := registry.Get(arm.Agent)
	if err != nil {
		return arm.Agent
	}
	info := chosen.Info()
	if len(info.Protocols) == 0 {
		return arm.Agent
	}
	spoken := agent.ProtocolOf(cmp.Or(arm.Model, info.DefaultModel), info.Protocols...)
	if known := model.Protocol(spoken).Info(); known != nil {
		return known.Vendor
	}
	return arm.Agent
}

// WorkerOptions are how this machine works for a fleet.
type WorkerOptions struct {
	Name   string
	Slots  int
	Labels []string
	Dir    string // empty: in the user's cache
	Policy fleet.Policy
	Note   func(string)
	// Watched makes another process end this one when it stands still for longer than a lease.
	Watched bool
}

// Work makes this machine a worker until the context ends or it is drained.
func Work(ctx context.Context, con *console.Console, registry *agent.Registry, hub *fleet.Hub,
	opts WorkerOptions,
) error {
	// sandboxes hide it by its path
	dir, err := filepath.Abs(cmp.Or(opts.Dir, filepath.Join(CacheDir(), "fleet")))
	if err != nil {
		return err
	}
	var watched func(time.Duration)
	if opts.Watched {
		watchdog, err := sandbox.StartWatchdog()
		if err != nil {
			return console.Exit(console.ExitIncomplete, err)
		}
		defer watchdog.Close()
		watched = watchdog.Within
	}
	modes, err := isolations(ctx)
	if err != nil {
		return err
	}
	machine := Machine(con, registry)
	return fleet.Work(ctx, fleet.WorkerConfig{
		Hub:       hub,
		Name:      opts.Name,
		Slots:     opts.Slots,
		Labels:    opts.Labels,
		Agents:    machine.Installed(ctx),
		Isolation: allowed(modes, opts.Policy),
		Engines:   engines(ctx),
		Policy:    opts.Policy,
		Environ:   con.Environ,
		Version:   con.Version,
		Dir:       dir,
		FreeSpace: func() error { return local.FreeSpace(dir, os.TempDir()) },
		Note:      opts.Note,
		Now:       con.Now,
		Watched:   watched,
		Executor: func(ctx context.Context, job fleet.Job) (fleet.Attempts, error) {
			if !job.Pull {
				return localAttempts(ctx, machine, job)
			}
			pulling := Machine(con, registry)
			pulling.Engines = &workspace.Engines{Pull: true, Progress: con.Stderr}
			return localAttempts(ctx, pulling, job)
		},
	})
}

// allowed are the ways of isolation that a policy allows.
func allowed(modes []string, policy fleet.Policy) []string {
	if policy.Unisolated {
		return modes
	}
	return slices.DeleteFunc(modes, func(mode string) bool { return mode == sandbox.IsolationNone })
}

// isolations are the ways in which this machine can isolate attempts, the best one last.
func isolations(ctx context.Context) ([]string, error) {
	found := sandbox.DetectBwrap(ctx)
	switch {
	case found.Unknown != nil:
		return nil, fmt.Errorf("isolation could not be tried: %w; try again", found.Unknown)
	case found.Bwrap.OK:
		return []string{sandbox.IsolationNone, sandbox.IsolationBwrap}, nil
	}
	return []string{sandbox.IsolationNone}, nil
}

// engines are the kinds of container engines that work on this machine.
func engines(ctx context.Context) []string {
	var kinds []string
	for _, kind := range []string{sandbox.IsolationPodman, sandbox.IsolationDocker} {
		if _, err := sandbox.FindEngine(ctx, kind); err == nil {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// localAttempts is the executor of this machine for a job of a fleet.
func localAttempts(ctx context.Context, machine *local.Machine, job fleet.Job) (fleet.Attempts, error) {
	work, err := local.WorkDir(job.Dir)
	if err != nil {
		return nil, err
	}
	executor, err := local.New(ctx, local.Config{
		Prepared:  job.Prepared,
		Machine:   machine,
		Artefacts: job.Sink,
		Work:      work,
		Rate:      gateway.NewRateControl(),
	})
	if err != nil {
		return nil, err
	}
	return executor, nil
}
