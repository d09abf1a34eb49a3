package harnesscli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/harness/mcpserve"
	"github.com/fit-eval/fit/internal/cli/console"
)

// stdioCommand is what agents start when they reach the session's tools through a program.
const stdioCommand = "mcp-stdio"

func newMCPStdio(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:    stdioCommand,
		Short:  "Pass MCP messages between standard streams and a session's tool server (agents start this)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			in, ok := con.Stdin.(io.ReadCloser)
			if !ok {
				in = io.NopCloser(con.Stdin)
			}
			return mcpserve.Relay(command.Context(), con.Getenv(mcpserve.EnvURL), con.Getenv(mcpserve.EnvToken), in,
				openWriter{con.Stdout})
		},
	}
}

// openWriter is a writer that cannot be closed.
type openWriter struct{ io.Writer }

func (openWriter) Close() error { return nil }
