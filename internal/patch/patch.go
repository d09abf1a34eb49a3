// Package patch reads unified diffs as git and our own workspace write them: files, hunks, and the
// added and removed lines by number. A diff comes from what an agent left behind, so nothing in it
// is trusted: what cannot be read is left out, and reading continues.
package patch

import (
	"cmp"
	"iter"
)

// What happened to a file.
const (
	added    = "added"
	deleted  = "deleted"
	Modified = "modified"
	Renamed  = "renamed"
	Copied   = "copied"
	onlyMode = "mode" // only the mode changed
)

// The first character of a line in a hunk.
const (
	Context byte = ' '
	Plus    byte = '+'
	Minus   byte = '-'
)

// Patch is a diff that was read.
type Patch struct {
	Files []File
	// Partial says that something in the diff could not be read, or was cut off.
	Partial bool
}

// File is the part of a diff that is about one file.
type File struct {
	// Old and New are the file's names before and after; empty where it was not there.
	Old, New string
	// OldMode and NewMode are git's modes, such as 100644; empty where the diff does not say.
	OldMode, NewMode string
	// Status is one of the constants above.
	Status string
	// Binary says that the content changed and is not shown.
	Binary bool
	Hunks  []Hunk
}

// Path returns the file's name: the new one, or the old one of a file that is gone.
func (f *File) Path() string { return cmp.Or(f.New, f.Old) }

// Lines returns the lines of all hunks.
func (f *File) Lines() iter.Seq[Line] {
	return func(yield func(Line) bool) {
		for i := range f.Hunks {
			for _, line := range f.Hunks[i].Lines {
				if !yield(line) {
					return
				}
			}
		}
	}
}

// Counts returns the number of added and removed lines.
func (f *File) Counts() (added, removed int) {
	for line := range f.Lines() {
		switch line.Op {
		case Plus:
			added++
		case Minus:
			removed++
		}
	}
	return added, removed
}

// Hunk is one place of a file that changed, with the lines around it.
type Hunk struct {
	OldStart, OldCount int
	NewStart, NewCount int
	Lines              []Line
}

// Line is a line of a hunk.
type Line struct {
	Op byte // Context, Plus or Minus
	// Old and New are its numbers before and after; 0 where it is not there.
	Old, New int
	Text     string // without the line break
	// NoNewline says that the file ends here without a line break.
	NoNewline bool
}
