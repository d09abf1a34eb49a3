// Package display makes foreign text safe for a terminal, and cuts it. Everything that prints text
// of an agent, a file or a server uses it.
//
// There is one rule: characters that a terminal would interpret or hide are shown as escapes, in
// the notation of Go's string literals. That covers control characters (C0, DEL and C1, and so
// every ANSI and OSC sequence), marks that reorder text, characters without width, line and
// paragraph separators, characters that are not assigned, and bytes that are not UTF-8. Nothing is
// removed, so a reader sees that something was there.
//
// The variants differ in what they do with line breaks and tabs only: [Text] keeps them, [Line]
// makes spaces of them, [Name] shows them as escapes. [JSON] is for documents that programs read:
// it escapes the same characters the way JSON does, and the value stays the same.
//
// Cut after making safe, and redact before both: a cut secret is no longer recognised.
package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text makes text safe that may have several lines: line breaks and tabs stay. A carriage return
// before a line break is dropped.
func Text(s string) string {
	return escape(s, func(r rune) bool { return r == '\n' || r == '\t' })
}

// Line makes one line of text: white space at the ends is dropped, and line breaks and tabs become
// one space with the white space around them.
func Line(s string) string {
	s = strings.TrimSpace(s)
	if plain(s) {
		return s
	}
	var out strings.Builder
	for s != "" {
		word := strings.IndexFunc(s, unicode.IsSpace)
		if word < 0 {
			word = len(s)
		}
		out.WriteString(s[:word])
		s = s[word:]
		rest := strings.TrimLeftFunc(s, unicode.IsSpace)
		if space := s[:len(s)-len(rest)]; strings.ContainsFunc(space, breaks) {
			out.WriteByte(' ')
		} else {
			out.WriteString(space)
		}
		s = rest
	}
	return escape(out.String(), nil)
}

// breaks reports whether white space is more than a gap between two words.
func breaks(r rune) bool { return !unicode.Is(unicode.Zs, r) }

// Name shows a name, such as a path or a branch, exactly: a line break or tab in it is an escape
// like any other.
func Name(s string) string { return escape(s, nil) }

// isSafe reports whether Text, Line and Name show a character as it is.
func isSafe(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r != 0x7f
	}
	if r == '\ufe0e' || r == '\ufe0f' { // choose between an emoji's two forms
		return true
	}
	return (unicode.IsPrint(r) || unicode.Is(unicode.Zs, r)) &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// plain reports whether a text is printable ASCII, as most is.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

func escape(s string, kept func(rune) bool) string {
	if plain(s) {
		return s
	}
	var out strings.Builder
	done := 0 // what is written already
	for i := 0; i < len(s); {
		if c := s[i]; c >= ' ' && c < 0x7f { // most text is that, apart from its line breaks
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		broken := r == utf8.RuneError && size == 1
		if !broken && (isSafe(r) || kept != nil && kept(r)) {
			i += size
			continue
		}
		out.WriteString(s[done:i])
		switch {
		case broken:
			fmt.Fprintf(&out, `\x%02x`, s[i])
		case r == '\r' && kept != nil && strings.HasPrefix(s[i+1:], "\n"):
		default:
			out.WriteString(notation(r))
		}
		i += size
		done = i
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}

// notation returns a character as a Go string literal would have it.
func notation(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < utf8.RuneSelf:
		return fmt.Sprintf(`\x%02x`, r)
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	default:
		return fmt.Sprintf(`\u%04x`, r)
	}
}
