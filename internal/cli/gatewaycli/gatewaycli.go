// Package gatewaycli is the command tree of fit gateway: the gateway as a server of its own, for
// agents that fit does not start itself.
package gatewaycli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/redact"
)

// New returns the command fit gateway. secrets are the credentials of all agents in an environment.
func New(con *console.Console, secrets func([]string) map[string]string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Serve the proxy between agents and their models",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newServe(con, secrets))
	return cmd
}

// serveOptions are the flags of fit gateway serve.
type serveOptions struct {
	addr, modelURL string
	format         console.Format
	gateway        console.Gateway
}

func newServe(con *console.Console, secrets func([]string) map[string]string) *cobra.Command {
	var opts serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the gateway on the loopback interface",
		Long: `Serve the gateway on the loopback interface until interrupted.

The other commands start a gateway by themselves. Start one by hand for agents that fit does not start: give them its
address, and a token in place of the key. Every call that they make is shown on standard error. The variables to set
for them are printed on standard output.

Calls go to --model-url, or to the addresses in ANTHROPIC_BASE_URL and OPENAI_BASE_URL, or to the vendors, with the
keys in ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN and OPENAI_API_KEY.`,
		Example: `  fit gateway serve >gateway.env
  fit gateway serve --model-url http://127.0.0.1:8080 --format json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), con, opts, redact.New(redact.Config{
				Environ: con.Environ,
				Extra:   secrets(con.Environ),
				Warn:    con.Stderr,
			}))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.addr, "addr", "127.0.0.1:0", "loopback `ADDRESS` to listen on; port 0 finds a free one")
	flags.StringVar(&opts.modelURL, "model-url", "",
		"model endpoint that calls go to, without /v1 (also FIT_MODEL_URL; default: the vendors')")
	opts.format.Register(flags, "output format of the address and the token")
	opts.gateway.RegisterRequests(flags)
	return cmd
}

// serve runs the gateway until ctx is cancelled; cancellation is not an error.
func serve(ctx context.Context, con *console.Console, opts serveOptions, redactor *redact.Redactor) error {
	upstreams, err := upstreamsOf(con, opts.modelURL)
	if err != nil {
		return err
	}
	policy, err := opts.gateway.Policy(con)
	if err != nil {
		return err
	}
	proxy, err := gateway.Start(gateway.Config{
		Policy:   policy,
		Addr:     opts.addr,
		Redactor: redactor,
		Prices:   con.Prices(),
	})
	if err != nil {
		return console.Usagef("--addr: %w", err)
	}
	seat, err := proxy.Join(gateway.Member{
		Name:      "agent",
		Upstreams: upstreams,
		OnCall:    func(c calls.Call) { showCall(con.Stderr, c) },
	})
	if err == nil {
		err = announce(con.Stdout, opts.format.Value, seat)
	}
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, proxy.Close())
}

// upstreamsOf are the endpoints that an environment names: those with a key, and those with an
// address.
func upstreamsOf(con *console.Console, modelURL string) ([]gateway.Upstream, error) {
	modelURL = cmp.Or(modelURL, con.Getenv("FIT_MODEL_URL"))
	var found []gateway.Upstream
	for _, name := range model.ProtocolNames() {
		cfg := model.ConfigFromEnv(model.Protocol(name), con.Getenv)
		cfg.ModelURL = modelURL
		to, err := gateway.UpstreamOf(cfg)
		if err != nil {
			return nil, console.Exit(console.ExitUsage, err)
		}
		if modelURL != "" || cfg.BaseURL != "" || to.Header != nil {
			found = append(found, to)
		}
	}
	if len(found) == 0 {
		return nil, console.Usagef("no model to pass calls to: set %s, or set --model-url", model.KeyHint())
	}
	return found, nil
}

// announce prints what an agent needs: as variables of a shell, or as JSON.
func announce(w io.Writer, format string, seat *gateway.Seat) error {
	if format == "json" {
		return json.NewEncoder(w).Encode(struct {
			URL    string `json:"url"`
			Token  string `json:"token"`
			Socket string `json:"socket"`
		}{seat.URL, seat.Token, seat.SocketPath})
	}
	_, err := fmt.Fprintln(w, strings.Join(model.Settings(seat.URL, seat.Token), "\n"))
	return err
}

// showCall prints a call that has ended.
func showCall(w io.Writer, c calls.Call) {
	line := fmt.Sprintf("%s %s %d %s %dms", c.Path, c.Model, c.Status, c.Outcome, c.EndMs)
	if c.Usage != nil {
		line += fmt.Sprintf(", %d tokens in, %d out", c.Usage.Prompt(), c.Usage.OutputTokens)
	}
	if c.CostUSD != nil {
		line += ", " + display.FineDollars(*c.CostUSD)
	}
	if len(c.ServerTools) > 0 {
		line += fmt.Sprintf(", tools at the vendor: %v", c.ServerTools)
	}
	if c.Error != "" {
		line += ": " + c.Error
	}
	fmt.Fprintln(w, display.Line(line))
}
