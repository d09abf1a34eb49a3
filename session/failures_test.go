package session

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sentences draws messages from pieces that can make a difference.
func sentences(t *rapid.T, pieces ...string) string {
	pieces = append(pieces, " ", "x", "_", "(", ")", ":", "4", "429", "529 ", "200", "\n", "é")
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(t, "pieces"), "")
}

// TestFailuresAreReadAsByExpressions compares the search of messages with regular expressions that
// mean the same.
func TestFailuresAreReadAsByExpressions(t *testing.T) {
	status := regexp.MustCompile(`(?:API Error: |status |\()([45]\d\d)\b`)
	overflow := regexp.MustCompile(`(?i)prompt is too long|context (?:window|length)|maximum context|too many tokens|input is too long`)
	rapid.Check(t, func(t *rapid.T) {
		message := sentences(t, "API Error: ", "status ", "API Error: 500", "Prompt is too LONG", "prompt is",
			"context", " window", "length", "Maximum context")
		want := 0
		if match := status.FindStringSubmatch(message); match != nil {
			want, _ = strconv.Atoi(match[1])
		}
		if got := statusIn(message); got != want {
			t.Errorf("%q has the status %d instead of %d", message, got, want)
		}
		if got, want := Mentions(message, overflowWords...), overflow.MatchString(message); got != want {
			t.Errorf("%q tells of a conversation that is too long: %t instead of %t", message, got, want)
		}
	})
}

func TestTimesAreReadAsByTheStandardLibrary(t *testing.T) {
	for stamp, want := range map[string]int64{
		"": 0, "yesterday": 0, "2026-13-01T00:00:00.000Z": 0, "2026-02-30T00:00:00.000Z": 0,
		"2026-01-01T24:00:00.000Z": 0, "2026-01-01t00:00:00.000Z": 0,
		"1970-01-01T00:00:00.001Z": 1, "2026-01-02T03:04:05.678Z": 1767323045678, "2026-01-02T03:04:05Z": 1767323045000,
		"2026-01-02T04:04:05.678+01:00": 1767323045678, "2024-02-29T12:00:00.000Z": 1709208000000,
		"2026-01-02T03:04:05.678912Z": 1767323045678,
	} {
		t.Run(stamp, func(t *testing.T) {
			if got := ParseTime(stamp); got != want {
				t.Errorf("%q is %d instead of %d", stamp, got, want)
			}
		})
	}
}
