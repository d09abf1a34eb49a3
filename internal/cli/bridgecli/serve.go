package bridgecli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/view"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
)

// serveOptions are the flags of fit bridge serve.
type serveOptions struct {
	dir, listen, public string
	cert, key           string
	dispatch            string
	runs                console.Count
	limit               console.Span
	channels            channelOptions
	discuss             []string
}

func newServe(con *console.Console, dialects session.Dialects) *cobra.Command {
	opts := serveOptions{runs: console.Count{Value: 4, Min: 1}, limit: console.Span{Value: 5 * time.Hour}}
	command := &cobra.Command{
		Use:   "serve [-- FLAGS OF fit-harness discuss]",
		Short: "Serve threads, and hold the discussions in them",
		Long: `Serve threads in which people and agents discuss. What a person posts in a thread starts a discussion,
which is a run of fit-harness discuss with the flags after --: its agents, limits and budget. Further posts reach its
lead while it runs, or end the recess in which it waits. The threads, and what is due in them, are kept in a directory:
a bridge that was killed continues where it was, with its runs.

With --github, issues and discussions of GitHub are threads, and with --webhook every post is sent to an address.

The address of the bridge's owner is printed and written to owner.url in that directory, private to its owner: it holds
a token. Open it in a browser to read the threads live, post in them, suspend and resume their discussions, and see
what the agents do. The bridge listens on the loopback interface; on any other it needs a certificate. Set the
model's address for runs with FIT_MODEL_URL.`,
		Example: `  fit bridge serve -- --agent-profiles security,docs --max-cost-usd 2 --timeout 20m
  fit bridge serve --dispatch './start-my-workflow.sh'
  fit bridge serve --github octo/notes --github-secret-file webhook.secret -- --agent-profiles security,docs
  fit bridge serve --listen 0.0.0.0:4280 --public https://bridge.example:4280 --tls-cert bridge.pem \
    --tls-key bridge.key -- --agent-profiles security`,
		RunE: func(command *cobra.Command, args []string) error {
			opts.discuss = args
			if dash := command.ArgsLenAtDash(); len(args) > 0 && dash != 0 {
				return console.Usagef("%q: flags of fit-harness discuss stand after --", args[0])
			}
			return serve(command, con, dialects, &opts)
		},
	}
	flags := command.Flags()
	flags.StringVar(&opts.dir, "dir", "", dirUsage)
	flags.StringVar(&opts.listen, "listen", "127.0.0.1:4280", "`ADDRESS` to listen on; port 0 finds a free one")
	flags.StringVar(&opts.public, "public", "",
		"`URL` at which runs and people reach the bridge, if not that of --listen")
	flags.StringVar(&opts.cert, "tls-cert", "", "`FILE` with the certificate; needed unless --listen is loopback")
	flags.StringVar(&opts.key, "tls-key", "", "`FILE` with the key of the certificate")
	flags.StringVar(&opts.dispatch, "dispatch", "", "shell command that starts a run elsewhere, instead of "+
		"fit-harness discuss on this machine")
	opts.channels.register(flags)
	flags.Var(&opts.runs, "max-runs", "runs that are live concurrently")
	flags.Var(&opts.limit, "run-limit", "time within which a run must report its end")
	return command
}

func serve(command *cobra.Command, con *console.Console, dialects session.Dialects, opts *serveOptions) error {
	dir, err := directory(con, opts.dir)
	if err != nil {
		return err
	}
	if err := opts.check(); err != nil {
		return err
	}
	channels, err := opts.channels.open(con)
	if err != nil {
		return err
	}
	listener, address, err := listen(con, opts)
	if err != nil {
		return err
	}
	defer listener.Close()
	d := dispatcher{con: con, dir: dir, discuss: opts.discuss}
	listeners, reached := []net.Listener{listener}, address
	var hold func(context.Context, server.Job) error
	switch {
	case opts.dispatch != "":
		hold = d.command(opts.dispatch)
	case opts.channels.workflow != "":
		hold = channels.workflow.hold
	default:
		if d.resume, err = flagsOfResume(command.Root(), opts.discuss); err != nil {
			return err
		}
		hold = d.hold
		local, err := forRuns(opts, listener)
		if err != nil {
			return err
		}
		if reached = "http://" + local.Addr().String(); local != listener {
			defer local.Close()
			listeners = append(listeners, local)
		}
	}
	bridge, err := server.Open(server.Config{
		Dir:      dir,
		Address:  reached,
		Dispatch: hold,
		Spent:    d.spent(dialects),
		MaxRuns:  opts.runs.Value,
		RunLimit: opts.limit.Value,
		Channels: channels.list,
		Note:     func(text string) { fmt.Fprintln(con.Stderr, text) },
	})
	if errors.Is(err, server.ErrInUse) {
		return console.Exit(console.ExitUsage, err)
	}
	if err != nil {
		return console.Exit(console.ExitIncomplete, err)
	}
	pages, err := view.NewThreadPages(
		view.Config{
			Dialects: dialects,
			Prices:   con.Prices(),
			Redactor: redact.New(redact.Config{Environ: con.Environ}),
		},
		view.Bridge{Server: bridge, Address: address, Trace: func(tenant, run string) string {
			trace, _ := d.files(server.Job{Tenant: tenant, Run: run})
			return trace
		}})
	if err != nil {
		return errors.Join(console.Usagef("--public: %w", err), bridge.Close())
	}
	token, err := owner(con, dir, address)
	if err != nil {
		return errors.Join(err, bridge.Close())
	}
	fmt.Fprintln(con.Stdout, personURL(address, token))
	handler := channels.handler(bridge, pages)
	return errors.Join(answer(command.Context(), bridge, handler, listeners...), pages.Close())
}

func (opts *serveOptions) check() error {
	switch {
	case opts.dispatch != "" && opts.channels.workflow != "":
		return console.Usagef("--dispatch and --dispatch-workflow exclude each other")
	case (opts.dispatch != "" || opts.channels.workflow != "") && len(opts.discuss) > 0:
		return console.Usagef("--dispatch and --dispatch-workflow start runs of yours, so flags of fit-harness " +
			"discuss have no effect")
	}
	return nil
}

// answer serves until the context ends.
func answer(ctx context.Context, bridge *server.Server, handler http.Handler, listeners ...net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	web := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	served := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() {
			err := web.Serve(listener)
			cancel() // without its listeners, a bridge is of no use
			served <- err
		}()
	}
	err := bridge.Serve(ctx)
	closed := bridge.Close() // answers those who wait
	_ = web.Close()
	for range listeners {
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = cmp.Or(err, end)
		}
	}
	return errors.Join(err, closed)
}

// forRuns returns the port for the runs of this machine. Where people need TLS it is another one,
// on the loopback interface: the machine may not trust the certificate.
func forRuns(opts *serveOptions, listener net.Listener) (net.Listener, error) {
	if opts.cert == "" {
		return listener, nil
	}
	local, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, console.Exit(console.ExitIncomplete, fmt.Errorf("no port for runs: %w", err))
	}
	return local, nil
}

// listen opens the port, and returns the address at which it is reached.
func listen(con *console.Console, opts *serveOptions) (net.Listener, string, error) {
	host, _, err := net.SplitHostPort(opts.listen)
	if err != nil {
		return nil, "", console.Usagef("--listen must be HOST:PORT, not %q", opts.listen)
	}
	if opts.public != "" && !secure(opts.public) {
		return nil, "", console.Usagef("--public must be an https URL, or one of this machine: tokens would be sent " +
			"in the clear")
	}
	if (opts.cert == "") != (opts.key == "") {
		return nil, "", console.Usagef("--tls-cert and --tls-key belong together")
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) && opts.cert == "" {
		return nil, "", console.Usagef("--listen %s: other machines can reach it, and tokens would be sent in the "+
			"clear; add --tls-cert and --tls-key", opts.listen)
	}
	if opts.public == "" && (host == "" || ip != nil && ip.IsUnspecified()) {
		return nil, "", console.Usagef("--listen %s is every address of this machine; add --public with the one that "+
			"the certificate is for, such as https://bridge.example:4280", opts.listen)
	}
	scheme := "http"
	var secured *tls.Config
	if opts.cert != "" {
		pair, err := tls.LoadX509KeyPair(con.Path(opts.cert), con.Path(opts.key))
		if err != nil {
			return nil, "", console.Usagef("--tls-cert: %w", err)
		}
		scheme, secured = "https", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	listener, err := net.Listen("tcp", opts.listen)
	if err != nil {
		return nil, "", console.Exit(console.ExitUsage, fmt.Errorf("--listen %s: %w", opts.listen, err))
	}
	address := cmp.Or(strings.TrimSuffix(opts.public, "/"), scheme+"://"+listener.Addr().String())
	if secured != nil {
		listener = tls.NewListener(listener, secured)
	}
	return listener, address, nil
}

// files is where a run keeps its trace, and where the agents of its thread keep their
// conversations.
func (d dispatcher) files(job server.Job) (trace, home string) {
	at := filepath.Join(d.dir, "tenants", job.Tenant)
	return filepath.Join(at, "runs", job.Run, "trace.ndjson"), filepath.Join(at, "homes", job.Thread)
}
