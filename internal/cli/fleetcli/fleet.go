// Package fleetcli is the command tree of fit fleet: the same experiment on many machines.
package fleetcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

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
		newSimulate(con, registry),
	)
	return cmd
}

// hubURL is the URL of the hub: an argument or flag, or the environment's.
func hubURL(con *console.Console, given string) (string, error) {
	if url := cmp.Or(given, con.Getenv(experimentcli.FleetVariable)); url != "" {
		return url, nil
	}
	return "", console.Usagef("which fleet? pass the URL that fit fleet serve prints, or set %s",
		experimentcli.FleetVariable)
}

// note prints the lines of the hub and its workers.
func note(con *console.Console) func(string) {
	return func(text string) { fmt.Fprintln(con.Stderr, text) }
}

func newServe(con *console.Console) *cobra.Command {
	var listen, public, dir, cluster string
	var lease time.Duration
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the hub of a fleet and print how to join it",
		Long: `Start the hub of a fleet, print the URL with which workers and coordinators join it, and serve until
interrupted.

The URL holds a token: anyone who has it can run programs on all workers. The hub listens on the loopback interface.
On any other address it uses TLS with a certificate of its own, whose fingerprint is part of the URL. --dir keeps the
token, the certificate and the queue, so a restarted hub is the same hub.`,
		Example: `  fit fleet serve
  fit fleet serve --listen 0.0.0.0:4222 --public hub.example.com:4222
  fit fleet serve --nats nats://nats.example.com:4222`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cluster != "" {
				return prepareCluster(cmd.Context(), con, cluster, lease)
			}
			hub, err := startServer(con, listen, public, dir)
			if err != nil {
				return err
			}
			defer hub.Close()
			if err := prepare(cmd.Context(), con, hub.OwnURL(), lease); err != nil {
				return err
			}
			fmt.Fprintf(con.Stdout, "%s\n", hub.URL())
			fmt.Fprintf(con.Stderr, "workers join with:   fit fleet work '%s' --slots 4\n"+
				"experiments run with: fit-benchmark run --fleet '%s' …\n", hub.URL(), hub.URL())
			<-cmd.Context().Done()
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:4222", "`ADDRESS` to listen on; port 0 finds a free one")
	flags.StringVar(&public, "public", "", "`ADDRESS` to put into the URL, if others reach the hub at another one")
	flags.StringVar(&dir, "dir", "",
		"directory of the token, the certificate and the queue (default: in the user's cache)")
	flags.DurationVar(&lease, "lease", 0, "lease duration: reassign a cell whose worker has not reported for "+
		"this long (default: the earlier setting, else 30s)")
	flags.StringVar(&cluster, "nats", "",
		"`URL` of an existing NATS cluster with JetStream to prepare; no hub is started")
	return cmd
}

func startServer(con *console.Console, listen, public, dir string) (*fleet.Server, error) {
	dir = cmp.Or(dir, filepath.Join(experimentcli.CacheDir(), "hub"))
	hub, err := fleet.StartServer(fleet.ServerConfig{
		Listen: listen,
		Public: public,
		Dir:    con.Path(dir),
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

// prepare makes the stores of a fleet, and sets its lease unless that is 0.
func prepare(ctx context.Context, con *console.Console, url string, lease time.Duration) error {
	hub, err := experimentcli.Dial(ctx, con, url, "hub")
	if err != nil {
		return err
	}
	defer hub.Close()
	if lease == 0 {
		return nil
	}
	if err := hub.SetLease(ctx, lease); err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	return nil
}

// prepareCluster makes the stores of a fleet on an existing cluster.
func prepareCluster(ctx context.Context, con *console.Console, url string, lease time.Duration) error {
	if err := prepare(ctx, con, url, lease); err != nil {
		return err
	}
	fmt.Fprintf(con.Stderr, "the cluster is ready; use its URL where others use that of fit fleet serve\n")
	return nil
}

// maxSlots bounds the cells of a worker: coordinators publish as many as there are slots.
const maxSlots = 1000

func newWork(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := experimentcli.WorkerOptions{}
	slots := console.Count{Value: 1, Min: 1}
	var labels string
	cmd := &cobra.Command{
		Use:   "work [URL]",
		Short: "Run cells of a fleet on this machine",
		Long: `Run cells of a fleet on this machine until interrupted or drained.

The worker announces its agents with their versions, how it can isolate them, and its labels, and gets only cells that
it can run. Model keys come from this machine's environment. A worker that loses the hub for longer than the lease of
its cells stops them; others take them over.`,
		Example: `  fit fleet work fit://TOKEN@127.0.0.1:4222 --slots 4
  FIT_FLEET=fit://TOKEN@hub:4222?cert=FINGERPRINT fit fleet work --label gpu,eu`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if slots.Value > maxSlots {
				return console.Usagef("--slots %d: must be at most %d; start more workers", slots.Value, maxSlots)
			}
			url, err := hubURL(con, cmp.Or(append(args, "")...))
			if err != nil {
				return err
			}
			hub, err := experimentcli.Dial(cmd.Context(), con, url, "worker")
			if err != nil {
				return err
			}
			defer hub.Close()
			opts.Slots, opts.Labels, opts.Note, opts.Watched = slots.Value, console.List(labels), note(con), true
			if opts.Dir != "" {
				opts.Dir = con.Path(opts.Dir)
			}
			return experimentcli.Work(cmd.Context(), con, registry, hub, opts)
		},
	}
	flags := cmd.Flags()
	flags.Var(&slots, "slots", "cells to run concurrently")
	flags.StringVar(&labels, "label", "", "labels of this machine, separated by commas; arms and tasks may require "+
		"them")
	flags.StringVar(&opts.Name, "name", "", "name of the worker (default: the host's)")
	flags.StringVar(&opts.Dir, "dir", "", "directory of the worker's files (default: in the user's cache)")
	return cmd
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
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	o.cancel = cancel
	ready, say := make(chan struct{}, 2*workers), note(o.con)
	for i := range workers {
		hub, err := experimentcli.Dial(ctx, o.con, o.hub.URL(), "worker")
		if err != nil {
			return "", err
		}
		o.working.Go(func() {
			defer hub.Close()
			err := experimentcli.Work(background, o.con, o.registry, hub, experimentcli.WorkerOptions{
				Name:  fmt.Sprintf("local-%d", i+1),
				Slots: slots,
				Dir:   filepath.Join(dir, "workers"),
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
	return o.hub.URL(), nil
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
