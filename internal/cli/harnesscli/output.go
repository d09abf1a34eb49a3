package harnesscli

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/query"
)

func newOutput(con *console.Console, registry *agent.Registry) *cobra.Command {
	format := console.Choice{Value: "json", Choices: []string{"json", "text"}}
	command := &cobra.Command{
		Use:     "output",
		Short:   "Turn a trace on standard input into one document, or into text",
		Example: `  fit-harness output --format text < trace.ndjson`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if format.Value == "text" {
				return replay(con, registry, io.Discard)
			}
			return writeDocument(command.Context(), con, registry)
		},
	}
	command.Flags().Var(&format, "format", "what to make of it")
	return command
}

// document is a whole trace as one JSON value.
type document struct {
	Version   string            `json:"version"`
	Metadata  query.Metadata    `json:"metadata"`
	InitEvent json.RawMessage   `json:"initEvent"`
	Turns     []json.RawMessage `json:"turns"`
	Summary   query.Summary     `json:"summary"`
	// Verdict and Lanes are additional: a team has more than one participant.
	Verdict string           `json:"verdict,omitempty"`
	Lanes   []query.LaneInfo `json:"lanes,omitempty"`
}

func writeDocument(ctx context.Context, con *console.Console, registry *agent.Registry) error {
	source, err := query.Open("-", query.Options{
		Dialects:  registry.Dialects(),
		Prices:    con.Prices(),
		Stdin:     con.Stdin,
		IndexFrom: -1,
	})
	if err != nil {
		return err
	}
	doc := document{Version: query.DocumentVersion, Turns: []json.RawMessage{}}
	info, err := source.Filter(ctx, query.Criteria{}, func(turn *query.Turn) error {
		encoded, err := turn.MarshalJSON()
		doc.Turns = append(doc.Turns, encoded)
		return err
	})
	if err != nil {
		return err
	}
	doc.Metadata, doc.InitEvent, doc.Summary, doc.Verdict, doc.Lanes = info.Metadata, info.InitEvent, info.Summary, info.Verdict, info.Lanes
	if doc.InitEvent == nil {
		doc.InitEvent = json.RawMessage("null")
	}
	return jsonenc.Write(con.Stdout, doc)
}
