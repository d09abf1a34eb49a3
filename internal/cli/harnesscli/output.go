package harnesscli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/query/export"
)

func newOutput(con *console.Console, registry *agent.Registry) *cobra.Command {
	var format console.Format
	command := &cobra.Command{
		Use:     "output",
		Short:   "Convert a trace on standard input to one document, or to text",
		Example: `  fit-harness output --format text < trace.ndjson`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if format.Value == "text" {
				known, err := replay(con, registry, io.Discard)
				if err == nil && !known {
					err = errNothing()
				}
				return err
			}
			return writeDocument(command.Context(), con, registry)
		},
	}
	format.Register(command.Flags(), "output format", console.FormatJSON, console.FormatText)
	return command
}

func errNothing() error { return console.Usagef("standard input holds %w", query.ErrNothing) }

func writeDocument(ctx context.Context, con *console.Console, registry *agent.Registry) error {
	source, err := query.Open("-", query.Options{
		Dialects: registry.Dialects(),
		Prices:   con.Prices(),
		Stdin:    con.Stdin,
		Redactor: newRedactor(con, registry),
	})
	if err != nil {
		return err
	}
	err = export.Document(ctx, source, con.Stdout)
	if errors.Is(err, query.ErrNothing) {
		return errNothing()
	}
	if err == nil && source.Problems().NoEnd {
		fmt.Fprintln(con.Stderr, query.CutOff)
	}
	return err
}
