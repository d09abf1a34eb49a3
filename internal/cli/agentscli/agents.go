// Package agentscli is the command fit agents: which agents there are, what they say they can do,
// and what they were seen to do.
package agentscli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/sandbox"
)

// New returns the command.
func New(con *console.Console, registry *agent.Registry) *cobra.Command {
	command := &cobra.Command{
		Use:   "agents",
		Short: "List the agents, and test what they can do",
		Long: `List the agents, and test what they can do.

fit knows some agents by name. Add others in agents.yaml, in the current directory or in ~/.config/fit, or name them
directly: cmd:PROGRAM, acp:PROGRAM, http://HOST.`,
	}
	command.AddCommand(newList(con, registry), newShow(con, registry), newTry(con, registry))
	return command
}

// row is an agent as it is listed.
type row struct {
	ID        string   `json:"id"`
	Title     string   `json:"title"`
	Installed bool     `json:"installed"`
	Version   string   `json:"version,omitempty"`
	Path      string   `json:"path,omitempty"`
	Protocols []string `json:"protocols,omitempty"`
	// Problem is why it cannot be run here.
	Problem string `json:"problem,omitempty"`
}

func newList(con *console.Console, registry *agent.Registry) *cobra.Command {
	var format console.Format
	command := &cobra.Command{
		Use:     "list",
		Short:   "List the agents",
		Example: "  fit agents list",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var rows []row
			for _, a := range registry.All() {
				rows = append(rows, describe(command.Context(), con, a))
			}
			if err := command.Context().Err(); err != nil {
				return err // not everything was looked at
			}
			if format.JSON() {
				return jsonenc.WriteIndented(con.Stdout, rows)
			}
			return printList(con, rows)
		},
	}
	format.Register(command.Flags(), "output format")
	return command
}

func host(con *console.Console) agent.Host {
	found := agent.Host{Environ: con.Environ, Spawner: sandbox.NewSpawner()}
	if cache, err := os.UserCacheDir(); err == nil {
		found.CacheDir = filepath.Join(cache, "fit")
	}
	return found
}

func describe(ctx context.Context, con *console.Console, a agent.Agent) row {
	info := a.Info()
	line := row{ID: string(info.ID), Title: info.Title, Protocols: info.Protocols}
	installation, err := a.Probe(ctx, host(con))
	var notFound *agent.NotFoundError
	switch {
	case errors.As(err, &notFound):
		line.Problem = "not installed; " + notFound.WayOut()
	case err != nil:
		line.Problem = err.Error()
	default:
		line.Installed, line.Version, line.Path = true, installation.Version, installation.Path
	}
	return line
}

func printList(con *console.Console, rows []row) error {
	table := con.Table()
	fmt.Fprintln(table, "AGENT\tVERSION\tWHAT IT IS")
	for _, r := range rows {
		about := r.Title
		if r.Problem != "" {
			about += " (" + r.Problem + ")"
		}
		version := r.Version
		if !r.Installed {
			version = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", display.Name(r.ID), display.Line(version), display.Line(about))
	}
	return table.Flush()
}

func newShow(con *console.Console, registry *agent.Registry) *cobra.Command {
	var format console.Format
	command := &cobra.Command{
		Use:     "show AGENT",
		Short:   "Show an agent's declared capabilities",
		Example: "  fit agents show builtin\n  fit agents show 'cmd:./my-agent {prompt}'",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			a, err := registry.Get(args[0])
			if err != nil {
				return console.Exit(console.ExitUsage, err)
			}
			line := describe(command.Context(), con, a)
			if err := show(con, line, a.Info(), format.Value); err != nil {
				return err
			}
			if !line.Installed && !slices.Contains(registry.IDs(), line.ID) { // nothing is known but what was given
				return console.Exit(console.ExitIncomplete, fmt.Errorf("%s: %s", line.ID, line.Problem))
			}
			return nil
		},
	}
	format.Register(command.Flags(), "output format")
	return command
}

// feature is something that an agent says it has.
type feature struct {
	Name    string        `json:"name"`
	Support agent.Support `json:"support"`
}

func featuresOf(c agent.Capabilities) []feature {
	return []feature{
		{"resume a conversation", c.Resume},
		{"several prompts in one process", c.LongLived},
		{"tools over MCP", c.MCP},
		{"count tokens", c.Usage},
		{"turn limit", c.MaxTurns},
		{"append to the system prompt", c.SystemPromptAppend},
		{"replace the system prompt", c.SystemPromptReplace},
		{"allow only some tools", c.AllowedTools},
		{"forbid some tools", c.DisallowedTools},
		{"run on a subscription", c.Subscription},
	}
}

func show(con *console.Console, line row, info agent.Info, format string) error {
	features := featuresOf(info.Capabilities)
	if format == "json" {
		return jsonenc.WriteIndented(con.Stdout, map[string]any{
			"agent": line, "capabilities": features, "install": info.InstallHint, "login": info.LoginHint,
			"credentials": info.Credentials,
		})
	}
	table := con.Table()
	status := line.Problem
	if line.Installed {
		status = strings.TrimSpace(line.Version + "  " + line.Path)
	}
	for _, pair := range [][2]string{
		{"agent", line.ID},
		{"what it is", line.Title},
		{"version", status},
		{"install", info.InstallHint},
		{"credentials", info.LoginHint},
		{"model protocols", strings.Join(line.Protocols, ", ")},
	} {
		if pair[1] != "" {
			fmt.Fprintf(table, "%s\t%s\n", pair[0], display.Line(pair[1]))
		}
	}
	for _, f := range features {
		support := string(f.Support)
		switch f.Support {
		case agent.Unsupported:
			support = "no"
		case agent.Native:
			support = "yes"
		case agent.Enforced:
			support = "yes, held by fit"
		}
		fmt.Fprintf(table, "%s\t%s\n", f.Name, support)
	}
	return table.Flush()
}
