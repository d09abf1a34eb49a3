// Package glob matches slash-separated relative paths against patterns by the rules of the npm
// package minimatch (major version 10, option dot:true), which is what the permission rules of
// agent settings are written for.
//
//	pattern, err := glob.Compile(".claude/skills/**/*.{md,txt}")
//	if err != nil {
//		// The pattern uses syntax this package does not support; it must never match.
//	}
//	pattern.Match(".claude/skills/review/SKILL.md") // true
//
// The dialect:
//
//   - * matches within a segment, also names that start with a dot; ? matches one character
//   - ** as a whole segment matches any number of segments; at the end of a pattern at least one,
//     so a/** does not match a
//   - [a-c], [!a-c] and [^a-c] match one character
//   - {a,b} stands for two patterns; groups nest
//   - \ takes the special meaning from the character after it, in a segment that has no wildcard
//   - everything is case-sensitive and compared code point by code point, without normalisation
//
// What cannot be reproduced exactly is refused by Compile with an *UnsupportedError and not
// approximated: negation (a leading !), comments (a leading #), extended globs such as @(a|b),
// brace ranges such as {1..3}, braces that are unbalanced or have no comma, a backslash together
// with braces or with wildcards in one segment, three or more ** with different numbers of segments
// between them (there minimatch itself misses matches), classes that are empty, unclosed, reversed,
// or hold a slash, bracket, brace, backslash or stray hyphen, named classes such as [[:alpha:]],
// segments that are empty or . or .. (so also a leading or trailing slash), control characters, and
// patterns of unreasonable size.
//
// Only clean relative paths in valid UTF-8 can match. Characters beyond U+FFFF, which minimatch
// counts as two, match nothing but themselves and stars: a pattern with ? or a class never matches
// a path that has one.
package glob

import (
	"fmt"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// The bounds of a pattern. They exist because rules come from files that anybody may have written.
const (
	maxPatternLength = 4096
	maxAlternatives  = 1024
	maxGlobstars     = 32
)

// UnsupportedError says why a pattern was refused.
type UnsupportedError struct {
	Pattern string
	Reason  string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("unsupported pattern %q: %s", e.Pattern, e.Reason)
}

// Pattern is a compiled pattern. Its zero value matches nothing.
type Pattern struct {
	source string
	// alternatives are what is left of the braces: patterns in the dialect of doublestar.
	alternatives []alternative
}

type alternative struct {
	pattern string
	// countsCharacters is true for a pattern with ? or a class, where minimatch counts UTF-16
	// units.
	countsCharacters bool
}

// Compile reads a pattern, or returns an *UnsupportedError.
func Compile(source string) (Pattern, error) {
	refuse := func(reason string) (Pattern, error) {
		return Pattern{}, &UnsupportedError{Pattern: source, Reason: reason}
	}
	switch {
	case source == "":
		return refuse("it is empty")
	case len(source) > maxPatternLength:
		return refuse(fmt.Sprintf("it is longer than %d bytes", maxPatternLength))
	case !utf8.ValidString(source) || strings.ContainsFunc(source, isLineOrControl):
		return refuse("it is not one line of valid text")
	case source[0] == '!':
		return refuse("negation (a leading !)")
	case source[0] == '#':
		return refuse("a comment (a leading #)")
	}
	expanded, reason := expandBraces(source)
	if reason != "" {
		return refuse(reason)
	}
	compiled := Pattern{source: source}
	for _, text := range expanded {
		one, reason := compileAlternative(text)
		if reason != "" {
			return refuse(reason)
		}
		compiled.alternatives = append(compiled.alternatives, one)
	}
	return compiled, nil
}

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.source }

// Match reports whether the pattern matches a clean relative path with forward slashes.
func (p Pattern) Match(path string) bool {
	if !isCleanRelative(path) {
		return false
	}
	beyondBMP := strings.IndexFunc(path, func(r rune) bool { return r > 0xFFFF }) >= 0
	for _, one := range p.alternatives {
		if beyondBMP && one.countsCharacters {
			continue
		}
		if matched, err := doublestar.Match(one.pattern, path); err == nil && matched {
			return true
		}
	}
	return false
}

// isLineOrControl reports whether a character is a control character or ends a line in JavaScript's
// regular expressions.
func isLineOrControl(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// isCleanRelative reports whether path is a clean relative path: valid text, no empty, . or ..
// segments.
func isCleanRelative(path string) bool {
	return path != "." && fs.ValidPath(path)
}
