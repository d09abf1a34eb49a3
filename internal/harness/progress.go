package harness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/session"
)

// What an agent is shown of a round that a crash interrupted: its last calls, and of each the
// beginning.
const (
	shownCalls     = 40
	shownCallRunes = 600
)

// turnCall is a tool call that an agent's stream showed.
type roundCall struct {
	id, name, args string
	result         string
	returned       bool
}

// callLog collects calls from canonical events.
type callLog struct{ calls []roundCall }

func (c *callLog) event(e *session.EnrichedEvent) {
	switch {
	case e.Parent != "":
	case e.Kind == session.KindToolCall && e.Tool != nil && !strings.Contains(e.Tool.NativeName, ServerName):
		c.calls = append(c.calls, roundCall{
			id:   strings.Clone(e.Tool.CallID),
			name: strings.Clone(e.Tool.NativeName),
			args: display.CutRunes(string(e.Tool.Args), shownCallRunes),
		})
	case e.Kind == session.KindToolResult && e.Result != nil:
		for i := range c.calls {
			if c.calls[i].id == e.Result.CallID && !c.calls[i].returned {
				c.calls[i].returned = true
				c.calls[i].result = strings.Clone(display.CutRunes(e.Result.Preview, shownCallRunes))
				return // another call may have the same id
			}
		}
	}
}

// passage is the session's record of a part of a member's work.
type passage struct {
	got  []*Message  // that it was given
	sent []statement // what it said to others
}

// statement is something that a member said to others.
type statement struct {
	verb, to string
	ask      int64
	text     string
}

func statementOf(m *Message) statement {
	switch m.Kind {
	case KindAsk:
		return statement{
			verb: "you asked",
			to:   m.To,
			ask:  m.AskID,
			text: m.Text,
		}
	case KindAnswer:
		return statement{verb: "you answered", ask: m.AskID, text: m.Text}
	default:
		return statement{verb: "you announced", text: m.Text}
	}
}

func (s statement) String() string {
	what := s.verb
	if s.to != "" {
		what += " " + s.to
	}
	if s.ask != 0 {
		what += fmt.Sprintf(" (ask #%d)", s.ask)
	}
	return what + ": " + display.CutRunes(s.text, shownCallRunes)
}

// give adds the messages that are not there yet.
func (p *passage) give(batch []*Message) {
	for _, m := range batch {
		if !slices.Contains(p.got, m) {
			p.got = append(p.got, m)
		}
	}
}

// settles reports whether a round that ended this way leaves the agent in a good state.
func settles(outcome string) bool { return outcome != roundInterrupted && outcome != roundFailed }

// The first sentences of what an agent learns about an interruption.
const (
	failedDuring = "Your last turn failed before it was over. Its messages are repeated here; do not redo what is " +
		"done."
	interruptedDuring = "The session was interrupted during your last turn. Its messages are repeated here; do " +
		"not redo what is done."
	interruptedAfter = "The session was interrupted after your last turn; do not redo what is done."
)

// recall returns a text that reminds an interrupted agent of what happened before: its own record
// may be incomplete or lost. Messages that it is being given now are left out.
func (p passage) recall(first string, now []*Message, calls []roundCall) string {
	var got, done []string
	for _, m := range p.got {
		if !slices.Contains(now, m) {
			got = append(got, "- "+inboxText([]*Message{m}))
		}
	}
	for _, c := range calls[max(0, len(calls)-shownCalls):] {
		line := fmt.Sprintf("- %s %s", c.name, c.args)
		if c.returned {
			line += " returned: " + strings.TrimSpace(c.result)
		} else {
			line += " (its result is not known; look before you repeat it)"
		}
		done = append(done, line)
	}
	for _, s := range p.sent[max(0, len(p.sent)-shownCalls):] {
		done = append(done, "- "+s.String())
	}
	note := first
	if len(got) > 0 {
		note += "\nBefore, you were given this:\n" + strings.Join(got, "\n")
	}
	if len(done) > 0 {
		note += "\nBy then you had done this:\n" + strings.Join(done, "\n") +
			"\nWhat you wanted to say to others and what is not in this list was not sent."
	}
	return note
}
