package jsonenc

import (
	"strings"
	"testing"
)

var examples = []string{
	"", "plain text", `quotes " and \ slashes`, "\x00\b\f\n\r\t\x1f\x7f", "<a href='x'>&</a>",
	"ä€😀", "\u2028\u2029", "broken \xff\xc3 bytes", "long enough for a whole word, then \x01", "\ufffd",
	"äöü" + strings.Repeat("x", 40) + "\n",
}

func TestAStringIsWrittenAsMarshalWritesIt(t *testing.T) {
	for _, text := range examples {
		compare(t, text)
	}
}

func TestStringsAreEscapedWhereverTheSpecialCharacterStands(t *testing.T) {
	for special, want := range map[string]string{
		`"`: `\"`, `\`: `\\`, "\n": `\n`, "\r": `\r`, "\t": `\t`, "\x00": `\u0000`, "\x1f": `\u001f`, "\x7f": "\x7f",
		" ": " ", "!": "!", "#": "#", "[": "[", "]": "]",
		"é": "é", "\x80": `\ufffd`, "\xff": `\ufffd`, "\u2028": `\u2028`, "\u2029": `\u2029`, "😀": "😀", `""`: `\"\"`,
	} {
		t.Run(special, func(t *testing.T) {
			for before := range 18 {
				for after := range 10 {
					head, tail := strings.Repeat("x", before), strings.Repeat("~", after)
					if got := string(AppendString(nil, head+special+tail)); got != `"`+head+want+tail+`"` {
						t.Fatalf("%q after %d and before %d characters became %s", special, before, after, got)
					}
				}
			}
		})
	}
}

func compare(t *testing.T, text string) {
	t.Helper()
	want, err := Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := String(text); got != string(want) {
		t.Errorf("%q is written %s instead of %s", text, got, want)
	}
}

func TestNothingIsEscapedForHTML(t *testing.T) {
	var out strings.Builder
	if err := WriteIndented(&out, map[string]string{"a": "<&>"}); err != nil ||
		out.String() != "{\n  \"a\": \"<&>\"\n}\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if line, err := Marshal([]string{"<&>"}); err != nil || string(line) != `["<&>"]` {
		t.Errorf("%q, %v", line, err)
	}
	if _, err := Marshal(func() {}); err == nil {
		t.Error("a function was encoded")
	}
}

func FuzzAppendString(f *testing.F) {
	for _, text := range examples {
		f.Add(text)
	}
	f.Fuzz(compare)
}
