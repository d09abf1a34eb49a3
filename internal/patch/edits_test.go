package patch_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fit-eval/fit/internal/patch"
)

// apply carries out the edits that Edits found.
func apply(a, b []string, edits []patch.Edit) string {
	out := ""
	at := 0
	for _, e := range edits {
		out += strings.Join(a[at:e.A0], "")
		out += strings.Join(b[e.B0:e.B1], "")
		at = e.A1
	}
	return out + strings.Join(a[at:], "")
}

func TestEditsLeadFromOneTextToTheOther(t *testing.T) {
	line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "d", "long line\r\n"})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 30).Draw(t, "lines"),
			"")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := patch.SplitLines(text.Draw(t, "a")), patch.SplitLines(text.Draw(t, "b"))
		edits := patch.Edits(a, b)
		if got := apply(a, b, edits); got != strings.Join(b, "") {
			t.Fatalf("edits %v give %q", edits, got)
		}
		changed := 0
		for _, e := range edits {
			changed += e.A1 - e.A0 + e.B1 - e.B0
		}
		if want := len(a) + len(b) - 2*common(a, b); changed != want {
			t.Fatalf("%d lines are changed, the shortest way is %d", changed, want)
		}
	})
}

// common is the length of the longest common subsequence, by the plain method.
func common(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

func TestFilesWithNothingInCommonAreReplaced(t *testing.T) {
	a, b := patch.SplitLines(strings.Repeat("x\n", 3000)), patch.SplitLines(strings.Repeat("y\n", 3000))
	if got := apply(a, b, patch.Edits(a, b)); got != strings.Join(b, "") {
		t.Error("the replacement is wrong")
	}
}
