package codex

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestWordingIsReadAsByExpressions compares what is found in messages and results with regular
// expressions that mean the same.
func TestWordingIsReadAsByExpressions(t *testing.T) {
	status := regexp.MustCompile(`\bstatus:? (\d{3})\b`)
	retry := regexp.MustCompile(`^Reconnecting\.\.\. (\d+)/\d+(?: \((.*)\))?`)
	exit := regexp.MustCompile(`(?m)^(?:Process exited with code|Exit code:) (\d+)$`)
	header := regexp.MustCompile(`(?m)^\*\*\* (Add|Update|Delete) File: (.+)$`)
	lostText := regexp.MustCompile(`(?i)^(?:connection failed|stream disconnected|error sending request|timeout)`)
	pieces := []string{
		" ", "x", "_", ":", "/", "4", "12", "429", "(", "\n", "\r", "é", "status", "status ", "status: ",
		"Reconnecting... ", "Reconnecting... 2/5",
		"Process exited with code ", "Exit code: ", "*** ", "*** Add File: ", "*** Update File: a", "Delete File: ",
		"Connection FAILED", "stream disconnected", "Timeout",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(t, "pieces"), "")
		same := func(what string, got int, match []string) {
			want := -1
			if match != nil {
				want, _ = strconv.Atoi(match[1])
			}
			if got != want {
				t.Errorf("%q: the %s is %d instead of %d", text, what, got, want)
			}
		}
		orNone := func(n int, found bool) int {
			if !found {
				return -1
			}
			return n
		}
		found := statusIn(text)
		same("status", orNone(found, found != 0), status.FindStringSubmatch(text))
		same("attempt", orNone(attemptIn(text)), retry.FindStringSubmatch(text))
		code := exitIn(text)
		if code == nil {
			same("exit code", -1, exit.FindStringSubmatch(text))
		} else {
			same("exit code", *code, exit.FindStringSubmatch(text))
		}
		if lost(text) != lostText.MatchString(text) {
			t.Errorf("%q tells of a lost connection: %t", text, lost(text))
		}
		var paths, kinds []string
		for _, match := range header.FindAllStringSubmatch(text, -1) {
			kinds, paths = append(kinds, strings.ToLower(match[1])), append(paths, strings.TrimSpace(match[2]))
		}
		if gotPaths, gotKinds := patchedFiles(text); !slices.Equal(gotPaths, paths) || !slices.Equal(gotKinds, kinds) {
			t.Errorf("%q patches %q %q instead of %q %q", text, gotPaths, gotKinds, paths, kinds)
		}
	})
}
