package fit

import (
	"cmp"
	"fmt"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/treatment"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
)

// projectOf lists what the agent of a run reads of its project by itself, before it starts and can
// change anything, and says where the proof of it is.
func (w Wiring) projectOf(played agent.Agent, settings agent.Config, cfg *RunConfig, redactor *redact.Redactor,
) (treatment.Config, error) {
	given := treatment.Config{
		Calls:    w.Calls.Path,
		Context:  cmp.Or(settings.Context, agent.ContextProject),
		Known:    []string{cfg.Task},
		Redactor: redactor,
	}
	given.Unknown = w.unknownDelivery(played, settings)
	if record, err := calls.Open(w.Calls.Path); err == nil {
		given.Earlier = len(record.Calls())
		_ = record.Close() // nothing was written
	}
	if text := settings.SystemPrompt; cfg.AgentProfile != "" && text != "" {
		piece := ledger.Piece{Kind: ledger.PieceProfile, Name: cfg.AgentProfile, From: ledger.FromTask}
		given.Pieces = append(given.Pieces, treatment.Piece{Piece: piece, Text: text})
	}
	if given.Context == agent.ContextNone {
		return given, nil
	}
	found, err := treatment.Find(settings.Dir, played.Info().Places)
	if err != nil {
		return given, fmt.Errorf("find what the agent reads: %w", err)
	}
	given.Pieces = append(given.Pieces, found...)
	elsewhere, err := treatment.Elsewhere(settings.Dir, found)
	if err != nil {
		return given, fmt.Errorf("look for what the agent reads in other files: %w", err)
	}
	given.Known = append(given.Known, elsewhere)
	return given, nil
}

// unknownDelivery returns why the run keeps no record of what its model is sent; empty if it does.
func (w Wiring) unknownDelivery(played agent.Agent, settings agent.Config) string {
	why := agent.WithoutGateway(played, settings)
	switch {
	case why != "":
		return "the model calls do not pass the gateway: " + why
	case w.Calls.Path == "":
		return "the requests are not kept (--output FILE keeps them beside the trace)"
	case w.Calls.Record == calls.RecordMeta || w.Calls.Record == calls.RecordOff:
		return "the requests are not kept (--record " + w.Calls.Record + ")"
	default:
		return ""
	}
}

// readGiven reads what the model of a run was given.
func readGiven(given treatment.Config, result RunResult) *ledger.Treatment {
	found, err := treatment.Read(given)
	if err != nil {
		given.Calls, given.Unknown = "", "the record of the model calls could not be read: "+err.Error()
		found, _ = treatment.Read(given) // without a record nothing can fail
	}
	if found.Unknown == "" && len(found.Served) == 0 && !result.Success { // a request that failed reached nobody
		found.Unknown = "no model answered"
	}
	return found
}
