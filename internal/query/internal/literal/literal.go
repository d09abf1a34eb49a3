// Package literal lets a search for a rare word pass over lines without decoding them. If every
// match of a pattern contains one of a few literals, lines without any of them need not be decoded.
// The literals are made of characters that JSON writes as they are; where a line spells such a
// character as an escape (\u0041), or as one of the two letters beyond ASCII that match k and s
// when case does not matter, the line is decoded to be sure.
package literal

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/query/internal/scan"
)

// minLiteral is the length from which a literal is worth looking for.
const minLiteral = 3

// maxLiterals is the number of alternatives up to which they are looked for one by one.
const maxLiterals = 8

// NewFilter returns a filter that keeps the lines in which a pattern may match, nil if the
// pattern has no literals that are required.
func NewFilter(pattern string) scan.Filter {
	literals := requiredLiterals(pattern)
	if len(literals) == 0 {
		return nil
	}
	finders := make([]*finder, len(literals))
	for i, literal := range literals {
		finders[i] = newFinder(literal)
	}
	kelvin := slices.ContainsFunc(literals, func(literal string) bool { return strings.ContainsAny(literal, "ks") })
	return func(ev *scan.Event) bool {
		for _, f := range finders {
			if f.in(ev.Raw) {
				return true
			}
		}
		return escapedPlain(ev.Raw) || kelvin && foldsToASCII(ev.Raw)
	}
}

// requiredLiterals are lower-case texts one of which every match contains; none if there are no
// such texts.
func requiredLiterals(pattern string) []string {
	expr, err := syntax.Parse(pattern, syntax.Perl|syntax.FoldCase)
	if err != nil {
		return nil
	}
	literals := required(expr.Simplify())
	for _, literal := range literals {
		if len(literal) < minLiteral {
			return nil
		}
	}
	if len(literals) > maxLiterals {
		return nil
	}
	return literals
}

func required(expr *syntax.Regexp) []string {
	switch expr.Op {
	case syntax.OpLiteral:
		if longest := longestPlain(expr.Rune); longest != "" {
			return []string{longest}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(expr.Sub[0])
	case syntax.OpRepeat:
		if expr.Min > 0 {
			return required(expr.Sub[0])
		}
	case syntax.OpConcat:
		return bestOf(expr.Sub)
	case syntax.OpAlternate:
		var all []string
		for _, sub := range expr.Sub {
			one := required(sub)
			if len(one) == 0 {
				return nil
			}
			all = append(all, one...)
		}
		return all
	}
	return nil
}

// bestOf picks the part of a sequence whose shortest literal is longest.
func bestOf(parts []*syntax.Regexp) []string {
	var best []string
	for _, part := range parts {
		if one := required(part); len(one) > 0 && shortest(one) > shortest(best) {
			best = one
		}
	}
	return best
}

func shortest(literals []string) int {
	if len(literals) == 0 {
		return 0
	}
	return len(slices.MinFunc(literals, func(a, b string) int { return len(a) - len(b) }))
}

// longestPlain returns the longest run of characters that are in JSON as they are, in lower case.
func longestPlain(runes []rune) string {
	var longest, run []byte
	for _, r := range append(slices.Clone(runes), 0) {
		if isPlain(r) {
			run = append(run, strings.ToLower(string(r))...)
			continue
		}
		if len(run) > len(longest) {
			longest = slices.Clone(run)
		}
		run = run[:0]
	}
	return string(longest)
}

// isPlain excludes what may be escaped and what may be structure: quotes, slashes, angle brackets
// and ampersands; braces, brackets, colons, commas.
func isPlain(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return true
	}
	return strings.ContainsRune(" _-.=#@!%*()+;?~^|$", r)
}

// finder looks for a literal, ignoring case, with Horspool's algorithm, which skips most bytes.
type finder struct {
	literal []byte
	skip    [256]uint8
}

func newFinder(literal string) *finder {
	if len(literal) > 200 {
		literal = literal[:200]
	}
	f := &finder{literal: []byte(literal)}
	n := len(literal)
	for i := range f.skip {
		f.skip[i] = uint8(n)
	}
	for i := range n - 1 {
		c := literal[i]
		f.skip[c] = uint8(n - 1 - i)
		f.skip[upper(c)] = uint8(n - 1 - i)
	}
	return f
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c - 'A' + 'a'
	}
	return c
}

func (f *finder) in(text []byte) bool {
	last := len(f.literal) - 1
	end := f.literal[last]
	for i := last; i < len(text); {
		c := text[i]
		if lower(c) == end && f.matches(text[i-last:i]) {
			return true
		}
		i += int(f.skip[c])
	}
	return false
}

func (f *finder) matches(text []byte) bool {
	for i, c := range text {
		if lower(c) != f.literal[i] {
			return false
		}
	}
	return true
}

// escapedPlain reports whether a line spells a plain character, or one that folds to it, as an
// escape.
func escapedPlain(line []byte) bool {
	for rest := line; ; {
		i := bytes.Index(rest, []byte(`\u`))
		if i < 0 || i+6 > len(rest) {
			return false
		}
		code := rest[i+2 : i+6]
		switch {
		case code[0] == '0' && code[1] == '0' && code[2] >= '2' && code[2] <= '7' && !escapedByHabit(code[2:]):
			return true
		case bytes.EqualFold(code, []byte("212a")), bytes.EqualFold(code, []byte("017f")):
			return true
		}
		rest = rest[i+2:]
	}
}

// foldsToASCII reports whether a line holds the Kelvin sign or the long s.
func foldsToASCII(line []byte) bool {
	return bytes.Contains(line, []byte("\u212a")) || bytes.Contains(line, []byte("\u017f"))
}

// escapedByHabit reports whether encoders escape a character because of HTML; no literal contains
// one.
func escapedByHabit(hex []byte) bool {
	switch strings.ToLower(string(hex)) {
	case "22", "26", "27", "2f", "3c", "3e", "5c", "7f":
		return true
	}
	return false
}
