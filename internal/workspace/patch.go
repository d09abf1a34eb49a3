package workspace

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/patch"
)

// patchSide is a file before or after.
type patchSide struct {
	exists  bool
	mode    string
	content []byte
	binary  bool
	long    bool // too long to be shown
}

// contextLines is how many unchanged lines are shown around a change.
const contextLines = 3

// filePatch writes the patch of one file the way git does; from is its former name. A file that
// became a link, or the other way round, is deleted and recreated.
func filePatch(name, from string, a, b patchSide) []byte {
	if a.exists && b.exists && a.mode != b.mode && (a.mode == "120000" || b.mode == "120000") {
		return append(filePatch(name, from, a, patchSide{}), filePatch(name, from, patchSide{}, b)...)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "diff --git %s %s\n", quotePath("a/", from), quotePath("b/", name))
	old, new := quotePath("a/", from), quotePath("b/", name)
	switch {
	case !a.exists:
		fmt.Fprintf(&out, "new file mode %s\n", b.mode)
		old = "/dev/null"
	case !b.exists:
		fmt.Fprintf(&out, "deleted file mode %s\n", a.mode)
		new = "/dev/null"
	case a.mode != b.mode:
		fmt.Fprintf(&out, "old mode %s\nnew mode %s\n", a.mode, b.mode)
	}
	if name != from {
		fmt.Fprintf(&out, "rename from %s\nrename to %s\n", quotePath("", from), quotePath("", name))
	}
	if bytes.Equal(a.content, b.content) {
		return out.Bytes()
	}
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", withTab(old), withTab(new))
	oldLines, newLines := patch.SplitLines(string(a.content)), patch.SplitLines(string(b.content))
	writeHunks(&out, oldLines, newLines, patch.Edits(oldLines, newLines))
	return out.Bytes()
}

// withTab ends a name that contains blanks with a tab, as git does.
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

// writeHunks writes the edits with the lines around them; edits that are close together share a
// hunk.
func writeHunks(out *bytes.Buffer, a, b []string, edits []patch.Edit) {
	for len(edits) > 0 {
		last := 1
		for last < len(edits) && edits[last].A0-edits[last-1].A1 <= 2*contextLines {
			last++
		}
		hunk := edits[:last]
		edits = edits[last:]
		a0, b0 := max(0, hunk[0].A0-contextLines), max(0, hunk[0].B0-contextLines)
		a1, b1 := min(len(a), hunk[last-1].A1+contextLines), min(len(b), hunk[last-1].B1+contextLines)
		fmt.Fprintf(out, "@@ -%s +%s @@\n", hunkRange(a0, a1), hunkRange(b0, b1))
		at := a0
		for _, e := range hunk {
			writeLines(out, ' ', a[at:e.A0])
			writeLines(out, '-', a[e.A0:e.A1])
			writeLines(out, '+', b[e.B0:e.B1])
			at = e.A1
		}
		writeLines(out, ' ', a[at:a1])
	}
}

func hunkRange(from, to int) string {
	if from == to {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func writeLines(out *bytes.Buffer, mark byte, lines []string) {
	for _, line := range lines {
		out.WriteByte(mark)
		out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
