// Package treatment proves that what an arm changes reached the agent. It lists the pieces that an
// agent is to be given (instruction files, skills, sub-agents, prompts), and finds in the recorded
// model calls of a run how much of each the model was given, by content, and whether what is loaded
// on demand was opened. Nothing is added to the path of a request: all of this reads files after a
// run.
package treatment

import (
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
)

// Piece is one text that an agent is to be given, as it was when the agent started.
type Piece struct {
	ledger.Piece // Kind, Name, Path, Digest and From are filled in
	// Text is what the model is given at the start: an instruction file, a prompt, the description
	// of a skill, a sub-agent or a command.
	Text string
	// Body is what is loaded on demand: the rest of a SKILL.md; empty if there is nothing.
	Body string
	// Others are the bodies of the other versions of the same skill in the experiment: a line that
	// one of them has too does not show that this one was opened.
	Others []string
	// Hidden says that the piece keeps itself from the model: only a person may call it.
	Hidden bool
}

// Config says what to look for in the record of a run's calls.
type Config struct {
	Calls       string // the file of the record
	Participant string // whose calls count; empty: everybody's
	Context     string
	Pieces      []Piece
	// Redactor is the one that the record was written with: both sides pass through it.
	Redactor *redact.Redactor
	// Unknown says why the record cannot be relied on, such as a subscription that does not pass
	// the gateway; empty: it can.
	Unknown string
}

// Read grades every piece.
func Read(cfg Config) (*ledger.Treatment, error) { return &ledger.Treatment{Context: cfg.Context}, nil }

// Start is what a model was given first: the first request that carries a turn and offers tools.
type Start struct {
	Agent  string // id and version
	Model  string
	System []string // the parts of the system prompt, decoded
	Texts  []string // of the messages
	Tools  []string // name and description of each
	// Options are the sampling and other settings of the request: its other members, as JSON.
	Options map[string]string
}

// ReadStart reads the first request of a record, without what differs from run to run:
// directories, ids, dates. Agent is the caller's to fill in.
func ReadStart(calls, participant string) (*Start, error) { return &Start{}, nil }

// Difference is one thing in which two arms' first requests differ.
type Difference struct {
	What   string `json:"what"` // agent, model, tools, system, messages, options
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Declared says that it is the content of a piece that one of the arms brings.
	Declared bool `json:"declared,omitempty"`
}

// Differences compares two starts. noise is a second start of the first arm: in what the two
// differ, any two starts do.
func Differences(a, b, noise *Start, pieces []Piece) []Difference { return nil }
