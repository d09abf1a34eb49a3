package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The lines that a judge names are marked in the diff; what only looks like one is not.
func TestCitedLines(t *testing.T) {
	changed := &diff{Changes: []fileChange{
		{Name: "src/even.sh", Lines: []diffLine{
			{Sign: "@", Text: "@@ -1,3 +1,3 @@"},
			{Sign: " ", Text: "#!/bin/sh", Before: 1, After: 1},
			{Sign: "-", Text: "old", Before: 3},
			{Sign: "+", Text: "new", After: 3},
		}},
		{Name: "odd.sh", Lines: []diffLine{{Sign: "+", Text: "odd", After: 1}}},
	}}
	third := citation{File: "src/even.sh", Line: 3, Text: "new"}
	removed := citation{File: "src/even.sh", Line: -3, Text: "old"}
	for text, want := range map[string][]citation{
		"src/even.sh:3 is right":               {third},
		"see even.sh:3, and (even.sh:-3).":     {removed, third},
		"not-even.sh:3, even.sh:31, even.sh:9": {},
		"line 3 of even.sh":                    {},
		"odd.sh:1":                             {{File: "odd.sh", Line: 1, Text: "odd"}},
	} {
		t.Run(text, func(t *testing.T) {
			if diff := cmp.Diff(want, citations(text, changed)); diff != "" {
				t.Errorf("%s: %s", text, diff)
			}
		})
	}
	if got := citations("odd.sh:1", nil); len(got) != 0 {
		t.Errorf("without a diff: %v", got)
	}
}
