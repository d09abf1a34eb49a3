package cli

import (
	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/internal/cli/agentscli"
	"github.com/fit-eval/fit/internal/cli/benchmarkcli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/democli"
	"github.com/fit-eval/fit/internal/cli/doctorcli"
	"github.com/fit-eval/fit/internal/cli/fleetcli"
	"github.com/fit-eval/fit/internal/cli/gatewaycli"
	"github.com/fit-eval/fit/internal/cli/harnesscli"
	"github.com/fit-eval/fit/internal/cli/modelcli"
	"github.com/fit-eval/fit/internal/cli/selfeditcli"
	"github.com/fit-eval/fit/internal/cli/sessioncli"
	"github.com/fit-eval/fit/internal/cli/statscli"
	"github.com/fit-eval/fit/internal/cli/tracecli"
	"github.com/fit-eval/fit/internal/cli/versuscli"
	"github.com/fit-eval/fit/internal/cli/viewcli"
)

// tree is a command with all that are below it.
type tree struct {
	name, alias string
	summary     string
	build       func() *cobra.Command
}

// trees is the list of everything fit can do. A new command tree is one entry here.
func trees(con *console.Console, registry *agent.Registry) []tree {
	return []tree{
		{
			name:    "harness",
			alias:   "eval",
			summary: "Run agents and keep a trace of everything they did",
			build:   func() *cobra.Command { return harnesscli.New(con, registry) },
		},
		{
			name:    "trace",
			summary: "Read, search, compare and check traces",
			build:   func() *cobra.Command { return tracecli.New(con, registry.Dialects()) },
		},
		{
			name:    "benchmark",
			summary: "Measure agents on tasks with hidden tests, and report whether a change made one better",
			build:   func() *cobra.Command { return benchmarkcli.New(con, registry) },
		},
		{
			name:    "versus",
			summary: "Compare agents on the same tasks, with evidence that can be checked",
			build:   func() *cobra.Command { return versuscli.New(con, registry) },
		},
		{
			name:    "session",
			summary: "Show what an agent did, from a trace, a stream, or the files agents keep on disk",
			build:   func() *cobra.Command { return sessioncli.New(con, registry.Dialects(), registry.Secrets) },
		},
		{
			name:    "stats",
			summary: "Run the statistics of fit reports on your own numbers",
			build:   func() *cobra.Command { return statscli.New(con) },
		},
		{
			name:    "model",
			summary: "Serve a scripted language model",
			build:   func() *cobra.Command { return modelcli.New(con) },
		},
		{
			name:    "gateway",
			summary: "Serve the proxy between agents and their models",
			build:   func() *cobra.Command { return gatewaycli.New(con, registry.Secrets) },
		},
		{
			name:    "fleet",
			summary: "Run experiments on many machines",
			build:   func() *cobra.Command { return fleetcli.New(con, registry) },
		},
		{
			name:    "selfedit",
			summary: "Write standard input to a file the project's settings allow, on a safe branch",
			build:   func() *cobra.Command { return selfeditcli.New(con) },
		},
		{
			name:    "view",
			summary: "Look at experiments, runs and traces in the browser, live",
			build:   func() *cobra.Command { return viewcli.New(con, registry.Dialects()) },
		},
		{
			name:    "demo",
			summary: "Show the main job in seconds, offline",
			build:   func() *cobra.Command { return democli.New(con) },
		},
		{
			name:    "agents",
			summary: "List the agents that can be run, and try what they can do",
			build:   func() *cobra.Command { return agentscli.New(con, registry) },
		},
		{
			name:    "doctor",
			summary: "Show which agents, credentials and tools this machine has, and how to get what is missing",
			build:   func() *cobra.Command { return doctorcli.New(con, registry) },
		},
	}
}

// commands are the trees. One that the command line does not name is only listed: to build all of
// them would take a tenth of the time in which fit starts.
func commands(con *console.Console, registry *agent.Registry, named func(name string) bool) []*cobra.Command {
	var all []*cobra.Command
	for _, t := range trees(con, registry) {
		command := &cobra.Command{Use: t.name, Run: func(*cobra.Command, []string) {}}
		if named(t.name) || t.alias != "" && named(t.alias) {
			command = t.build()
		}
		command.Short = t.summary
		if t.alias != "" {
			command.Aliases = []string{t.alias}
		}
		all = append(all, command)
	}
	return all
}
