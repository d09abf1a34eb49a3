package patch

import (
	"slices"
	"strings"
)

// maxEdits bounds the search for the shortest difference of two files. Beyond it everything between
// the common beginning and the common end is replaced.
const maxEdits = 1000

// SplitLines cuts a text after every line break; only the last line may lack one.
func SplitLines(text string) []string { return slices.Collect(strings.Lines(text)) }

// Edit says that the lines A0 to A1 of the old text became the lines B0 to B1 of the new one.
type Edit struct{ A0, A1, B0, B1 int }

// Edits finds a shortest list of edits that leads from one text to another, as long as it is not
// too long.
func Edits(a, b []string) []Edit {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
	}
	if endA == start && endB == start { // the texts are the same
		return nil
	}
	edits := myers(a[start:endA], b[start:endB])
	if edits == nil {
		edits = []Edit{{0, endA - start, 0, endB - start}}
	}
	for i := range edits {
		e := &edits[i]
		e.A0, e.A1, e.B0, e.B1 = e.A0+start, e.A1+start, e.B0+start, e.B1+start
	}
	return edits
}

// myers computes edits with Myers' algorithm. It returns nil if the texts differ in more than
// maxEdits lines.
func myers(a, b []string) []Edit {
	n, m := len(a), len(b)
	limit := min(n+m, maxEdits)
	reach := make([]int, 2*limit+3) // how far each diagonal has come
	at := func(k int) int { return k + limit + 1 }
	var history [][]int
	for d := 0; d <= limit; d++ {
		history = append(history, append([]int(nil), reach[at(-d)-1:at(d)+2]...))
		for k := -d; k <= d; k += 2 {
			x := reach[at(k-1)] + 1
			if k == -d || k != d && reach[at(k-1)] < reach[at(k+1)] {
				x = reach[at(k+1)]
			}
			y := x - k
			for x < n && y < m && a[x] == b[y] {
				x, y = x+1, y+1
			}
			reach[at(k)] = x
			if x >= n && y >= m {
				return backtrack(history, n, m, d)
			}
		}
	}
	return nil
}

// backtrack reads the path that led to the end, from the back.
func backtrack(history [][]int, x, y, d int) []Edit {
	var edits []Edit
	for ; d > 0; d-- {
		reach := func(k int) int { return history[d][k+d+1] }
		k := x - y
		previous := k - 1
		if k == -d || k != d && reach(k-1) < reach(k+1) {
			previous = k + 1
		}
		px := reach(previous)
		py := px - previous
		for x > px && y > py { // unchanged lines
			x, y = x-1, y-1
		}
		one := Edit{px, x, py, y}
		if last := len(edits) - 1; last >= 0 && edits[last].A0 == one.A1 && edits[last].B0 == one.B1 {
			edits[last].A0, edits[last].B0 = one.A0, one.B0
		} else {
			edits = append(edits, one)
		}
		x, y = px, py
	}
	slices.Reverse(edits)
	return edits
}
