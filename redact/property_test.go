package redact

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// overlappingRedactor is a redactor whose secrets overlap each other, escapes, separators
// and placeholders.
func overlappingRedactor() *Redactor {
	return New(Config{Extra: map[string]string{
		"A": "abcd", "B": "abcdabcdabcd", "C": "cdab cd", "D": "n\"ab\\cd", "E": "two words here", "F": "1234567890",
		"G": "\\\\\\\\", "H": "日本語の鍵です",
		"I": "REDACTED", "J": "a\nb\nc\nd", "K": "%41%42%43", "L": "u0061u0062",
	}})
}

// fragments are what texts are put together from, so that something is found.
var fragments = []string{
	"abcd", "ab", "cd", "abcdabcd", " ", "\n", "\\", "\\\\", "\"", "\\n", "\\u0061", "\\u0062", "\\ud83d", "%61", "%62",
	"%25", "%", "two words", " here", "two", "+",
	"1234567890", "日本語", "の鍵です", "a\nb\n", "c\nd", "[REDACTED:env:A]", "[REDACTED:", "env:", "]", "YWJjZGFiY2RhYmNk",
	"YWJj", "ZGFiY2Rh", "616263646162636461626364",
	"ghp_", "abcdefghijklmnopqrstuvwxyz0123456789", "sk-ant-", "sk-", "eyJhbGci.eyJzdWIi.",
	"-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "\r\n", "é", ",", "{", "}", ":",
	strings.Repeat("x", 50), strings.Repeat("Q", 60) + "\n", "=", "==", "_", "-", ".",
}

func someText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), 0, 20).Draw(t, "fragments"), "")
	})
}

func TestTextProperties(t *testing.T) {
	r := overlappingRedactor()
	rapid.Check(t, func(t *rapid.T) {
		text := someText().Draw(t, "text")
		out := r.String(text)
		if again := r.String(out); again != out {
			t.Fatalf("%q became %q and then %q", text, out, again)
		}
		checkChunks(t, r, text, rapid.SliceOf(rapid.IntRange(0, len(text))).Draw(t, "cuts"))
	})
}

func TestJSONProperties(t *testing.T) {
	r := overlappingRedactor()
	rapid.Check(t, func(t *rapid.T) {
		value := map[string]any{
			someText().Draw(t, "key"): []any{
				someText().Draw(t, "value"), rapid.Int().Draw(t, "number"), 1234567890,
				true, nil,
			},
			"nested": inJSON(someText().Draw(t, "inner"), true),
		}
		in, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		checkJSON(t, r, in)
	})
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkJSON checks what holds for the redaction of any JSON.
func checkJSON(t failer, r *Redactor, in []byte) {
	t.Helper()
	before := bytes.Clone(in)
	out := r.JSON(in)
	if !bytes.Equal(in, before) {
		t.Fatalf("the input was written to: %s became %s", before, in)
	}
	if json.Valid(in) && !json.Valid(out) {
		t.Fatalf("no longer JSON: %s became %s", in, out)
	}
	if again := r.JSON(out); !bytes.Equal(again, out) {
		t.Fatalf("%s became %s and then %s", in, out, again)
	}
	if bytes.Equal(in, out) && len(in) > 0 && &in[0] != &out[0] {
		t.Fatalf("%s was copied", in)
	}
	if line := r.Lane().Line(in); json.Valid(in) && !json.Valid(line) {
		t.Fatalf("a lane made %s of %s", line, in)
	}
}

// checkChunks checks that a Writer gives the same however its input is cut.
func checkChunks(t failer, r *Redactor, text string, cuts []int) {
	t.Helper()
	var out bytes.Buffer
	w := r.Writer(&out)
	at := 0
	for _, cut := range append(cuts, len(text)) {
		if cut < at {
			continue
		}
		if _, err := w.Write([]byte(text[at:cut])); err != nil {
			t.Fatalf("write: %v", err)
		}
		at = cut
	}
	if err := w.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if want := r.String(text); out.String() != want {
		t.Fatalf("%q, cut at %d, became %q, want %q", text, cuts, out.String(), want)
	}
}

func FuzzJSON(f *testing.F) {
	for _, fragment := range fragments {
		quoted, _ := json.Marshal(map[string]any{fragment: []string{fragment + "abcd"}})
		f.Add(quoted)
	}
	for _, shape := range deltaShapes {
		f.Add([]byte(strings.NewReplacer("%s", `"abcdabcd\u0061"`, "%d", "1").Replace(shape.event)))
	}
	r := overlappingRedactor()
	f.Fuzz(func(t *testing.T, in []byte) { checkJSON(t, r, in) })
}

func FuzzWriter(f *testing.F) {
	for i, fragment := range fragments {
		f.Add(fragment+fragments[(i+7)%len(fragments)]+fragments[(i+13)%len(fragments)], uint8(i), uint8(2*i))
	}
	r := overlappingRedactor()
	f.Fuzz(func(t *testing.T, text string, first, second uint8) {
		checkChunks(t, r, text, []int{min(len(text), int(first)), min(len(text), int(first)+int(second))})
	})
}
