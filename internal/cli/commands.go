package cli

import (
	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
)

// commands is the list of everything fit can do. A new command tree is one line here.
func commands(_ *console.Console) []*cobra.Command {
	return []*cobra.Command{}
}
