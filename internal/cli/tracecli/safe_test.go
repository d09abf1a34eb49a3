package tracecli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
)

// everyVerb is each verb that reads one trace, with each format it has.
func everyVerb(path, dir string) [][]string {
	all := [][]string{
		{"cost", "--markdown", path},
		{"export", path, "--to", "otlp"},
		{"export", path, "--to", "document"},
	}
	for _, verb := range append(
		questions(path, dir),
		[]string{"stats", "--summary", path},
		[]string{"stats", "--by-tool", path},
		[]string{"search", "--context", "1", path, "."},
		[]string{"search", "--full", path, "."},
		[]string{"sql", path, "select * from tool_calls"},
		[]string{"sql", path, "select * from lanes"},
		[]string{"sql", path, "select * from messages"},
	) {
		if verb[0] == "export" || verb[0] == "split" { // which have formats of their own, or none
			all = append(all, verb)
			continue
		}
		for _, format := range []string{"text", "json", "ndjson"} {
			all = append(all, append([]string{"--format", format}, verb...))
		}
	}
	return all
}

// sessionWith writes a session in which a payload stands wherever an agent can put text.
func sessionWith(t *testing.T, payload string) string {
	t.Helper()
	raw, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	inner := string(raw[1 : len(raw)-1])
	lines := strings.NewReplacer("EVIL", inner).Replace(`{"source":"agent","seq":0,"ts":1,"event":{"type":"system","subtype":"init","session_id":"EVIL","model":"EVIL","tools":["EVIL"],"cwd":"EVIL"}}
{"source":"agent","seq":1,"ts":2,"event":{"type":"user","message":{"content":"EVIL"}}}
{"source":"EVIL","seq":2,"ts":3,"event":{"type":"assistant","message":{"id":"EVIL","content":[{"type":"text","text":"EVIL"}],"usage":{"input_tokens":1,"output_tokens":1}}}}
{"source":"agent","seq":3,"ts":4,"event":{"type":"assistant","message":{"id":"m1","content":[{"type":"thinking","thinking":"EVIL"},{"type":"text","text":"EVIL"},{"type":"tool_use","id":"EVIL","name":"Bash","input":{"command":"EVIL","EVIL":1}},{"type":"tool_use","id":"EVIL2","name":"EVIL","input":"EVIL"},{"type":"tool_use","id":"r","name":"Read","input":{"file_path":"EVIL"}},{"type":"EVIL","x":"EVIL"}],"usage":{"input_tokens":1,"output_tokens":1}}}}
{"source":"agent","seq":4,"ts":5,"event":{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"EVIL","content":"EVIL","is_error":true},{"type":"tool_result","tool_use_id":"EVIL2","content":[{"type":"text","text":"EVIL"}]}]}}}
{"source":"agent","seq":5,"ts":6,"event":{"type":"assistant","message":{"content":[{"type":"tool_use","id":"q","name":"mcp__orchestration__Ask","input":{"to":"EVIL","question":"EVIL"}}]}}}
{"source":"agent","seq":6,"ts":7,"event":{"type":"result","subtype":"EVIL","total_cost_usd":0.5,"usage":{"input_tokens":1},"modelUsage":{"EVIL":{"inputTokens":2,"costUSD":0.5,"EVIL":"EVIL"}}}}
{"source":"orchestrator","seq":7,"ts":8,"event":{"type":"meta","discussion_id":"EVIL"}}
{"source":"orchestrator","seq":8,"ts":9,"event":{"type":"model_call","agent":"EVIL","seq":1,"protocol":"anthropic","path":"EVIL","model":"EVIL","status":500,"error":"EVIL","outcome":"EVIL","startMs":1,"endMs":2,"serverTools":["EVIL"]}}
{"source":"orchestrator","seq":9,"ts":9,"event":{"type":"summary","verdict":"EVIL","summary":"EVIL"}}
`)
	path := filepath.Join(t.TempDir(), "evil.ndjson")
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// printedBy runs a verb, which may give a verdict, and returns all it prints.
func printedBy(t *testing.T, args []string) string {
	t.Helper()
	var out, errs bytes.Buffer
	con := &console.Console{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Environ: []string{"ANTHROPIC_API_KEY=sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEf"},
	}
	if code := run(con, args); code > 1 {
		t.Fatalf("fit-trace %s: exit code %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String() + errs.String()
}

func TestNoVerbLetsATerminalBeDriven(t *testing.T) {
	path := sessionWith(t, "a\x1b[31mb\x1b]0;title\x07c\u009b31md\u202ee\u2066f\u200bg\u2028h\x7fi\rj")
	for _, args := range everyVerb(path, t.TempDir()) {
		for _, r := range printedBy(t, args) {
			if r != '\n' && r != '\t' && display.Name(string(r)) != string(r) {
				t.Errorf("fit-trace %s prints %U", strings.Join(args, " "), r)
				break
			}
		}
	}
}

// TestSecretsAreRedactedUnlessAskedFor asks every verb about a file that an agent left itself. The
// padding makes verbs that cut text cut within the secret.
func TestSecretsAreRedactedUnlessAskedFor(t *testing.T) {
	const secret = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEf"
	half := secret[:len(secret)/2]
	seen := 0
	for _, padding := range []int{0, 40, 60} {
		payload := strings.Repeat("x", padding) + " " + secret + " zz"
		dir := t.TempDir()
		for _, args := range everyVerb(sessionWith(t, payload), dir) {
			if got := printedBy(t, args); strings.Contains(got, half) {
				t.Errorf("padding %d: fit-trace %s leaks:\n%.600s", padding, strings.Join(args, " "), got)
			}
			if padding == 0 && strings.Contains(printedBy(t, append([]string{"--no-redact"}, args...)), half) {
				seen++
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("nothing was split: %v", err)
		}
	}
	if seen < 30 {
		t.Errorf("--no-redact shows the secret in %d answers only", seen)
	}
}
