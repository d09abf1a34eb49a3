package cli

import (
	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/agentscli"
	"github.com/fit-eval/fit/internal/cli/benchmarkcli"
	"github.com/fit-eval/fit/internal/cli/bridgecli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/democli"
	"github.com/fit-eval/fit/internal/cli/doctorcli"
	"github.com/fit-eval/fit/internal/cli/fleetcli"
	"github.com/fit-eval/fit/internal/cli/gatewaycli"
	"github.com/fit-eval/fit/internal/cli/harnesscli"
	"github.com/fit-eval/fit/internal/cli/modelcli"
	"github.com/fit-eval/fit/internal/cli/selfeditcli"
	"github.com/fit-eval/fit/internal/cli/sessioncli"
	"github.com/fit-eval/fit/internal/cli/skillcli"
	"github.com/fit-eval/fit/internal/cli/statscli"
	"github.com/fit-eval/fit/internal/cli/tracecli"
	"github.com/fit-eval/fit/internal/cli/versuscli"
	"github.com/fit-eval/fit/internal/cli/viewcli"
)

// commands is the list of everything fit can do. A new command tree is one line here.
func commands(con *console.Console, registry *agent.Registry) []*cobra.Command {
	return []*cobra.Command{
		harnesscli.New(con, registry),
		tracecli.New(con, registry.Dialects()),
		benchmarkcli.New(con, registry),
		versuscli.New(con, registry),
		skillcli.New(con, registry),
		sessioncli.New(con, registry.Dialects(), registry.Secrets),
		statscli.New(con, registry.Dialects()),
		modelcli.New(con),
		gatewaycli.New(con, registry.Secrets),
		fleetcli.New(con, registry),
		bridgecli.New(con, registry.Dialects()),
		selfeditcli.New(con),
		viewcli.New(con, registry.Dialects()),
		democli.New(con),
		agentscli.New(con, registry),
		doctorcli.New(con, registry),
	}
}
