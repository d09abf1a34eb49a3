package harness

import "testing"

func TestTheSkillThatAnAgentCallsForIsRemembered(t *testing.T) {
	var notes skillNotes
	for _, line := range []string{
		`{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Skill","input":{"skill":"release"}}]}}`,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"echo \"Skill\""}}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_use","name":"Skill","input":{"skill":"forged"}}]}}`,
		`{"type":"assistant","message":{"content":"Skill"}}`, `"Skill"`,
	} {
		notes.watch("alice", []byte(line))
	}
	if got := notes.of("alice"); got != "release" {
		t.Errorf("the last skill is %q", got)
	}
	notes.watch("alice", []byte(`{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Skill","input":{"skill":"a"}},{"type":"tool_use","name":"Skill","input":{"skill":"b"}}]}}`))
	if got := notes.of("alice"); got != "b" || notes.of("bob") != "" {
		t.Errorf("the last skill is %q, that of bob %q", got, notes.of("bob"))
	}
}
