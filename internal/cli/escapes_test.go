package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
)

// painted is in every text of the trace below: sequences that name, colour and clear a terminal, in
// both notations, characters that turn the direction of text, and some that cannot be seen.
const painted = "\x1b]0;pwn\x07\x1b[31mred\x1b[0m \u009b2J \u202egnitirw\u202c \u2066x\u2069 \u200f \x08\x7f\u0085\u2028\U000e0041"

// hostileTrace is a trace in which everything that an agent can name is painted.
func hostileTrace(t *testing.T) string {
	t.Helper()
	type object = map[string]any
	said := func(content ...object) object {
		return object{"type": "assistant", "message": object{
			"id": "m" + painted, "model": "m" + painted, "role": "assistant", "content": content,
			"stop_reason": "end_turn" + painted, "usage": object{"input_tokens": 10, "output_tokens": 5},
		}}
	}
	events := []struct {
		source string
		event  object
	}{
		{"orchestrator", object{"type": "session_start", "mode": "run" + painted, "isolation": "none" + painted}},
		{"agent", object{
			"type": "system", "subtype": "init", "session_id": "s" + painted, "model": "m" + painted,
			"cwd": "/x" + painted, "tools": []string{"Bash" + painted},
		}},
		{"agent", said(object{"type": "thinking", "thinking": painted}, object{"type": "text", "text": painted}, object{
			"type": "tool_use", "id": "t1" + painted, "name": "Bash" + painted,
			"input": object{"command": painted, "file_path": painted},
		})},
		{"agent", object{"type": "user", "message": object{"role": "user", "content": []object{
			{"type": "tool_result", "tool_use_id": "t1" + painted, "content": painted, "is_error": true},
		}}}},
		{"agent", said(object{"type": "tool_use", "id": "t2", "name": "Read", "input": object{"file_path": painted}})},
		{"agent", object{"type": "raw", "text": painted}},
		{"agent", object{"type": "stderr", "text": painted}},
		{"lead" + painted, said(object{"type": "text", "text": painted})},
		{"orchestrator", object{
			"type": "message", "kind": "ask", "id": 1, "from": painted, "to": painted, "text": painted,
		}},
		{"orchestrator", object{"type": "unknown" + painted, "text": painted}},
		{"agent", object{
			"type": "result", "subtype": "success" + painted, "result": painted, "num_turns": 2, "duration_ms": 5,
		}},
		{"orchestrator", object{
			"type": "summary", "success": true, "verdict": "success" + painted, "summary": painted,
		}},
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for seq, e := range events {
		if err := encoder.Encode(object{"source": e.source, "seq": seq, "event": e.event}); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// TestNoCommandPassesOnWhatATerminalObeys gives a hostile trace to every command that prints one.
func TestNoCommandPassesOnWhatATerminalObeys(t *testing.T) {
	t.Parallel()
	dir, text := t.TempDir(), hostileTrace(t)
	if err := os.WriteFile(filepath.Join(dir, "t.ndjson"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := []string{
		"session show t.ndjson", "session show t.ndjson --format json", "session import t.ndjson",
		"session export t.ndjson --to atif", "harness output --format text", "harness output --format json",
		"harness tee copy.ndjson", "trace export t.ndjson --to otlp", "trace export t.ndjson --to json",
	}
	commands = append(commands, traceVerbs(t, "t.ndjson")...)
	for _, command := range commands {
		var out bytes.Buffer
		cli.Run(t.Context(), append([]string{"fit"}, strings.Fields(command)...), &console.Console{
			Stdin:   strings.NewReader(text),
			Stdout:  &out,
			Stderr:  &out,
			Environ: []string{"HOME=" + dir},
			Dir:     dir,
			Version: "test",
		})
		if at := strings.IndexFunc(out.String(), isInterpreted); at >= 0 {
			t.Errorf("fit %s prints %q", command, out.String()[max(0, at-40):min(out.Len(), at+20)])
		}
	}
}

// traceVerbs are the verbs of fit trace that read a file and end, as its help has them.
func traceVerbs(t *testing.T, file string) []string {
	t.Helper()
	var help bytes.Buffer
	var verbs struct{ Commands []struct{ Usage string } }
	if cli.Run(t.Context(), []string{"fit", "trace", "--help", "--json"}, &console.Console{Stdout: &help}) != 0 ||
		json.Unmarshal(help.Bytes(), &verbs) != nil {
		t.Fatalf("fit trace --help --json prints %s", &help)
	}
	fill := strings.NewReplacer("[FILE...]", file, "FILE...", file, "FILE-A", file, "FILE-B", file, "FILE", file,
		"FROM", "0", "TO", "20", "INDEX", "1", "PATTERN", "red", "REGEX", "red", "NAME", "Bash", "TEST", "name",
		"QUERY", "select+1", "FORMAT", "markdown", "MODE", "run", "(", "", " [flags]", "", "fit ", "")
	var all []string
	for _, verb := range verbs.Commands {
		usage, _, _ := strings.Cut(verb.Usage, " |")
		if !strings.Contains(usage, "FILE") || strings.Contains(usage, " follow ") { // which waits for more
			continue
		}
		for _, format := range []string{"", " --format text", " --format json", " --format ndjson"} {
			all = append(all, fill.Replace(usage)+format)
		}
	}
	return all
}

// isInterpreted reports whether a terminal does something else with a character than to show it.
func isInterpreted(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
