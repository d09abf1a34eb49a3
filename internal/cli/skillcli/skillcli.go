// Package skillcli is the command tree fit skill: tests of skills.
package skillcli

import (
	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
)

// New returns the command.
func New(con *console.Console, registry *agent.Registry) *cobra.Command {
	command := &cobra.Command{
		Use:   "skill",
		Short: "Test skills: does a SKILL.md help, and what does it cost",
		Args:  cobra.NoArgs,
	}
	command.AddCommand(newInit(con), newTest(con, registry), newTrigger(con, registry), newLint(con))
	return command
}
