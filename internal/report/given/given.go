// Package given shows what the model of one run was given of its project and of its arm.
package given

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/ledger"
)

// Write writes what the model of one run was given: which files of the project and of the arm
// reached it, where in its prompt and at how many tokens per call, whether they were opened, and
// what comes with the agent.
func Write(w io.Writer, t *ledger.Treatment) error {
	if t == nil {
		_, err := fmt.Fprintf(w, "given to the model: unknown, %s\n", report.WhyEarlier)
		return err
	}
	head := "given to the model (context " + t.Context + ")"
	switch {
	case t.Unknown != "":
		head += ": unknown, " + t.Unknown
	case len(t.Pieces) == 0:
		head += ": nothing that the arm, the family or the task's files bring"
	default:
		head += ":"
	}
	if _, err := fmt.Fprintln(w, display.Line(head)); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for i := range t.Pieces {
		cells := pieceCells(&t.Pieces[i])
		for j := range cells {
			cells[j] = display.Line(cells[j])
		}
		fmt.Fprintf(table, "  %s\n", strings.Join(cells, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, line := range givenFacts(t) {
		if _, err := fmt.Fprintln(w, display.Line(line)); err != nil {
			return err
		}
	}
	return nil
}

// Line says in one line what the model of a run was given of its project; empty if the project
// brings nothing.
func Line(t *ledger.Treatment) string {
	if len(t.Pieces) == 0 {
		return ""
	}
	if t.Unknown != "" {
		return "delivery unknown: " + display.Line(t.Unknown)
	}
	var parts []string
	for _, grade := range []struct{ given, words string }{
		{ledger.GivenWhole, "given to the model: "},
		{ledger.GivenPart, "given in part: "},
		{ledger.GivenName, "given by name only: "},
		{ledger.GivenAbsent, "not given: "},
		{ledger.GivenUnknown, "delivery unknown: "},
	} {
		if names := namesGiven(t.Pieces, grade.given); names != "" {
			parts = append(parts, grade.words+names)
		}
	}
	return display.Line(strings.Join(parts, "; "))
}

// namesGiven names the pieces of one grade, and says which of them were opened.
func namesGiven(pieces []ledger.Piece, given string) string {
	var kinds []string
	names := map[string][]string{}
	for i := range pieces {
		p := &pieces[i]
		if p.Given != given {
			continue
		}
		if names[p.Kind] == nil {
			kinds = append(kinds, p.Kind)
		}
		name := p.Name
		if p.Opened != nil && *p.Opened {
			name += " (opened)"
		}
		names[p.Kind] = append(names[p.Kind], name)
	}
	for i, kind := range kinds {
		kinds[i] = report.PiecesText(kind, names[kind])
	}
	return strings.Join(kinds, ", ")
}

// pieceCells returns a piece as a row: what, from where, how much, where in the prompt, its tokens.
func pieceCells(p *ledger.Piece) []string {
	given := p.Given
	switch p.Given {
	case ledger.GivenPart:
		given = fmt.Sprintf("part (%.0f%%)", 100*p.Share)
	case ledger.GivenName:
		given = "name only"
	case ledger.GivenUnknown:
		given = "unknown"
	}
	if p.Why != "" {
		given += ": " + p.Why
	}
	from := map[string]string{
		ledger.FromArm:    "the arm",
		ledger.FromFamily: "the family",
		ledger.FromTask:   "the task",
		ledger.FromOther:  "another arm",
	}[p.From]
	if p.Path != "" && p.Path != p.Name {
		from += ", " + p.Path
	}
	where, tokens := "—", "—"
	if p.Where != "" {
		where = "in " + p.Where
	}
	if p.Tokens > 0 {
		tokens = report.Count(p.Tokens, "token") + " per call"
	}
	cells := []string{report.PiecesText(p.Kind, []string{p.Name}), "from " + from, given, where, tokens}
	switch {
	case p.Opened == nil:
	case *p.Opened:
		cells = append(cells, "opened")
	default:
		cells = append(cells, "not opened")
	}
	return cells
}

// givenFacts returns what else is known about the requests of a run.
func givenFacts(t *ledger.Treatment) []string {
	var facts []string
	if t.SystemTokens > 0 {
		facts = append(facts, fmt.Sprintf("system prompt: about %s, of which %d come with the agent",
			report.Count(t.SystemTokens, "token"), t.VendorTokens))
	}
	if len(t.Tools) > 0 {
		facts = append(facts, fmt.Sprintf("tools offered: %d: %s", len(t.Tools),
			display.CutRunes(strings.Join(t.Tools, ", "), 400)))
	}
	for _, s := range t.Served {
		asked := ""
		if s.Asked != "" && s.Asked != s.Model {
			asked = ", asked for as " + s.Asked
		}
		facts = append(facts, fmt.Sprintf("served by %s in %s%s", s.Model, report.Count(s.Calls, "call"), asked))
	}
	if len(t.Programs) > 0 {
		facts = append(facts, "files that let the agent run programs of the project: "+strings.Join(t.Programs, ", "))
	}
	if len(t.Managed) > 0 {
		facts = append(facts, "files of the administrator that the agent may have read: "+strings.Join(t.Managed, ", "))
	}
	return facts
}
