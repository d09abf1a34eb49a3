package literal

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/query/internal/scan"
)

// TestTheLiteralIsNeverMissed: whenever a pattern finds something in a line, the line passes the
// filter that looks for the literals of the pattern.
func TestTheLiteralIsNeverMissed(t *testing.T) {
	patterns := []string{
		"kelvin", "Pass(word|phrase)", "a{2,3}bcd", "(foo|bar)baz", "x?yz.abc", "straße",
		`\bsk-[a-z]+`, "a.c", "exit status [1-9]",
	}
	rapid.Check(t, func(rt *rapid.T) {
		pattern := rapid.SampledFrom(patterns).Draw(rt, "pattern")
		expr := regexp.MustCompile("(?i)" + pattern)
		text := rapid.StringMatching("[ -~]{0,5}("+pattern+")[ -~]{0,5}").Draw(rt, "text")
		text = rapid.SampledFrom([]func(string) string{
			strings.ToUpper, strings.ToLower, func(s string) string { return strings.ReplaceAll(s, "k", "\u212a") },
			func(s string) string { return strings.ReplaceAll(s, "s", "\u017f") },
		}).Draw(rt, "spelling")(text)
		raw := string(jsonenc.AppendString(nil, text))
		if rapid.Bool().Draw(rt, "escaped") && text != "" {
			raw = escapeAll(text)
		}
		line := []byte(`{"type":"user","message":{"content":` + raw + `}}`)
		var ev scan.Event
		if !new(scan.LineScanner).Scan(line, &ev, &[]scan.Part{}) {
			rt.Fatalf("no JSON: %s", line)
		}
		if keep := NewFilter(pattern); keep != nil && expr.MatchString(text) && !keep(&ev) {
			rt.Fatalf("%q matches %q, but the line was passed over: %s", pattern, text, line)
		}
	})
}

// escapeAll spells every character as an escape.
func escapeAll(text string) string {
	out := `"`
	for _, r := range text {
		if r > 0xffff {
			out += string(r)
			continue
		}
		out += fmt.Sprintf(`\u%04x`, r)
	}
	return out + `"`
}

func TestLiteralsOfPatterns(t *testing.T) {
	for pattern, want := range map[string][]string{
		"permission denied": {"permission denied"}, "a.c": nil, "foo|barbaz": {"foo", "barbaz"}, "foo|.": nil,
		`\d+ errors?`: {" error"}, "(?:Xyz)+": {"xyz"}, `"key"`: {"key"}, "x*": nil, "ab": nil,
	} {
		t.Run(pattern, func(t *testing.T) {
			if diff := cmp.Diff(want, requiredLiterals(pattern)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", pattern, diff)
			}
		})
	}
}
