package selfedit

import "github.com/fit-eval/fit/internal/patch"

// Diff counts the lines an edit adds and removes.
type Diff struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// diffLines compares two texts line by line and counts as few changes as possible.
func diffLines(before, after []byte) *Diff {
	diff := &Diff{}
	for _, edit := range patch.Edits(patch.SplitLines(string(before)), patch.SplitLines(string(after))) {
		diff.Added += edit.B1 - edit.B0
		diff.Removed += edit.A1 - edit.A0
	}
	return diff
}
