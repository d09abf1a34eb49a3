package render

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNothingHarmfulIsPrinted(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n":      "plain\ttext\n",
		"a\x1b[31mred":       "a[31mred",
		"bell\a and\x7fdel":  "bell anddel",
		"C1 \u009b31m":       "C1 31m",
		"turned \u202e over": "turned  over",
		"kept: é 😀 \u2026":   "kept: é 😀 \u2026",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		printed := Printable(text)
		if strings.ContainsFunc(printed, harmful) || harmless(text) != (printed == text) {
			t.Fatalf("%q is printed as %q", text, printed)
		}
	})
}
