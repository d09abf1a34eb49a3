// Package fleetcli is the command tree of fit fleet: the same experiment on many machines.
package fleetcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/benchmarkcli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/experiment/fleet"
)

// New returns the command fit fleet.
func New(con *console.Console, registry *agent.Registry) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Run experiments on many machines",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(
		newServe(con),
		newWork(con, registry),
		newRun(con, registry),
		newStatus(con),
		newDrain(con),
		newCap(con),
		newKey(con),
		newPermissions(con),
		newSimulate(con, registry),
	)
	return cmd
}

// note prints the lines of the hub and its workers.
func note(con *console.Console) func(string) {
	return func(text string) { fmt.Fprintln(con.Stderr, text) }
}

func newServe(con *console.Console) *cobra.Command {
	var listen, public, dir, cluster string
	var settings fleet.Settings
	keyMB := console.Count{Min: 1}
	var insecure bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the hub of a fleet and print how to join it",
		Long: `Start the hub of a fleet, write the URLs with which its members join, one file per key, and serve until
interrupted.

Coordinators, workers and observers have a key each, and the hub lets each do what its role needs; fit fleet key makes
more keys and revokes them. The files are private to their owner: a URL holds its key. The hub listens on the loopback
interface. On any other address it uses TLS with a certificate of its own, whose fingerprint is part of the URLs. --dir
keeps the keys, the URLs, the certificate and the queue, so a restarted hub is the same hub.`,
		Example: `  fit fleet serve
  fit fleet serve --listen 0.0.0.0:4222 --public hub.example.com:4222
  fit fleet serve --nats nats://nats.example.com:4222`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings.KeyMaxMB = keyMB.Value
			if cluster != "" {
				at := experimentcli.Fleets{URL: cluster, Insecure: insecure}
				return prepareCluster(cmd.Context(), con, at, settings)
			}
			hub, err := startServer(con, listen, public, dir)
			if err != nil {
				return err
			}
			defer hub.Close()
			own := experimentcli.Fleets{URL: hub.OwnURL(fleet.RoleCoordinator)}
			if err := prepare(cmd.Context(), con, own, settings); err != nil {
				return err
			}
			fmt.Fprintf(con.Stdout, "workers join with:    fit fleet work --fleet %[1]s/worker.url --slots 4\n"+
				"experiments run with: fit-benchmark run --fleet %[1]s/coordinator.url …\n"+
				"status:               fit fleet status %[1]s/observer.url\n", hub.Dir())
			<-cmd.Context().Done()
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:4222", "`ADDRESS` to listen on; port 0 finds a free one")
	flags.StringVar(&public, "public", "", "`ADDRESS` to put into the URL, if others reach the hub at another one")
	flags.StringVar(&dir, "dir", "",
		dirUsage)
	flags.BoolVar(&insecure, "insecure", false, "with --nats: "+experimentcli.InsecureUsage)
	flags.DurationVar(&settings.Lease, "lease", 0, "lease duration: reassign a cell whose worker has not reported "+
		"for this long (default: the earlier setting, else 30s)")
	flags.DurationVar(&settings.MaxHeld, "max-held", 0, "reassign a cell that a worker has had for this long, even if "+
		"it reports (default: the earlier setting, else twice the time limits of its task and an hour)")
	flags.Var(&keyMB, "key-max-mb", "megabytes that the hub keeps of files of a worker's key that no result names, "+
		"and an eighth of it more for each cell that the key has (default: the earlier setting, else 8192)")
	flags.StringVar(&cluster, "nats", "",
		"`URL` of an existing NATS cluster with JetStream to prepare, or a file that has it; no hub is started")
	return cmd
}

const dirUsage = "directory of the keys, their URLs, the certificate and the queue (default: in the user's cache)"

// hubDir is the directory of a hub.
func hubDir(con *console.Console, dir string) string {
	return con.Path(cmp.Or(dir, filepath.Join(experimentcli.CacheDir(), "hub")))
}

func startServer(con *console.Console, listen, public, dir string) (*fleet.Server, error) {
	hub, err := fleet.StartServer(fleet.ServerConfig{
		Listen: listen,
		Public: public,
		Dir:    hubDir(con, dir),
		Note:   note(con),
	})
	if errors.Is(err, fleet.ErrListen) {
		return nil, console.Exit(console.ExitUsage, err)
	}
	if err != nil {
		return nil, console.Exit(console.ExitIncomplete, err)
	}
	return hub, nil
}

// prepare makes the stores of a fleet, and changes its settings that are not zero.
func prepare(ctx context.Context, con *console.Console, at experimentcli.Fleets, settings fleet.Settings) error {
	hub, err := at.Dial(ctx, con, fleet.RoleCoordinator)
	if err != nil {
		return err
	}
	defer hub.Close()
	if err := hub.Set(ctx, settings); err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	return nil
}

// prepareCluster makes the stores of a fleet on an existing cluster.
func prepareCluster(
	ctx context.Context, con *console.Console, at experimentcli.Fleets, settings fleet.Settings,
) error {
	if err := prepare(ctx, con, at, settings); err != nil {
		return err
	}
	fmt.Fprintf(con.Stderr, "the cluster is ready; use its URL where others use that of fit fleet serve\n")
	return nil
}

func newWork(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := experimentcli.WorkerOptions{}
	slots := console.Count{Value: 1, Min: 1}
	var labels string
	var at experimentcli.Fleets
	var policy policyOptions
	cmd := &cobra.Command{
		Use:   "work [FILE]",
		Short: "Run cells of a fleet on this machine",
		Long: `Run cells of a fleet on this machine until interrupted or drained.

The worker announces its agents with their versions, how it can isolate them, and its labels, and gets only cells that
it can run. Model keys come from this machine's environment. A worker that loses the hub for longer than the lease of
its cells stops them; others take them over.

Experiments bring files, not permissions: agents run in isolation here whatever an experiment asks for, unless
--require-isolation=false, and the --allow flags say which agents, networks, images and coordinators are welcome.`,
		Example: `  fit fleet work --fleet hub/worker.url --slots 4
  FIT_FLEET=$(cat worker.url) fit fleet work --label gpu,eu --allow-network model,none --cell-max-cost-usd 5`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if slots.Value > fleet.MaxSlots {
				return console.Usagef("--slots %d: must be at most %d; start more workers", slots.Value, fleet.MaxSlots)
			}
			at.URL = cmp.Or(append(args, at.URL)...)
			hub, err := at.Dial(cmd.Context(), con, fleet.RoleWorker)
			if err != nil {
				return err
			}
			defer hub.Close()
			opts.Slots, opts.Labels, opts.Note, opts.Watched = slots.Value, console.List(labels), note(con), true
			opts.Policy = policy.policy()
			if opts.Dir != "" {
				opts.Dir = con.Path(opts.Dir)
			}
			return experimentcli.Work(cmd.Context(), con, registry, hub, opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&at.URL, "fleet", "", experimentcli.HubUsage)
	flags.BoolVar(&at.Insecure, "insecure", false, experimentcli.InsecureUsage)
	flags.Var(&slots, "slots", "cells to run concurrently")
	flags.StringVar(&labels, "label", "", "labels of this machine, separated by commas; arms and tasks may require "+
		"them")
	flags.StringVar(&opts.Name, "name", "", "name of the worker (default: the host's)")
	flags.StringVar(&opts.Dir, "dir", "", "directory of the worker's files (default: in the user's cache)")
	policy.register(flags)
	return cmd
}

// policyOptions are the flags of what the owner of a machine allows.
type policyOptions struct {
	isolated                               bool
	agents, networks, images, coordinators string
	budget                                 console.Dollars
}

func (p *policyOptions) register(flags *pflag.FlagSet) {
	flags.BoolVar(&p.isolated, "require-isolation", true,
		"run agents only in isolation, whatever an experiment asks for")
	flags.StringVar(&p.agents, "allow-agent", "", "agents that may run, separated by commas (default: all)")
	flags.StringVar(&p.networks, "allow-network", "",
		"networks that agents may have, of host, model, registries and none, separated by commas (default: all)")
	flags.StringVar(&p.images, "allow-image", "", "patterns of images that may run, separated by commas (default: all)")
	flags.StringVar(&p.coordinators, "allow-coordinator", "",
		"public keys of the coordinators whose experiments may run, separated by commas (default: all)")
	flags.Var(&p.budget, "cell-max-cost-usd", "stop an agent that has cost this much, whatever an experiment allows")
}

func (p *policyOptions) policy() fleet.Policy {
	return fleet.Policy{
		Unisolated:   !p.isolated,
		Agents:       console.List(p.agents),
		Networks:     console.List(p.networks),
		Images:       console.List(p.images),
		Coordinators: console.List(p.coordinators),
		MaxUSD:       p.budget.Value,
	}
}

// newRun is fit-benchmark run with a fleet of its own.
func newRun(con *console.Console, registry *agent.Registry) *cobra.Command {
	workers, slots := console.Count{Value: 2, Min: 1}, console.Count{Value: 2, Min: 1}
	var dir string
	own := &ownFleet{con: con, registry: registry}
	cmd := benchmarkcli.NewRun(con, registry, func(ctx context.Context) (string, error) {
		return own.start(ctx, con.Path(dir), workers.Value, slots.Value)
	})
	cmd.Short = "Run a benchmark with a hub and workers on this machine, to try it out"
	cmd.Long = `Start a hub and some workers on this machine, run a benchmark on them, and stop them. All other flags
are those of fit-benchmark run.`
	cmd.Example = `  fit fleet run --workers 3 --slots 2 --family benchmarks/todo --runs 10`
	flags := cmd.Flags()
	flags.Var(&workers, "workers", "workers to start")
	flags.Var(&slots, "slots", "cells each worker runs concurrently")
	flags.StringVar(&dir, "fleet-dir", "", "directory of the hub and the workers (default: in the user's cache)")
	sample := flags.Lookup("regrade-sample") // its workers are this process
	sample.DefValue = "0"
	_ = sample.Value.Set(sample.DefValue) // it is a number
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return errors.Join(run(cmd, args), own.end())
	}
	return cmd
}

// ownFleet is a hub with workers in this process.
type ownFleet struct {
	con      *console.Console
	registry *agent.Registry
	hub      *fleet.Server
	cancel   context.CancelFunc
	working  sync.WaitGroup
	mu       sync.Mutex
	failed   []error
}

func (o *ownFleet) start(ctx context.Context, dir string, workers, slots int) (string, error) {
	dir = cmp.Or(dir, filepath.Join(experimentcli.CacheDir(), "fleet-run"))
	var err error
	if o.hub, err = startServer(o.con, "127.0.0.1:0", "", filepath.Join(dir, "hub")); err != nil {
		return "", err
	}
	own := experimentcli.Fleets{URL: o.hub.OwnURL(fleet.RoleCoordinator)}
	if err := prepare(ctx, o.con, own, fleet.Settings{}); err != nil {
		return "", err
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	o.cancel = cancel
	ready, say := make(chan struct{}, 2*workers), note(o.con)
	for i := range workers {
		hub, err := experimentcli.Fleets{URL: o.hub.URL(fleet.RoleWorker)}.Dial(ctx, o.con, fleet.RoleWorker)
		if err != nil {
			return "", err
		}
		o.working.Go(func() {
			defer hub.Close()
			err := experimentcli.Work(background, o.con, o.registry, hub, experimentcli.WorkerOptions{
				Name:  fmt.Sprintf("local-%d", i+1),
				Slots: slots,
				Dir:   filepath.Join(dir, "workers"),
				// they are this process, which would run cells without isolation by itself, too
				Policy: fleet.Policy{Unisolated: true},
				Note: func(text string) {
					say(text)
					select {
					case ready <- struct{}{}:
					default: // it has said something before
					}
				},
			})
			if err != nil {
				o.mu.Lock()
				o.failed = append(o.failed, err)
				o.mu.Unlock()
				ready <- struct{}{}
			}
		})
	}
	for range workers {
		select {
		case <-ready:
		case <-ctx.Done():
			return "", console.Exitf(console.ExitInterrupted, "interrupted before the first cell; nothing was started")
		}
	}
	return o.hub.URL(fleet.RoleCoordinator), nil
}

// end ends the workers and the hub.
func (o *ownFleet) end() error {
	if o.cancel != nil {
		o.cancel()
	}
	o.working.Wait()
	if o.hub != nil {
		o.hub.Close()
	}
	return errors.Join(o.failed...)
}
