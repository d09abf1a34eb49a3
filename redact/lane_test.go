package redact

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

// deltaShapes are the events in which agents stream text; %s is the piece as a
// JSON string, at is where to find it again.
var deltaShapes = map[string]struct {
	event string
	at    []string
}{
	"anthropic text":     {`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}},"session_id":"s","parent_tool_use_id":null,"uuid":"%d"}`, []string{"event", "delta", "text"}},
	"anthropic thinking": {`{"type":"stream_event","event":{"delta":{"thinking":%s,"type":"thinking_delta"},"index":1,"type":"content_block_delta"},"uuid":"%d"}`, []string{"event", "delta", "thinking"}},
	"anthropic input":    {`{"type":"stream_event","event":{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":%s}},"uuid":"%d"}`, []string{"event", "delta", "partial_json"}},
	"openai responses":   {`{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":%s,"sequence_number":%d}`, []string{"delta"}},
	"pi":                 {`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":%s},"n":%d}`, []string{"assistantMessageEvent", "delta"}},
	"codex":              {`{"method":"item/agentMessage/delta","params":{"threadId":"t","turnId":"u","itemId":"i","delta":%s},"n":%d}`, []string{"params", "delta"}},
	"in an envelope":     {`{"source":"agent","seq":7,"event":{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}},"uuid":"%d"}}`, []string{"event", "event", "delta", "text"}},
}

// streamThrough sends pieces through a lane and joins what comes out.
func streamThrough(t *testing.T, lane *Lane, shape string, pieces []string) string {
	t.Helper()
	var joined strings.Builder
	for n, piece := range pieces {
		quoted, _ := json.Marshal(piece)
		line := fmt.Sprintf(deltaShapes[shape].event, quoted, n)
		out := lane.Line([]byte(line))
		var value any
		if err := json.Unmarshal(out, &value); err != nil {
			t.Fatalf("%s became %s: %v", line, out, err)
		}
		for _, key := range deltaShapes[shape].at {
			value = value.(map[string]any)[key]
		}
		joined.WriteString(value.(string))
	}
	return joined.String()
}

// cutAt divides a text into pieces of a number of characters.
func cutAt(text string, size int) []string {
	var pieces []string
	for piece := range slices.Chunk([]rune(text), size) {
		pieces = append(pieces, string(piece))
	}
	return pieces
}

func TestNoSecretSurvivesInJoinedDeltas(t *testing.T) {
	for variable, secret := range everyNth(fortySecrets(), testenv.Stride(3, 10)) {
		r := New(Config{Extra: map[string]string{variable: secret}})
		for shape := range deltaShapes {
			texts := []string{secret}
			if shape == "anthropic input" {
				texts = append(texts, inJSON(secret, false), encodings["json \\u"](secret)[3])
			}
			texts = append(texts, encodings["base64"](secret)[0], encodings["hex"](secret)[0],
				encodings["percent"](secret)[2])
			for _, text := range texts {
				text = "It is " + text + " (end)"
				for _, size := range []int{1, 2, 3, 5, 8, 13, 21} {
					if out := streamThrough(t, r.Lane(), shape, cutAt(text, size)); survives(out, secret) ||
						!strings.HasSuffix(out, "(end)") || !strings.HasPrefix(out, "It is ") {
						t.Fatalf("%s: %q in pieces of %d became %q", shape, text, size, out)
					}
				}
				if !strings.HasPrefix(shape, "anthropic") {
					continue // the others differ in nothing but the keys
				}
				chars := []rune(text)
				for cut := 0; cut < len(chars); cut += testenv.Stride(3, 5) + len(chars)/100 {
					if out := streamThrough(t, r.Lane(), shape,
						[]string{string(chars[:cut]), string(chars[cut:])}); survives(out, secret) ||
						!strings.HasSuffix(out, " (end)") {
						t.Fatalf("%s: %q cut at %d became %q", shape, text, cut, out)
					}
				}
			}
		}
	}
}

func TestShapesInJoinedDeltas(t *testing.T) {
	r := New(Config{})
	for _, key := range []string{
		"sk-ant-api03-" + alnums(90), "ghp_" + alnums(36), "AKIAIOSFODNN7EXAMPLE", "hf_" + alnums(34),
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + alnums(43),
		"-----BEGIN PRIVATE KEY-----\n" + alnums(64) + "\n" + alnums(64) + "\n-----END PRIVATE KEY-----",
	} {
		text := "The key is " + key + ", use it."
		for size := 1; size < 80; size++ {
			out := streamThrough(t, r.Lane(), "anthropic text", cutAt(text, size))
			if strings.Contains(out, alnums(12)) || strings.Contains(out, key[len(key)-8:]) ||
				!strings.HasSuffix(out, ", use it.") || !strings.Contains(out, "[REDACTED:pattern:") {
				t.Errorf("%q in pieces of %d became %q", text, size, out)
			}
		}
	}
}

func TestOrdinaryDeltasAreTheSameBytes(t *testing.T) {
	lane := New(Config{Environ: fifteenSecrets()}).Lane()
	for n, piece := range strings.SplitAfter(
		"Let me look at the task-list, then 100% of it: C:\\temp \\u00e9 https://a.b/c%20d?e=f+g ", " ") {
		quoted, _ := json.Marshal(piece)
		line := fmt.Appendf(nil, deltaShapes["anthropic text"].event, quoted, n)
		if out := lane.Line(line); &out[0] != &line[0] {
			t.Errorf("%s became %s", line, out)
		}
	}
}

func TestMovedEndsStayWithTheirMessage(t *testing.T) {
	r := New(Config{Extra: map[string]string{"S": "swordfish-of-the-deep"}})
	lane := r.Lane()
	line := func(index int, text string) string {
		in := fmt.Sprintf(`{"type":"stream_event","event":{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%q}}}`, index, text)
		return string(lane.Line([]byte(in)))
	}
	if out := line(0, "a swordfish"); strings.Contains(out, "sword") {
		t.Errorf("the beginning of a secret was shown: %s", out)
	}
	if out := line(1, " is a fish"); !strings.Contains(out, `" is a fish"`) {
		t.Errorf("another message got the end: %s", out)
	}
	if out := line(0, " swims"); !strings.Contains(out, `"swordfish swims"`) {
		t.Errorf("the end was not moved: %s", out)
	}
	line(0, "a swordfish-of")
	lane.Line([]byte(`{"type":"stream_event","event":{"type":"content_block_stop","index":0}}`))
	if out := line(0, "new text"); !strings.Contains(out, `"new text"`) {
		t.Errorf("the end of a message came up in the next: %s", out)
	}
}

func TestMessagesSoFarAreCutToo(t *testing.T) {
	lane := New(Config{Extra: map[string]string{"S": "swordfish-of-the-deep"}}).Lane()
	in := `{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"fish-of-","partial":{"role":"assistant","content":[{"type":"text","text":"a swordfish-of-"}]}}}`
	want := `{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"fish-of-","partial":{"role":"assistant","content":[{"type":"text","text":"a [REDACTED:env:S]"}]}}}`
	if out := string(lane.Line([]byte(in))); out != want {
		t.Errorf("got %s", out)
	}
}
