package selfedit

import "bytes"

// Diff counts the lines an edit adds and removes.
type Diff struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// maxDiffCells bounds the work for one comparison; beyond it, the differing middle counts as
// replaced as a whole.
const maxDiffCells = 4 << 20

// diffLines compares two texts line by line and counts as few changes as possible.
func diffLines(before, after []byte) *Diff {
	a, b := splitLines(before), splitLines(after)
	for len(a) > 0 && len(b) > 0 && bytes.Equal(a[0], b[0]) {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && bytes.Equal(a[len(a)-1], b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	common := 0
	if len(a)*len(b) <= maxDiffCells {
		common = commonLines(a, b)
	}
	return &Diff{Added: len(b) - common, Removed: len(a) - common}
}

func splitLines(text []byte) [][]byte {
	var lines [][]byte
	for line := range bytes.Lines(text) {
		lines = append(lines, line)
	}
	return lines
}

// commonLines returns the length of the longest common subsequence.
func commonLines(a, b [][]byte) int {
	row := make([]int, len(b)+1)
	for _, left := range a {
		diagonal := 0
		for j, right := range b {
			above := row[j+1]
			if bytes.Equal(left, right) {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}
