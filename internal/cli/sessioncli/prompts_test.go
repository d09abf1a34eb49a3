package sessioncli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/session"
)

// called writes a trace with the record of one call beside it.
func called(t *testing.T, dir, name, request string) {
	t.Helper()
	write(t, dir, name, `{"source":"agent","seq":0,"ts":1,"event":`+strings.SplitN(stream, "\n", 2)[0]+`}
{"source":"orchestrator","seq":1,"ts":2,"event":{"type":"model_call","agent":"agent","status":200,"outcome":"ok","messages":1,"usage":{"input":1,"output":1}}}
`)
	w, err := calls.Create(calls.Path(filepath.Join(dir, name)), calls.Config{})
	if err != nil {
		t.Fatal(err)
	}
	call := calls.Call{
		Participant: "agent", Status: 200, Outcome: calls.OK, Messages: 1,
		Usage: &calls.UsageJSON{TokenUsage: session.TokenUsage{InputTokens: 1}},
	}
	if err := w.Append(call, []byte(request), nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPromptsAreShownAndCompared(t *testing.T) {
	dir := t.TempDir()
	called(t, dir, "a.ndjson", `{"system":"be kind\nbe brief","tools":[{"name":"Bash","description":"run \u001b[31m`+secret+`"}],`+
		`"messages":[{"role":"user","content":"hi"}]}`)
	called(t, dir, "b.ndjson", `{"system":"be kind\nbe long","messages":[{"role":"user","content":"hi"}]}`)
	out, err := fit(t, dir, "", "prompts", "a.ndjson")
	for _, want := range []string{"turn 0  wire  system[0]  16 characters\n    be kind\n    be brief\n", "tool Bash"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v: %s", err, out)
		}
	}
	if strings.Contains(out, secret) || strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
	out, err = fit(t, dir, "", "prompts", "a.ndjson", "b.ndjson")
	want := "system[0]  different  +1 -1 lines\n    -be brief\n    +be long\ntool Bash  only-a  +0 -1 lines\n"
	if err != nil || !strings.Contains(out, want) {
		t.Errorf("%v: %s", err, out)
	}
	if out, err = fit(t, dir, "", "prompts", "--format", "json", "a.ndjson", "b.ndjson"); err != nil ||
		!strings.Contains(out, `"status": "only-a"`) {
		t.Errorf("%v: %s", err, out)
	}
	write(t, dir, "c.ndjson", strings.SplitN(stream, "\n", 2)[1])
	for _, args := range [][]string{{"prompts"}, {"prompts", "c.ndjson"}, {"prompts", "--lane", "x", "a.ndjson"}} {
		if out, err = fit(t, dir, "", args...); err == nil {
			t.Errorf("%v: %s", args, out)
		}
	}
}
