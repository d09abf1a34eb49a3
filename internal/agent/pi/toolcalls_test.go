package pi

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestExitCodesAreReadAsByAnExpression compares the search for the exit code with a regular
// expression that means the same.
func TestExitCodesAreReadAsByAnExpression(t *testing.T) {
	line := regexp.MustCompile(`(?:^|\n)Command exited with code (\d{1,3})\s*$`)
	pieces := []string{
		"\n", " ", "\t", "\v", "x", "+", "1", "127", "Command exited", "Command exited with code ",
		"\nCommand exited with code 2",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(t, "pieces"), "")
		got, want := -1, -1
		if code := exitCode(text, true); code != nil {
			got = *code
		}
		if match := line.FindStringSubmatch(text); match != nil {
			want, _ = strconv.Atoi(match[1])
		}
		if got != want {
			t.Errorf("%q ends with the code %d instead of %d", text, got, want)
		}
		if exitCode(text, false) != nil {
			t.Error("a command that succeeded has an exit code")
		}
	})
}
