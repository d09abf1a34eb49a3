package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// recorded writes the record of one call and returns a ledger's record that vouches for it.
func recorded(t *testing.T, dir, request string) *ledger.Record {
	t.Helper()
	path := filepath.Join(dir, "agent.calls")
	w, err := calls.Create(path, calls.Config{})
	if err != nil {
		t.Fatal(err)
	}
	call := calls.Call{Participant: "agent", Tools: 1, Messages: 1, Status: 200}
	if err := w.Append(call, []byte(request), []byte(`{"content":[]}`)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return &ledger.Record{
		TaskID:         "task",
		Arm:            "arm",
		AgentTracePath: "agent.ndjson.zst",
		Artifacts:      []ledger.Artifact{{Path: "agent.calls", SHA256: hex.EncodeToString(sum[:])}},
	}
}

// The system prompts that passed the gateway are compared by label and line. What was not recorded
// was not captured, and a record that somebody has touched is no evidence.
func TestPromptsThatTheGatewayRecorded(t *testing.T) {
	const request = `{"model":"m","system":"Be brief.\nBe kind.","messages":[{"role":"user","content":"hi"}],` +
		`"tools":[{"name":"Bash","description":"runs"}]}`
	dir := t.TempDir()
	record := recorded(t, dir, request)
	d := &Directory{Root: dir}
	run := &Run{
		Session: session.EnrichedSession{Lane: "agent"},
		Prompts: []PromptText{{Label: "init", Content: "tools"}},
	}
	list, err := d.Prompts(record, run)
	if err != nil || len(list) != 3 || list[1].Content != "Be brief.\nBe kind." || list[2].Label != "tool Bash" {
		t.Fatalf("%v, %+v", err, list)
	}
	other := []PromptText{{Label: list[1].Label, Content: "Be brief.\nBe quick."}}
	compared := ComparePrompts(list, other)
	if got := compared.Labels[1]; strings.Join(got.Lines, " ") != "-Be kind. +Be quick." {
		t.Errorf("the lines that differ are %q", got.Lines)
	}

	unrecorded := *record
	unrecorded.Artifacts = nil
	if list, err = d.Prompts(&unrecorded, &Run{}); err != nil || captured(list) != PromptsNotCaptured {
		t.Errorf("prompts that nobody recorded: %+v, %v", list, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "agent.calls"), []byte("forged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err = d.Prompts(record, run); err == nil || !strings.Contains(err.Error(), "differs from the record") ||
		len(list) != 1 {
		t.Errorf("a forged record: %+v, %v", list, err)
	}
	if err := os.Remove(filepath.Join(dir, "agent.calls")); err != nil {
		t.Fatal(err)
	}
	if _, err = d.Prompts(record, run); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a record that is gone: %v", err)
	}
}
