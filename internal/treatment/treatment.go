// Package treatment proves that what an arm changes reached the agent. It lists the pieces that an
// agent is to be given (instruction files, skills, sub-agents, prompts), and finds in the recorded
// model calls of a run how much of each the model was given, by content, and whether what is loaded
// on demand was opened. Nothing is added to the path of a request: all of this reads files after a
// run.
//
//	pieces, err := treatment.Find(dir, info.Places)
//	found, err := treatment.Read(treatment.Config{Calls: "agent.calls", Pieces: pieces})
//
// Both sides of a comparison pass through the same redactor and are folded alike: white space,
// entities and line numbers do not count.
package treatment

import (
	"cmp"

	"github.com/fit-eval/fit/internal/gateway/calls"
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
	// Others are the texts and bodies of the other versions of the same piece in the experiment: a
	// line that one of them has too does not show that this one was opened.
	Others []string
	// Hidden says that the piece keeps itself from the model: only a person may call it.
	Hidden bool
}

// Config says what to look for in the record of a run's calls.
type Config struct {
	Calls       string // the file of the record
	Earlier     int    // how many calls of earlier sessions the record begins with; they do not count
	Participant string // whose calls count; empty: everybody's
	Context     string
	Pieces      []Piece
	// Known are texts that the model may come to read anyway, such as files of the task: their
	// lines do not show that a piece was opened.
	Known []string
	// Redactor is the one that the record was written with: both sides pass through it.
	Redactor *redact.Redactor
	// Unknown says why the record cannot be relied on, such as a subscription that does not pass
	// the gateway; empty: it can.
	Unknown string
}

// Read grades every piece by the first request that carries a turn and offers tools, and decides by
// all requests what was opened. What no model is given, such as settings, has no grade. An error
// says that the file could not be read; a record that does not hold what is needed is a grade,
// unknown.
func Read(cfg Config) (*ledger.Treatment, error) {
	t := &ledger.Treatment{Context: cfg.Context, Unknown: cfg.Unknown}
	pieces := append([]Piece(nil), cfg.Pieces...)
	r, unknown, err := open(cfg.Calls, cfg.Earlier, cfg.Participant)
	if err != nil {
		return nil, err
	}
	var first *request
	if r != nil {
		defer r.record.Close()
		t.Served = r.served()
		for _, call := range r.own {
			if call.Implausible != "" {
				t.Implausible++
				t.Miscounted = cmp.Or(t.Miscounted, call.Implausible)
			}
		}
		first, unknown = r.first()
	}
	if t.Unknown == "" {
		t.Unknown = unknown
	}
	if t.Unknown != "" || first == nil {
		doubt(pieces, t.Unknown)
	} else {
		examine(r, first, cfg, pieces, t)
	}
	for i := range pieces {
		t.Pieces = append(t.Pieces, pieces[i].Piece)
	}
	return t, nil
}

// doubt grades every piece as unknown.
func doubt(pieces []Piece, why string) {
	for i := range pieces {
		pieces[i].Given, pieces[i].Why = ledger.GivenUnknown, why
	}
}

// examine grades the pieces by the first request and finds what was opened later.
func examine(r *reader, first *request, cfg Config, pieces []Piece, t *ledger.Treatment) {
	g := &grader{reader: r, request: first, parts: first.parts()}
	bodies := make([]string, len(pieces))
	for _, announced := range []bool{false, true} { // a name in the instructions is not an offer
		for i := range pieces {
			p := &pieces[i]
			if isAnnounced(p.Kind) == announced {
				bodies[i] = cfg.Redactor.String(p.Body)
				g.grade(p, cfg.Redactor.String(p.Text))
			}
		}
	}
	known := make([]string, len(cfg.Known))
	for i, text := range cfg.Known {
		known[i] = cfg.Redactor.String(text)
	}
	if o := newOpener(r, pieces, bodies, first, known); len(o.watched) > 0 {
		o.run()
		o.conclude()
	}
	for _, in := range g.parts {
		if in.name == inSystem {
			t.SystemTokens = calls.EstimateTokens(len(in.text))
			t.VendorTokens = calls.EstimateTokens(max(0, len(in.text)-in.covered))
		}
	}
	for _, tool := range first.tools {
		t.Tools = append(t.Tools, tool.name)
		t.ToolTokens += calls.EstimateTokens(len(tool.definition))
	}
}

// isAnnounced reports whether pieces of a kind are announced by a name and a description.
func isAnnounced(kind string) bool {
	return kind == ledger.PieceSkill || kind == ledger.PieceAgent || kind == ledger.PieceCommand
}
