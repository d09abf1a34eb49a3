package display

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// ellipsis stands for what was cut.
const ellipsis = "…"

// CutRunes returns text of at most n characters as it is, and of longer text the first n and an
// ellipsis.
func CutRunes(s string, n int) string { return marked(s, FirstRunes(s, n)) }

// CutBytes returns text of at most n bytes as it is, and of longer text the whole characters in the
// first n bytes and an ellipsis.
func CutBytes(s string, n int) string { return marked(s, FirstBytes(s, n)) }

func marked(whole, part string) string {
	if len(part) == len(whole) {
		return whole
	}
	return part + ellipsis
}

// CutColumns fits text into n columns of a terminal, the ellipsis included.
func CutColumns(s string, n int) string {
	if len(s) <= n || lineColumns(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	taken := 0
	for i, r := range s {
		if taken += columns(r); taken > n-1 {
			return s[:i] + ellipsis
		}
	}
	return s
}

// PadColumns adds spaces to text that is narrower than n columns.
func PadColumns(s string, n int) string { return s + strings.Repeat(" ", max(0, n-lineColumns(s))) }

// lineColumns returns how many columns of a terminal a safe line takes.
func lineColumns(s string) int {
	sum := 0
	for _, r := range s {
		sum += columns(r)
	}
	return sum
}

func columns(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	case width.Neutral, width.EastAsianAmbiguous, width.EastAsianNarrow, width.EastAsianHalfwidth:
	}
	return 1
}

// FirstRunes returns the first n characters of a text.
func FirstRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n <= 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// FirstBytes returns the whole characters among the first n bytes of a text.
func FirstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for back := 0; back < utf8.UTFMax && back < n && !utf8.RuneStart(s[n-back]); back++ {
		if utf8.RuneStart(s[n-back-1]) {
			return s[:n-back-1]
		}
	}
	return s[:n]
}

// LastBytes returns the whole characters among the last n bytes of a text.
func LastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	from := len(s) - max(n, 0)
	for skipped := 0; skipped < utf8.UTFMax-1 && from < len(s) && !utf8.RuneStart(s[from]); skipped++ {
		from++
	}
	return s[from:]
}
