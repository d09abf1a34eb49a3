// Package glob matches slash-separated relative paths against patterns by the rules of the npm
// package minimatch (major version 10, option dot:true), which is what the permission rules of
// agent settings are written for.
//
//   - * matches within a segment, also names that start with a dot
//   - ** as a whole segment matches any number of segments; at the end of a pattern at least one,
//     so a/** does not match a
//   - ?, [a-c], [!a-c] and [^a-c] match one character
//   - {a,b} stands for two patterns; groups nest
//   - \ takes the special meaning from the character after it, in a segment that has no wildcard
//   - everything is case-sensitive and compared code point by code point, without normalisation
//
// What cannot be reproduced exactly is refused by Compile and must never match: negation, comments,
// extended globs such as @(a|b), brace ranges such as {1..3} and whatever has a reason below.
// Only clean relative paths in valid UTF-8 can match. Characters beyond U+FFFF, which minimatch
// counts as two, match nothing but themselves and stars: no pattern with ? or a class matches them.
package glob

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// The bounds of a pattern. They exist because rules come from files that anybody may have written.
const maxPatternLength, maxAlternatives, maxGlobstars = 4096, 1024, 32

// UnsupportedError says why a pattern was refused.
type UnsupportedError struct{ Pattern, Reason string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("unsupported pattern %q: %s", e.Pattern, e.Reason)
}

type refusal struct {
	expression *lazyregexp.Regexp
	reason     string
}

var (
	// ofPattern refuses whole patterns. Regular expressions see bytes that are not text as U+FFFD.
	ofPattern = []refusal{
		{lazyregexp.New(`^$`), "it is empty"},
		{lazyregexp.New(`[\p{Cc}\x{2028}\x{2029}\x{FFFD}]`), "it is not one line of valid text"},
		{lazyregexp.New(`^!`), "negation (a leading !)"},
		{lazyregexp.New(`^#`), "a comment (a leading #)"},
		{lazyregexp.New(`\\.*[{}]|[{}].*\\`), "a backslash together with braces"},
		{lazyregexp.New(`\$\{`), "a brace group after a dollar sign"},
		{lazyregexp.New(`\[[^]]*[{}]|[{}].*\[[^]]*,|\[[^]]*,.*[{}]`), "braces or commas inside a class"},
	}
	// ofSegment refuses segments without a backslash, when all groups of braces are gone.
	ofSegment = []refusal{
		{lazyregexp.New(`[{}]`), "unbalanced braces"},
		{lazyregexp.New(`^$`), "an empty segment (a leading, trailing or doubled slash)"},
		{lazyregexp.New(`^\.\.?$`), "a segment that is . or .."},
		{lazyregexp.New(`[?*+@!]\(`), "an extended glob such as @(a|b)"},
		{lazyregexp.New(`\[[^]]*$`), "a class that is not closed"},
		{lazyregexp.New(`\[[!^]?\]`), "an empty class, or one that holds a closing bracket"},
		{lazyregexp.New(`\[[^]]*\[`), "a bracket inside a class, such as [[:alpha:]]"},
		{lazyregexp.New(`\[[^]]*[\x{10000}-\x{10FFFF}]`), "a class with a character beyond U+FFFF"},
	}
	group          = lazyregexp.New(`\{([^{}]*)\}`)
	hyphensInPlace = lazyregexp.New(`^(?:[^[]|\[[!^]?(?:[^]-]|[^]-]-[^]-])+\])*$`)
	classRange     = lazyregexp.New(`(.)-(.)`)
	escape         = lazyregexp.New(`\\(.)`)
	token          = lazyregexp.New(`\[[^]]*\]|\*+|[^[*]`)
	escaper        = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)
)

func refuse(all []refusal, text string) (reason string) {
	for _, one := range all {
		if one.expression.MatchString(text) {
			return one.reason
		}
	}
	return ""
}

// Pattern is a compiled pattern. Its zero value matches nothing.
type Pattern struct {
	source       string
	alternatives []string // what is left of the braces, in the dialect of doublestar
}

// Compile reads a pattern, or returns an *UnsupportedError.
func Compile(source string) (Pattern, error) {
	reason := refuse(ofPattern, source)
	if len(source) > maxPatternLength {
		reason = fmt.Sprintf("it is longer than %d bytes", maxPatternLength)
	}
	compiled := Pattern{source: source}
	for queue := []string{source}; len(queue) > 0 && reason == ""; {
		var expanded []string
		if expanded, reason = expandGroup(queue[0]); len(expanded) == 0 && reason == "" {
			one, why := compile(queue[0])
			compiled.alternatives, reason = append(compiled.alternatives, one), why
		}
		if queue = append(queue[1:], expanded...); len(queue)+len(compiled.alternatives) > maxAlternatives {
			reason = "braces that expand to too many patterns"
		}
	}
	if reason == "" {
		return compiled, nil
	}
	return Pattern{}, &UnsupportedError{source, reason}
}

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.source }

// Match reports whether the pattern matches a clean relative path with forward slashes.
func (p Pattern) Match(path string) bool {
	beyondBMP := strings.ContainsFunc(path, func(r rune) bool { return r > 0xFFFF })
	return path != "." && fs.ValidPath(path) && slices.ContainsFunc(p.alternatives, func(one string) bool {
		if beyondBMP && strings.ContainsAny(escape.Get().ReplaceAllString(one, ""), "?[") {
			return false
		}
		return doublestar.MatchUnvalidated(one, path)
	})
}

// expandGroup replaces the first innermost group of braces, if there is one, with its alternatives.
func expandGroup(source string) (alternatives []string, reason string) {
	at := group.Get().FindStringSubmatchIndex(source)
	if at == nil {
		return nil, ""
	}
	if alternatives = strings.Split(source[at[2]:at[3]], ","); len(alternatives) == 1 {
		return nil, "a brace group without comma"
	}
	for i, one := range alternatives {
		alternatives[i] = source[:at[0]] + one + source[at[1]:]
	}
	return alternatives, ""
}

// compile rewrites a pattern without braces for doublestar, or says why it cannot be.
func compile(source string) (pattern, reason string) {
	var segments []string
	var globstars []int // the indices of the ** segments; two in a row count once
	for text := range strings.SplitSeq(source, "/") {
		if text != "**" {
			if text, reason = compileSegment(text); reason != "" {
				return "", reason
			}
		} else if len(segments) > 0 && segments[len(segments)-1] == "**" {
			continue
		} else if globstars = append(globstars, len(segments)); len(globstars) > maxGlobstars {
			return "", "too many ** segments"
		}
		segments = append(segments, text)
	}
	for i := 2; i < len(globstars); i++ { // there minimatch itself misses matches
		if globstars[i]-globstars[i-1] != globstars[1]-globstars[0] {
			return "", "three or more ** with different numbers of segments between them"
		}
	}
	if segments[len(segments)-1] == "**" { // in doublestar a/** matches a itself
		segments = append(segments, "*")
	}
	return strings.Join(segments, "/"), ""
}

// compileSegment makes runs of stars one star and escapes what doublestar would read as syntax.
func compileSegment(text string) (segment, reason string) {
	if strings.Contains(text, `\`) { // minimatch is only reliable where the segment is literal throughout
		if strings.ContainsAny(escape.Get().ReplaceAllString(text, ""), `\*?[()`) {
			return "", "a backslash and a wildcard in one segment, or a backslash at the end of one"
		}
		return escaper.Replace(escape.Get().ReplaceAllString(text, "$1")), ""
	}
	if reason = refuse(ofSegment, text); !hyphensInPlace.MatchString(text) {
		reason = cmp.Or(reason, "a stray hyphen in a class")
	}
	return token.Get().ReplaceAllStringFunc(text, func(part string) string {
		switch part[0] {
		case '[':
			for _, ends := range classRange.FindAllStringSubmatch(part, -1) {
				if ends[1] > ends[2] { // the order of UTF-8 is that of the code points
					reason = cmp.Or(reason, "a class with a reversed range")
				}
			}
			return part
		case '*', '?':
			return part[:1]
		}
		return escaper.Replace(part)
	}), reason
}

// Below lists, sorted, what a good pattern of filepath.Glob matches below dir, which is literal.
func Below(dir, pattern string) []string {
	found, _ := filepath.Glob(filepath.Join(escaper.Replace(dir), pattern)) // only a bad pattern is an error
	return found
}
