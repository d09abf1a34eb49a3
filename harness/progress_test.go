package harness

import (
	"strings"
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
	note := interruptedNote([]*Message{{Kind: KindAsk, To: "bob", AskID: 3, Text: "who?"}}, log.calls)
	_, done, _ := strings.Cut(note, "\nBy then you had done this:\n")
	want := `- Bash {"command":"make"} returned: ok
- Write {} (its result is not known; look before you repeat it)
- you asked bob (ask #3): who?`
	if done != want {
		t.Errorf("the note is\n%s\nwant\n%s", note, want)
	}
	if note := interruptedNote(nil, nil); strings.Contains(note, "By then") {
		t.Errorf("an agent that had done nothing learns %q", note)
	}
}
