package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestASecretThatIsAnOrdinaryWordLeavesTheStructure: redaction must not make a trace unreadable.
func TestASecretThatIsAnOrdinaryWordLeavesTheStructure(t *testing.T) {
	r := New(Config{Extra: map[string]string{"A": "type", "B": "result", "C": "assistant", "D": "content"}})
	line := `{"source":"assistant","seq":1,"event":{"type":"result","subtype":"success","content_type":"x",` +
		`"result":"the result of type","message":{"role":"assistant","content":[{"type":"text","text":"content"}]},` +
		`"name":"result"}}`
	want := `{"source":"assistant","seq":1,"event":{"type":"result","subtype":"success","content_type":"x",` +
		`"result":"the [REDACTED:env:B] of [REDACTED:env:A]","message":{"role":"assistant",` +
		`"content":[{"type":"text","text":"[REDACTED:env:D]"}]},"name":"[REDACTED:env:B]"}}`
	if got := string(r.JSON([]byte(line))); got != want {
		t.Errorf("%s", got)
	}
	if got := r.Word("assistant"); got != "assistant" {
		t.Errorf("a source became %q", got)
	}
	if got := r.Word("my result"); got != "my [REDACTED:env:B]" {
		t.Errorf("a source became %q", got)
	}
}

func TestASecretThatIsNoWordOfTracesIsFoundInKeys(t *testing.T) {
	r := New(Config{Extra: map[string]string{"A": "hunter2hunter2"}})
	got := string(r.JSON([]byte(`{"hunter2hunter2":{"type":"hunter2hunter2"}}`)))
	if strings.Contains(got, "hunter2") || !json.Valid([]byte(got)) {
		t.Error(got)
	}
}

func TestDeepJSONStaysValid(t *testing.T) {
	r := New(Config{Extra: map[string]string{"A": "hunter2hunter2"}})
	deep := strings.Repeat(`{"a":[`, 2000) + `"\\hunter2hunter2"` + strings.Repeat(`]}`, 2000)
	if got := r.JSON([]byte(deep)); !json.Valid(got) || strings.Contains(string(got), "hunter2") {
		t.Errorf("%.60s", got)
	}
}
