package patch

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// maxNumber bounds line numbers, so that sums of them stay numbers.
const maxNumber = 1 << 30

// Parse reads a diff. It never fails: what it cannot read makes the patch partial.
func Parse(data []byte) *Patch {
	p := &Patch{}
	var part []string
	for text := range strings.Lines(string(data)) {
		// No line of a hunk begins like these two, so a broken file never hides the next one.
		if strings.HasPrefix(text, "diff --git ") || strings.HasPrefix(text, ownBinary) {
			p.part(part)
			part = nil
		}
		if text == "# "+CutNote+"\n" {
			p.Partial = true
			continue
		}
		part = append(part, strings.TrimSuffix(text, "\n")+"\n")
	}
	p.part(part)
	return p
}

// part reads one file, or all files of a diff without git's own headers. What cannot be read is
// mended once: first the hunks, then the headers.
func (p *Patch) part(lines []string) {
	if len(lines) == 0 {
		return
	}
	first := lines[0]
	lines = normalise(lines)
	files, err := read(lines)
	if err != nil {
		lines = p.mendHunks(lines)
		files, err = read(lines)
	}
	if err != nil {
		p.Partial = true
		if git, ok := strings.CutPrefix(first, "diff --git "); ok {
			files, _ = read(renamed(lines, strings.ReplaceAll(strings.TrimSpace(git), `"`, "")))
		}
	}
	p.add(files, lines)
}

func read(lines []string) ([]*gitdiff.File, error) {
	files, _, err := gitdiff.Parse(strings.NewReader(strings.Join(lines, "")))
	return files, err
}

// normalise writes git's headers in the one way that gitdiff reads: with a/ and b/ in front of the
// names, without carriage returns, and with no content of binary files, which could be a bomb.
func normalise(lines []string) []string {
	if rest, ok := strings.CutPrefix(lines[0], ownBinary); ok {
		return gitBinary(strings.TrimSuffix(rest, "\n"))
	}
	if !strings.HasPrefix(lines[0], "diff --git ") {
		return lines
	}
	for i := range lines {
		line := strings.TrimSuffix(strings.TrimSuffix(lines[i], "\n"), "\r")
		if strings.HasPrefix(line, "@@ ") {
			break
		}
		if strings.Contains(line, `"`) {
			line = strings.ReplaceAll(line, `\\`, `\134`) // gitdiff takes \\" for an escaped quote
		}
		if rest, ok := strings.CutPrefix(line, "diff --git "); ok {
			if half := len(rest) / 2; len(rest)%2 == 1 && rest[:half] == rest[half+1:] {
				line = gitHeader(rest[:half])
			}
		}
		line = withPrefix(withPrefix(line, "--- ", "a/"), "+++ ", "b/")
		if line == "GIT binary patch" {
			line = "Binary files differ"
		}
		lines[i] = line + "\n"
	}
	return lines
}

// CutNote is in a comment at the end of a patch from which a workspace left something out.
const CutNote = "the patch is cut here: it is too large"

// ownBinary starts the line with which a workspace reports that a binary file changed.
const ownBinary = "# binary file "

// gitBinary says it as git does.
func gitBinary(rest string) []string {
	status, name, _ := strings.Cut(rest, ": ")
	lines := []string{gitHeader(strings.ReplaceAll(name, `\\`, `\134`)) + "\n"}
	switch status {
	case added:
		lines = append(lines, "new file mode 0\n")
	case deleted:
		lines = append(lines, "deleted file mode 0\n")
	}
	return append(lines, "Binary files differ\n")
}

// gitHeader returns the line with which git begins a file, whose name may be in quotes.
func gitHeader(name string) string {
	if inner, quoted := strings.CutPrefix(name, `"`); quoted {
		return fmt.Sprintf(`diff --git "a/%s "b/%s`, inner, inner)
	}
	return fmt.Sprintf("diff --git a/%s b/%s", name, name)
}

// withPrefix puts a prefix in front of the name in a header that lacks it.
func withPrefix(line, header, prefix string) string {
	name, ok := strings.CutPrefix(line, header)
	quote := ""
	if strings.HasPrefix(name, `"`) {
		quote, name = `"`, name[1:]
	}
	if !ok || name == "/dev/null" || strings.HasPrefix(name, prefix) {
		return line
	}
	return header + quote + prefix + name
}

var ranges = lazyregexp.New(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@`)

// mendHunks drops hunks without ranges and counts anew the lines of those that end too early.
func (p *Patch) mendHunks(lines []string) []string {
	var mended []string
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], "@@ ") {
			mended = append(mended, lines[i])
			continue
		}
		start := i
		found := ranges.FindStringSubmatch(lines[start])
		oldCount, newCount := maxNumber, maxNumber // without ranges all lines that could be of a hunk are
		if found != nil {
			oldCount, newCount = lineCount(found[2]), lineCount(found[4])
		}
		old, added := 0, 0
	hunk:
		for ; i+1 < len(lines) && (old < oldCount || added < newCount); i++ {
			switch text := lines[i+1]; {
			case text[0] == '-' && old < oldCount:
				old++
			case text[0] == '+' && added < newCount:
				added++
			case (text[0] == ' ' || text[0] == '\n') && old < oldCount && added < newCount:
				old, added = old+1, added+1
			case text[0] != '\\':
				break hunk
			}
		}
		if found == nil {
			p.Partial = true
			continue
		}
		if old < oldCount || added < newCount {
			p.Partial = true
			lines[start] = fmt.Sprintf("@@ -%s,%d +%s,%d @@\n", found[1], old, found[3], added)
		}
		mended = append(mended, lines[start:i+1]...)
	}
	return mended
}

// lineCount reads the number of lines of a range, which is 1 where it is missing.
func lineCount(text string) int {
	if text == "" {
		return 1
	}
	n, _ := strconv.Atoi(text)
	return n
}

// renamed returns a file's lines with headers that say nothing but a name.
func renamed(lines []string, name string) []string {
	start := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "@@ ") })
	header := []string{gitHeader(name) + "\n"}
	if start < 0 {
		return header
	}
	return append(header, lines[start:]...)
}

// add adds files that were read, and notes hunks that gitdiff took for words between files.
func (p *Patch) add(files []*gitdiff.File, lines []string) {
	hunks := 0
	for _, from := range files {
		f := File{
			Old:     from.OldName,
			New:     from.NewName,
			OldMode: mode(from.OldMode),
			NewMode: mode(from.NewMode),
			Binary:  from.IsBinary,
		}
		for _, fragment := range from.TextFragments {
			hunks++
			if fragment.OldPosition < min(1, fragment.OldLines) || fragment.NewPosition < min(1, fragment.NewLines) ||
				max(fragment.OldPosition, fragment.NewPosition) > maxNumber {
				p.Partial = true
				continue
			}
			f.Hunks = append(f.Hunks, hunk(fragment))
		}
		if !strings.HasPrefix(lines[0], "diff --git ") {
			f.Old, f.New = plainName(f.Old), plainName(f.New)
		}
		f.Status = status(from)
		if f.Status == Modified && f.NewMode == "" { // an index line has one mode for both
			f.NewMode = f.OldMode
		}
		p.Files = append(p.Files, f)
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "@@ ") { // no line of a hunk begins like this
			hunks--
		}
	}
	p.Partial = p.Partial || hunks < 0
}

func status(f *gitdiff.File) string {
	switch {
	case f.IsNew:
		return added
	case f.IsDelete:
		return deleted
	case f.IsRename:
		return Renamed
	case f.IsCopy:
		return Copied
	case !f.IsBinary && len(f.TextFragments) == 0 && f.NewMode != 0:
		return onlyMode
	}
	return Modified
}

// plainName returns a name of a diff that git did not write, which may have git's prefixes all the
// same.
func plainName(name string) string {
	name = strings.TrimSuffix(name, "\r")
	return strings.TrimPrefix(strings.TrimPrefix(name, "a/"), "b/")
}

func mode(m fs.FileMode) string {
	if m == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(m), 8)
}

func hunk(from *gitdiff.TextFragment) Hunk {
	h := Hunk{
		OldStart: int(from.OldPosition),
		OldCount: int(from.OldLines),
		NewStart: int(from.NewPosition),
		NewCount: int(from.NewLines),
	}
	old, new := h.OldStart, h.NewStart
	for _, one := range from.Lines {
		text, whole := strings.CutSuffix(one.Line, "\n")
		line := Line{Op: Context, Text: text, NoNewline: !whole}
		switch one.Op {
		case gitdiff.OpAdd:
			line.Op = Plus
		case gitdiff.OpDelete:
			line.Op = Minus
		}
		if line.Op != Plus {
			line.Old = old
			old++
		}
		if line.Op != Minus {
			line.New = new
			new++
		}
		h.Lines = append(h.Lines, line)
	}
	return h
}
