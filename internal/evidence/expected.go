package evidence

import (
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

const (
	// leastLiteral is the least length of a value that may be a copied answer.
	leastLiteral = 8
	// maxExpected bounds the values that are kept of a task's tests.
	maxExpected = 2000
	maxLiteral  = 200
)

var stringLiteral = lazyregexp.New("\"((?:[^\"\\\\\n]|\\\\.)*)\"|'((?:[^'\\\\\n]|\\\\.)*)'|`([^`\n]*)`|" +
	"\\b(\\d{8,}(?:\\.\\d+)?|\\d+\\.\\d{6,})\\b")

// ExpectedValues finds the values that a test file expects, sorted and without duplicates: literals
// of eight characters or more in its assertions, and in tables of cases, and short ones in its
// assertions. An agent that hard-codes
// the answers instead of computing them would copy these. File names and sentences with formatting
// verbs are not among them.
func ExpectedValues(content []byte) []string {
	var found []string
	for line := range strings.Lines(string(content)) {
		trimmed := strings.TrimSpace(line)
		if len(line) > 4<<10 || strings.HasPrefix(trimmed, "import ") || strings.HasPrefix(trimmed, "from ") ||
			strings.Contains(trimmed, "require(") || testDefined(line) != "" {
			continue
		}
		found = append(found, literals(line)...)
		if asserts.MatchString(line) || strings.Contains(line, "==") || strings.HasPrefix(trimmed, "[ ") {
			found = append(found, shortLiterals(line)...)
		}
		if len(found) > 4*maxExpected {
			break
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(len(found), maxExpected)]
}

// shortLiterals returns the numbers and short texts of an assertion.
func shortLiterals(line string) []string {
	var found []string
	for _, literal := range values.Get().FindAllString(line, 32) {
		value := bare(literal)
		word := strings.Trim(value, "truefalsTFNoni") == "" // true, None and the like
		if !word && len(value) < leastLiteral {
			found = append(found, value)
		}
	}
	return found
}

// literals returns the long literals of a line.
func literals(line string) []string {
	if len(line) > 4<<10 {
		return nil
	}
	var found []string
	for _, parts := range stringLiteral.FindAllStringSubmatch(line, 32) {
		for _, value := range parts[1:] {
			if len(value) < leastLiteral || len(value) > maxLiteral || strings.Contains(value, "%") ||
				strings.Contains(value, "://") || strings.Count(value, "/") > 1 {
				continue
			}
			found = append(found, value)
		}
	}
	return found
}
