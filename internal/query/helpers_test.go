package query

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// traceOf writes lines to a file and opens it.
func traceOf(t testing.TB, lines ...string) *Trace {
	t.Helper()
	return open(t, write(t, strings.Join(lines, "\n")+"\n"), Options{})
}

func write(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string, opts Options) *Trace {
	t.Helper()
	trace, err := Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// turnsOf is every turn of a trace as compact JSON.
func turnsOf(t testing.TB, trace *Trace) []string {
	t.Helper()
	var turns []string
	_, err := trace.Walk(context.Background(), func(e *Cursor) error {
		turns = append(turns, asJSON(t, e.Entry()))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return turns
}

func infoOf(t testing.TB, trace *Trace) *Info {
	t.Helper()
	info, err := trace.Walk(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func asJSON(t testing.TB, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(jsonenc.Compact(raw))
}

// enveloped wraps an event.
func enveloped(lane string, seq int, event string) string {
	name, _ := json.Marshal(lane)
	return `{"source":` + string(name) + `,"seq":` + asNumber(seq) + `,"event":` + event + `}`
}

func asNumber(n int) string {
	raw, _ := json.Marshal(n)
	return string(raw)
}

const (
	initEvent  = `{"type":"system","subtype":"init","session_id":"s-1","model":"m-1","claude_code_version":"1.2.3","tools":["Bash","Read"],"permissionMode":"default","cwd":"/repo"}`
	askRead    = `{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"/repo/a.go"}}],"usage":{"input_tokens":10,"output_tokens":2,"cache_read_input_tokens":5,"cache_creation_input_tokens":1}}}`
	gotRead    = `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"package a"}]}}`
	gotFailure = `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"no such file","is_error":true}]}}`
	askBash    = `{"type":"assistant","message":{"id":"m2","content":[{"type":"tool_use","id":"t2","name":"Bash","input":{"command":"cat b.go"}}],"usage":{"input_tokens":20,"output_tokens":3,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}}}`
	sayDone    = `{"type":"assistant","message":{"id":"m3","content":[{"type":"text","text":"Done."}],"usage":{"input_tokens":30,"output_tokens":4,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}}}`
	prompt     = `{"type":"user","message":{"content":[{"type":"text","text":"Fix it"},{"type":"text","text":"please"}]}}`
	goodResult = `{"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.25,"duration_ms":1500,"num_turns":3,"usage":{"input_tokens":60,"output_tokens":40,"cache_read_input_tokens":5,"cache_creation_input_tokens":1},"modelUsage":{"m-1":{"inputTokens":60,"outputTokens":40,"cacheReadInputTokens":5,"cacheCreationInputTokens":1,"costUSD":0.25,"contextWindow":200000}}}`
)

// sample is a small session of one agent.
var sample = []string{initEvent, prompt, askRead, gotRead, askBash, gotFailure, sayDone, goodResult}
