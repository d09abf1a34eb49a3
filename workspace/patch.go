package workspace

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// patchSide is a file before or after.
type patchSide struct {
	there   bool
	mode    string
	content []byte
	binary  bool
}

// contextLines is how many unchanged lines are shown around a change.
const contextLines = 3

// maxEdits bounds the search for the shortest difference of two files. Beyond it everything between
// the common beginning and the common end is replaced.
const maxEdits = 1000

// filePatch writes the patch of one file the way git does, and counts lines. A file that became a
// link, or the other way round, is deleted and recreated.
func filePatch(name string, a, b patchSide) (patch []byte, added, removed int) {
	if a.there && b.there && a.mode != b.mode && (a.mode == "120000" || b.mode == "120000") {
		gone, _, removed := filePatch(name, a, patchSide{})
		made, added, _ := filePatch(name, patchSide{}, b)
		return append(gone, made...), added, removed
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "diff --git %s %s\n", quotePath("a/", name), quotePath("b/", name))
	from, to := quotePath("a/", name), quotePath("b/", name)
	switch {
	case !a.there:
		fmt.Fprintf(&out, "new file mode %s\n", b.mode)
		from = "/dev/null"
	case !b.there:
		fmt.Fprintf(&out, "deleted file mode %s\n", a.mode)
		to = "/dev/null"
	case a.mode != b.mode:
		fmt.Fprintf(&out, "old mode %s\nnew mode %s\n", a.mode, b.mode)
	}
	if bytes.Equal(a.content, b.content) {
		return out.Bytes(), 0, 0
	}
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", withTab(from), withTab(to))
	oldLines, newLines := splitLines(a.content), splitLines(b.content)
	added, removed = writeHunks(&out, oldLines, newLines, diffLines(oldLines, newLines))
	return out.Bytes(), added, removed
}

// withTab ends a name that has blanks in it, as git does.
func withTab(name string) string {
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

// quotePath writes a name the way git does: in quotes if it has characters that are not plain.
func quotePath(prefix, name string) string {
	plain := true
	var out strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
			plain = false
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&out, "\\%03o", c)
			plain = false
		default:
			out.WriteByte(c)
		}
	}
	if plain {
		return prefix + name
	}
	return `"` + prefix + out.String() + `"`
}

// splitLines cuts a text after every line break; only the last line may lack one.
func splitLines(text []byte) [][]byte {
	if len(text) == 0 {
		return nil
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// edit says that the lines a0..a1 of the old text became the lines b0..b1 of the new one.
type edit struct{ a0, a1, b0, b1 int }

// diffLines finds a shortest list of edits, as long as it is not too long.
func diffLines(a, b [][]byte) []edit {
	start := 0
	for start < len(a) && start < len(b) && bytes.Equal(a[start], b[start]) {
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && bytes.Equal(a[endA-1], b[endB-1]) {
		endA, endB = endA-1, endB-1
	}
	if endA == start && endB == start { // the texts are the same
		return nil
	}
	edits := myers(a[start:endA], b[start:endB])
	if edits == nil {
		edits = []edit{{0, endA - start, 0, endB - start}}
	}
	for i := range edits {
		e := &edits[i]
		e.a0, e.a1, e.b0, e.b1 = e.a0+start, e.a1+start, e.b0+start, e.b1+start
	}
	return edits
}

// myers is the algorithm of that name: it returns nil if the texts differ in more than maxEdits
// lines.
func myers(a, b [][]byte) []edit {
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
			for x < n && y < m && bytes.Equal(a[x], b[y]) {
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
func backtrack(history [][]int, x, y, d int) []edit {
	var edits []edit
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
		one := edit{px, x, py, y}
		if last := len(edits) - 1; last >= 0 && edits[last].a0 == one.a1 && edits[last].b0 == one.b1 {
			edits[last].a0, edits[last].b0 = one.a0, one.b0
		} else {
			edits = append(edits, one)
		}
		x, y = px, py
	}
	slices.Reverse(edits)
	return edits
}

// writeHunks writes the edits with the lines around them; edits that are close together share a
// hunk.
func writeHunks(out *bytes.Buffer, a, b [][]byte, edits []edit) (added, removed int) {
	for len(edits) > 0 {
		last := 1
		for last < len(edits) && edits[last].a0-edits[last-1].a1 <= 2*contextLines {
			last++
		}
		hunk := edits[:last]
		edits = edits[last:]
		a0, b0 := max(0, hunk[0].a0-contextLines), max(0, hunk[0].b0-contextLines)
		a1, b1 := min(len(a), hunk[last-1].a1+contextLines), min(len(b), hunk[last-1].b1+contextLines)
		fmt.Fprintf(out, "@@ -%s +%s @@\n", hunkRange(a0, a1), hunkRange(b0, b1))
		at := a0
		for _, e := range hunk {
			writeLines(out, ' ', a[at:e.a0])
			writeLines(out, '-', a[e.a0:e.a1])
			writeLines(out, '+', b[e.b0:e.b1])
			removed += e.a1 - e.a0
			added += e.b1 - e.b0
			at = e.a1
		}
		writeLines(out, ' ', a[at:a1])
	}
	return added, removed
}

func hunkRange(from, to int) string {
	if from == to {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func writeLines(out *bytes.Buffer, mark byte, lines [][]byte) {
	for _, line := range lines {
		out.WriteByte(mark)
		out.Write(line)
		if len(line) == 0 || line[len(line)-1] != '\n' {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
