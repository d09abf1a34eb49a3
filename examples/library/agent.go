package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/agent/events"
	"github.com/fit-eval/fit/session"
)

// scribe is an agent in this process: it writes its prompt into a file.
type scribe struct{}

// Info implements fit.Agent.
func (scribe) Info() fit.AgentInfo { return fit.AgentInfo{ID: "scribe", Title: "Scribe"} }

// Probe implements fit.Agent.
func (scribe) Probe(context.Context, fit.AgentHost) (fit.AgentInstallation, error) {
	return fit.AgentInstallation{Version: "1.0.0"}, nil
}

// Dialects implements fit.Agent.
func (scribe) Dialects() []session.Dialect { return []session.Dialect{events.Dialect()} }

// Start implements fit.Agent.
func (scribe) Start(_ context.Context, setup fit.AgentSetup) (fit.AgentSession, error) {
	return &writing{setup}, nil
}

// writing is a session of the scribe.
type writing struct{ setup fit.AgentSetup }

// Prompt implements fit.AgentSession.
func (w *writing) Prompt(_ context.Context, text string) (fit.AgentResult, error) {
	began := time.Now().UnixMilli()
	err := os.WriteFile(filepath.Join(w.setup.Dir, "prompt.txt"), []byte(text), 0o600)
	w.setup.Events(events.Line(events.Text{Type: events.TypeText, Text: "I wrote it down."}))
	w.setup.Events(events.Line(events.Result{Type: events.TypeResult, Success: err == nil, Text: "Done."}))
	return fit.AgentResult{
		Success: err == nil,
		Outcome: session.OutcomeSuccess,
		Text:    "Done.",
		Err:     err,
		Turns:   1,
		Output: fit.RawAgentOutput{
			Agent:   "scribe",
			StartMs: began,
			EndMs:   time.Now().UnixMilli(),
			Argv:    []string{"scribe"},
			Version: "1.0.0",
		},
	}, nil
}

// ID implements fit.AgentSession.
func (*writing) ID() string { return "" }

// Close implements fit.AgentSession.
func (*writing) Close() error { return nil }

// ownAgent runs an agent that fit has never heard of.
func ownAgent(ctx context.Context, _ string, args []string) error {
	wiring := fit.Wiring{Registry: fit.Agents(scribe{})}
	result, err := wiring.Run(ctx, fit.RunConfig{
		Task:   "Remember this.",
		Cwd:    args[0],
		Agent:  "scribe",
		Output: io.Discard,
	})
	if err != nil {
		return err
	}
	written, err := os.ReadFile(filepath.Join(args[0], "prompt.txt"))
	fmt.Printf("%t: %s\n", result.Success, written)
	showOutput(result.Output)
	return err
}

// showOutput prints what the process of an agent left, of which fit builds everything else.
func showOutput(left fit.RawAgentOutput) {
	fmt.Println("ran", left.Argv[0], left.Version, "and ended with", left.ExitCode)
}
