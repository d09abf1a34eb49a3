package harness

import (
	"testing"

	"github.com/fit-eval/fit/session"
)

func TestAnInterruptedAgentLearnsWhatItHadDone(t *testing.T) {
	var log callLog
	for _, e := range []session.EnrichedEvent{
		{Kind: session.KindToolCall, Tool: &session.ToolCall{CallID: "1", NativeName: "Bash", Args: []byte(`{"command":"make"}`)}},
		{Kind: session.KindToolResult, Result: &session.ToolResult{CallID: "1", Preview: "ok\n"}},
		{Kind: session.KindToolCall, Tool: &session.ToolCall{CallID: "2", NativeName: "mcp__orchestration__Ask"}},
		{Kind: session.KindToolCall, Parent: "9", Tool: &session.ToolCall{CallID: "3", NativeName: "Read"}},
		{Kind: session.KindToolCall, Tool: &session.ToolCall{CallID: "4", NativeName: "Write", Args: []byte(`{}`)}},
	} {
		log.event(&e)
	}
	old := &Message{Kind: KindAnnounce, From: "eve", Text: "mind\nthe gap"}
	now := &Message{Kind: KindAsk, From: "eve", AskID: 4, Text: "well?"}
	past := passage{got: []*Message{old, now}}
	past.give([]*Message{now})
	past.sent = append(past.sent, statementOf(&Message{Kind: KindAsk, To: "bob", AskID: 3, Text: "who?"}))
	note := past.recall("Stop.", []*Message{now}, log.calls)
	want := `Stop.
Before, you were given this:
- [shared] eve: mind
| the gap
By then you had done this:
- Bash {"command":"make"} returned: ok
- Write {} (its result is not known; look before you repeat it)
- you asked bob (ask #3): who?
What you wanted to say to others and what is not in this list was not sent.`
	if note != want {
		t.Errorf("the note is\n%s\nwant\n%s", note, want)
	}
	if note := (passage{}).recall("Stop.", nil, nil); note != "Stop." {
		t.Errorf("an agent that had done nothing learns %q", note)
	}
}
