package harnesscli

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

func newTee(con *console.Console, registry *agent.Registry) *cobra.Command {
	return &cobra.Command{
		Use:     "tee [FILE]",
		Short:   "Show a trace on standard input as text, and copy it to a file",
		Example: `  some-agent | fit-harness tee trace.ndjson`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			copyTo := io.Discard
			if len(args) == 1 {
				file, err := os.Create(con.Path(args[0]))
				if err != nil {
					return console.Exit(console.ExitUsage, err)
				}
				defer file.Close()
				copyTo = file
			}
			_, err := replay(con, registry, copyTo)
			return err
		},
	}
}

// replay renders a trace from standard input and copies every line, broken ones included, as it
// came but for secrets. It reports whether an event of ours or of an agent that fit knows was among
// them.
func replay(con *console.Console, registry *agent.Registry, copyTo io.Writer) (known bool, err error) {
	text := newRenderer(con, registry)
	redactor := newRedactor(con, registry)
	reader := trace.NewReader(con.Stdin)
	for line, err := range reader.All() {
		if err != nil {
			return known, fmt.Errorf("read trace: %w", err)
		}
		clean := redactor.JSON(line.Raw)
		if _, err := copyTo.Write(append(slices.Clone(clean), '\n')); err != nil {
			return known, fmt.Errorf("copy trace: %w", err)
		}
		if env, err := trace.ParseLine(clean); line.Problem == nil && err == nil {
			text.Line(env)
			known = known || env.Source == trace.Orchestrator || recognised(registry, env.Event)
		}
	}
	if reader.Skipped > 0 {
		fmt.Fprintf(con.Stderr, "lines that could not be read: %d\n", reader.Skipped)
	}
	return known, text.Close()
}

// recognised reports whether an agent that fit knows prints such events.
func recognised(registry *agent.Registry, event []byte) bool {
	return slices.ContainsFunc(registry.Dialects(), func(d session.Dialect) bool {
		return d.Recognise != nil && d.Recognise(event)
	})
}
