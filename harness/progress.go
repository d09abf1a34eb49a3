package harness

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/session"
)

// What an agent is shown of a turn that a crash interrupted: its last calls, and of each the
// beginning.
const (
	shownCalls     = 40
	shownCallRunes = 600
)

// turnCall is a tool call that an agent's stream showed in the turn that a crash interrupted.
type turnCall struct {
	id, name, args string
	result         string
	returned       bool
}

// callLog collects the calls of one turn from canonical events.
type callLog struct{ calls []turnCall }

func (c *callLog) event(e *session.EnrichedEvent) {
	switch {
	case e.Parent != "":
	case e.Kind == session.KindToolCall && e.Tool != nil && !strings.Contains(e.Tool.NativeName, ServerName):
		c.calls = append(c.calls, turnCall{
			id:   strings.Clone(e.Tool.CallID),
			name: strings.Clone(e.Tool.NativeName),
			args: display.CutRunes(string(e.Tool.Args), shownCallRunes),
		})
	case e.Kind == session.KindToolResult && e.Result != nil:
		for i := range c.calls {
			if c.calls[i].id == e.Result.CallID && !c.calls[i].returned {
				c.calls[i].returned = true
				c.calls[i].result = strings.Clone(display.CutRunes(e.Result.Preview, shownCallRunes))
			}
		}
	}
}

// interruptedNote tells an agent whose turn a crash interrupted what it had done by then: its own
// record may be behind its stream, or gone.
func interruptedNote(sent []*Message, calls []turnCall) string {
	var done []string
	for _, c := range calls[max(0, len(calls)-shownCalls):] {
		line := fmt.Sprintf("- %s %s", c.name, c.args)
		if c.returned {
			line += " returned: " + strings.TrimSpace(c.result)
		} else {
			line += " (its result is not known; look before you repeat it)"
		}
		done = append(done, line)
	}
	for _, m := range sent[max(0, len(sent)-shownCalls):] {
		text := display.CutRunes(m.Text, shownCallRunes)
		switch m.Kind {
		case KindAsk:
			done = append(done, fmt.Sprintf("- you asked %s (ask #%d): %s", m.To, m.AskID, text))
		case KindAnswer:
			done = append(done, fmt.Sprintf("- you answered ask #%d: %s", m.AskID, text))
		default:
			done = append(done, "- you announced: "+text)
		}
	}
	note := "The session was interrupted during your last turn. Its messages are repeated here; do not redo what " +
		"is done."
	if len(done) > 0 {
		note += "\nBy then you had done this:\n" + strings.Join(done, "\n")
	}
	return note
}
