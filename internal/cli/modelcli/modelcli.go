// Package modelcli is the command tree of fit model: the scripted model as a server of its own, for
// clients that fit does not start itself.
package modelcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/model/scripted"
)

// New returns the command fit model.
func New(con *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Serve a scripted language model",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newServe(con))
	return cmd
}

// serveOptions are the flags of fit model serve.
type serveOptions struct {
	Scripts   []string
	Vars      []string
	Addr      string
	Log       string
	LogBodies bool
	Format    console.Format
}

func newServe(con *console.Console) *cobra.Command {
	var opts serveOptions
	cmd := &cobra.Command{
		Use:   "serve --script FILE",
		Short: "Serve a scripted model on the loopback interface",
		Long: `Serve a scripted model on the loopback interface until interrupted.

It speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Google's generateContent, so any agent can be run against it
without a key or a network. The address is printed on standard output: give it to an agent as ANTHROPIC_BASE_URL, with
/v1 appended as OPENAI_BASE_URL, or to fit as --model-url.

A script is a JSON file: {"turns": [{"text": "I'll look.", "calls": [{"read": "a.go"}]}, {"text": "Done."}]}. The same
script drives every agent; docs/scripted-model.md has the whole format.`,
		Example: `  fit model serve --script fix.json
  fit model serve --script easy=easy.json --script hard=hard.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), con, opts)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&opts.Scripts, "script", nil,
		"script `FILE`, or NAME=FILE to serve it under /s/NAME (repeatable)")
	flags.StringArrayVar(&opts.Vars, "var", nil, "`NAME=VALUE` for ${NAME} in scripts (repeatable)")
	flags.StringVar(&opts.Addr, "addr", "127.0.0.1:0", "loopback `ADDRESS` to listen on; port 0 finds a free one")
	flags.StringVar(&opts.Log, "log", "", "append one line of JSON per request to `FILE`")
	flags.BoolVar(&opts.LogBodies, "log-bodies", false,
		"log the requests' bodies too; they hold everything the agent knows")
	opts.Format.Register(flags, "how to print the address")
	return cmd
}

// serve runs the server until ctx is cancelled; cancellation is not an error.
func serve(ctx context.Context, con *console.Console, opts serveOptions) error {
	scripts, err := loadScripts(con, opts.Scripts)
	if err != nil {
		return err
	}
	vars, err := parseVars(opts.Vars)
	if err != nil {
		return err
	}
	serverOptions := scripted.Options{Vars: vars, LogBodies: opts.LogBodies}
	if opts.Log != "" {
		file, err := os.OpenFile(con.Path(opts.Log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return console.Usagef("--log: %w", err)
		}
		defer func() { _ = file.Close() }()
		serverOptions.Log = file
	}
	server, err := scripted.Listen(opts.Addr, onlyLocal(scripted.NewServer(scripts, serverOptions)))
	if err != nil {
		return console.Usagef("--addr: %w", err)
	}
	if err := announce(con.Stdout, opts.Format.Value, server.URL, scripts); err != nil {
		return errors.Join(fmt.Errorf("print the address: %w", err), server.Close())
	}
	select {
	case <-ctx.Done():
		return server.Close()
	case err := <-server.Done():
		return errors.Join(errors.New("the scripted model exited on its own"), err)
	}
}

// onlyLocal refuses requests that name another host than this machine: a page in a browser could
// otherwise reach the server through a name that it has pointed here.
func onlyLocal(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if address := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" &&
			(address == nil || !address.IsLoopback()) {
			http.Error(w, "this server answers requests to localhost only", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// loadScripts reads FILE and NAME=FILE arguments.
func loadScripts(con *console.Console, given []string) (map[string]*scripted.Script, error) {
	if len(given) == 0 {
		return nil, console.Usagef("--script FILE is required")
	}
	scripts := map[string]*scripted.Script{}
	for _, argument := range given {
		name, file, named := strings.Cut(argument, "=")
		if !named {
			name, file = "", argument
		}
		if strings.Contains(name, "/") { // a file whose own name has an equals sign
			name, file = "", argument
		}
		if _, twice := scripts[name]; twice {
			return nil, console.Usagef("--script: two scripts are called %q; name them with NAME=FILE", name)
		}
		script, err := scripted.Load(con.Path(file))
		if err != nil {
			return nil, console.Usagef("--script: %w", err)
		}
		scripts[name] = script
	}
	return scripts, nil
}

func parseVars(given []string) (map[string]string, error) {
	vars := map[string]string{}
	for _, argument := range given {
		name, value, ok := strings.Cut(argument, "=")
		if !ok || name == "" {
			return nil, console.Usagef("--var must be NAME=VALUE, not %q", argument)
		}
		vars[name] = value
	}
	return vars, nil
}

// announce prints where the scripts are served: the address alone as text, everything as JSON.
func announce(w io.Writer, format, url string, scripts map[string]*scripted.Script) error {
	if format == "text" {
		_, err := fmt.Fprintln(w, url)
		return err
	}
	urls := map[string]string{}
	for name := range scripts {
		urls[name] = url + scripted.Path(name, "", "")
	}
	return json.NewEncoder(w).Encode(struct {
		URL     string            `json:"url"`
		Scripts map[string]string `json:"scripts"`
	}{url, urls})
}
