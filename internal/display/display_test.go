package display

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOneRule(t *testing.T) {
	for _, test := range []struct{ name, in, text, line, shown string }{
		{"plain", "go test ./...", "go test ./...", "go test ./...", "go test ./..."},
		{"words of others", "naïve 日本 ✓ ⚠️", "naïve 日本 ✓ ⚠️", "naïve 日本 ✓ ⚠️", "naïve 日本 ✓ ⚠️"},
		{"an accent", "e\u0301", "e\u0301", "e\u0301", "e\u0301"},
		{"lines", " a\r\n\tb  c ", " a\n\tb  c ", "a b  c", ` a\r\n\tb  c `},
		{"colours", "\x1b[31mred", `\x1b[31mred`, `\x1b[31mred`, `\x1b[31mred`},
		{"a title", "\x1b]0;title\x07x", `\x1b]0;title\x07x`, `\x1b]0;title\x07x`, `\x1b]0;title\x07x`},
		{"back over it", "real\rfake", `real\rfake`, "real fake", `real\rfake`},
		{"C1", "\u009b31m", `\u009b31m`, `\u009b31m`, `\u009b31m`},
		{"DEL", "a\x7f", `a\x7f`, `a\x7f`, `a\x7f`},
		{"reordered", "a\u202eb\u2066c\u200fd\u061c", `a\u202eb\u2066c\u200fd\u061c`, `a\u202eb\u2066c\u200fd\u061c`, `a\u202eb\u2066c\u200fd\u061c`},
		{"without width", "a\u200bb\u2060c\ufeffd\u3164", `a\u200bb\u2060c\ufeffd\u3164`, `a\u200bb\u2060c\ufeffd\u3164`, `a\u200bb\u2060c\ufeffd\u3164`},
		{"tags", "a\U000e0041\U000e0100", `a\U000e0041\U000e0100`, `a\U000e0041\U000e0100`, `a\U000e0041\U000e0100`},
		{"separators", "a\u2028b", `a\u2028b`, "a b", `a\u2028b`},
		{"not UTF-8", "a\xff\xc3", `a\xff\xc3`, `a\xff\xc3`, `a\xff\xc3`},
		{"replacement character", "a\ufffd", "a\ufffd", "a\ufffd", "a\ufffd"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Text(test.in); got != test.text {
				t.Errorf("Text = %q, want %q", got, test.text)
			}
			if got := Line(test.in); got != test.line {
				t.Errorf("Line = %q, want %q", got, test.line)
			}
			if got := Name(test.in); got != test.shown {
				t.Errorf("Name = %q, want %q", got, test.shown)
			}
		})
	}
}

func TestJSONKeepsTheValue(t *testing.T) {
	const in = "{\"a\": \"x\u202ey\u009bz\x7f\U000e0041\",\n\t\"日本\": 1}"
	const want = `{"a": "x\u202ey\u009bz\u007f\udb40\udc41",` + "\n\t\"日本\": 1}"
	if got := string(JSON([]byte(in))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCuts(t *testing.T) {
	for _, test := range []struct {
		name      string
		cut       func(string, int) string
		in        string
		n         int
		want      string
		wantWidth int
	}{
		{"characters", CutRunes, "日本語", 2, "日本…", 5},
		{"characters that fit", CutRunes, "日本語", 3, "日本語", 6},
		{"bytes between characters", CutBytes, "日本語", 6, "日本…", 5},
		{"bytes within one", CutBytes, "日本語", 8, "日本…", 5},
		{"bytes that fit", CutBytes, "日本語", 9, "日本語", 6},
		{"no bytes", CutBytes, "日", 0, "…", 1},
		{"columns", CutColumns, "日本語", 4, "日…", 3},
		{"odd columns", CutColumns, "日本語", 5, "日本…", 5},
		{"columns that fit", CutColumns, "日本語", 6, "日本語", 6},
		{"an accent takes no column", CutColumns, "e\u0301e\u0301", 2, "e\u0301e\u0301", 2},
		{"no columns", CutColumns, "abc", 0, "", 0},
		{"first characters", FirstRunes, "äöü", 2, "äö", 2},
		{"first bytes", FirstBytes, "äöü", 3, "ä", 1},
		{"last bytes", LastBytes, "äöü", 3, "ü", 1},
		{"padded", PadColumns, "日本", 6, "日本  ", 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.cut(test.in, test.n)
			if got != test.want || lineColumns(got) != test.wantWidth {
				t.Errorf("got %q with %d columns, want %q with %d", got, lineColumns(got), test.want, test.wantWidth)
			}
		})
	}
}

// FuzzDisplay holds what every caller relies on: nothing unsafe comes out, what is safe stays, and
// cuts keep to their limits and to whole characters.
func FuzzDisplay(f *testing.F) {
	f.Add("a\x1b[31m\u202e\xff\r\n\tb", 3)
	f.Add("日本語 e\u0301 ⚠️\u200b", 5)
	f.Add(`{"a":"\u202e`+"\u202e\U000e0041"+`"}`, 0)
	f.Fuzz(func(t *testing.T, s string, n int) {
		text, line, name := Text(s), Line(s), Name(s)
		for variant, shown := range map[string]string{"Text": text, "Line": line, "Name": name} {
			if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool {
				return !isSafe(r) && (variant != "Text" || r != '\n' && r != '\t')
			}) {
				t.Fatalf("%s(%q) = %q is not safe", variant, s, shown)
			}
		}
		if Text(text) != text || Line(line) != line || Name(name) != name {
			t.Fatalf("%q: what is safe was changed", s)
		}
		checkJSON(t, s)
		checkCuts(t, text, n%100)
	})
}

func checkJSON(t *testing.T, s string) {
	t.Helper()
	document := []byte(s)
	if !json.Valid(document) {
		document, _ = json.Marshal(s)
	}
	shown := JSON(document)
	if strings.ContainsFunc(
		string(shown),
		func(r rune) bool { return !isSafe(r) && !strings.ContainsRune("\n\t\r", r) },
	) {
		t.Fatalf("JSON(%q) = %q is not safe", document, shown)
	}
	var before, after any
	if err := json.Unmarshal(document, &before); err != nil {
		return // a number out of range
	}
	if err := json.Unmarshal(shown, &after); err != nil || !reflect.DeepEqual(before, after) {
		t.Fatalf("JSON(%q) = %q has another value: %v", document, shown, err)
	}
}

func checkCuts(t *testing.T, text string, n int) {
	t.Helper()
	runes, bytes, columns := FirstRunes(text, n), FirstBytes(text, n), CutColumns(text, n)
	last := LastBytes(text, n)
	if utf8.RuneCountInString(runes) > max(n, 0) || len(bytes) > max(n, 0) || len(last) > max(n, 0) ||
		lineColumns(columns) > max(n, 0) {
		t.Fatalf("%q is longer than %d: %q %q %q %q", text, n, runes, bytes, last, columns)
	}
	if !strings.HasPrefix(text, runes) || !strings.HasPrefix(text, bytes) || !strings.HasSuffix(text, last) ||
		!strings.HasPrefix(text, strings.TrimSuffix(columns, ellipsis)) {
		t.Fatalf("%q, %d: not a part of the text: %q %q %q %q", text, n, runes, bytes, last, columns)
	}
	if len(bytes)+utf8.UTFMax <= min(n, len(text)) || len(last)+utf8.UTFMax <= min(n, len(text)) {
		t.Fatalf("%q, %d: more than a character is missing: %q %q", text, n, bytes, last)
	}
	for _, part := range []string{runes, bytes, last, columns} {
		if !utf8.ValidString(part) {
			t.Fatalf("%q, %d: a character is broken: %q", text, n, part)
		}
	}
}
