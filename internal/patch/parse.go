package patch

import (
	"strconv"
	"strings"
)

// maxProblems bounds what is kept of a diff that is not one.
const maxProblems = 100

// Parse reads a diff. It never fails: what it cannot read is listed as problems.
func Parse(data []byte) *Patch {
	p := &parser{rest: string(data), patch: &Patch{}}
	for p.next() {
		p.header()
	}
	p.finish()
	return p.patch
}

// parser reads a diff line by line.
type parser struct {
	rest   string
	line   string // the current one, without its line break
	number int
	patch  *Patch
	file   *File // the one that the current lines belong to; nil before the first
	again  bool  // the current line is still to be read
	// unnamed is the line that begins the current file, if its names cannot be distinguished there.
	unnamed int
}

func (p *parser) next() bool {
	if p.again {
		p.again = false
		return true
	}
	if p.rest == "" {
		return false
	}
	p.line, p.rest, _ = strings.Cut(p.rest, "\n")
	p.number++
	return true
}

func (p *parser) problem(message string) { p.problemAt(p.number, message) }

func (p *parser) problemAt(line int, message string) {
	if len(p.patch.Problems) < maxProblems {
		p.patch.Problems = append(p.patch.Problems, Problem{line, message})
	}
}

// begin starts the next file.
func (p *parser) begin() {
	p.finish()
	p.patch.Files = append(p.patch.Files, File{})
	p.file = &p.patch.Files[len(p.patch.Files)-1]
}

// finish decides what happened to the file that has been read.
func (p *parser) finish() {
	f := p.file
	if f != nil && p.unnamed > 0 && f.Old == "" && f.New == "" {
		p.problemAt(p.unnamed, "names that cannot be distinguished")
	}
	p.unnamed = 0
	if f == nil || f.Status != "" {
		return
	}
	switch {
	case f.Old == "" && f.New != "":
		f.Status = added
	case f.New == "" && f.Old != "":
		f.Status = deleted
	case !f.Binary && len(f.Hunks) == 0 && f.OldMode != f.NewMode:
		f.Status = onlyMode
	default:
		f.Status = Modified
	}
}

// header reads a line outside hunks.
func (p *parser) header() {
	line := p.line
	if rest, ok := strings.CutPrefix(line, "diff --git "); ok {
		p.begin()
		p.gitNames(rest)
		return
	}
	if rest, ok := strings.CutPrefix(line, "# binary file "); ok {
		p.ownBinary(rest)
		return
	}
	if strings.HasPrefix(line, "--- ") && (p.file == nil || len(p.file.Hunks) > 0) {
		p.begin() // a diff without git's own headers
	}
	if p.file == nil {
		if strings.HasPrefix(line, "@@ ") {
			p.problem("a hunk that belongs to no file")
		}
		return // words before the diff
	}
	p.fileHeader(line)
}

func (p *parser) fileHeader(line string) {
	f := p.file
	word, value, _ := strings.Cut(line, " ")
	switch {
	case strings.HasPrefix(line, "@@ "):
		p.hunk(line)
	case word == "---":
		f.Old = p.name(value, "a/")
	case word == "+++":
		f.New = p.name(value, "b/")
	case strings.HasPrefix(line, "old mode "):
		f.OldMode = line[len("old mode "):]
	case strings.HasPrefix(line, "new mode "):
		f.NewMode = line[len("new mode "):]
	case strings.HasPrefix(line, "new file mode "):
		f.NewMode, f.Old = line[len("new file mode "):], ""
	case strings.HasPrefix(line, "deleted file mode "):
		f.OldMode, f.New = line[len("deleted file mode "):], ""
	case strings.HasPrefix(line, "rename from "), strings.HasPrefix(line, "copy from "):
		_, value, _ = strings.Cut(value, " ")
		f.Old = p.name(value, "")
	case strings.HasPrefix(line, "rename to "), strings.HasPrefix(line, "copy to "):
		_, value, _ = strings.Cut(value, " ")
		f.New = p.name(value, "")
		f.Status = Renamed
		if word == "copy" {
			f.Status = Copied
		}
	case strings.HasPrefix(line, "Binary files "), line == "GIT binary patch":
		f.Binary = true
	case word == "index":
		if _, mode, ok := strings.Cut(value, " "); ok && f.OldMode == "" && f.NewMode == "" {
			f.OldMode, f.NewMode = mode, mode
		}
	}
}

// gitNames reads the names of a diff --git line. Unquoted names with blanks are ambiguous there;
// where nothing else names the file, both halves are the same name, and so the middle is found.
func (p *parser) gitNames(rest string) {
	if strings.HasPrefix(rest, `"`) {
		if first, after, ok := unquote(rest); ok {
			p.file.Old = strings.TrimPrefix(first, "a/")
			p.file.New = p.name(strings.TrimPrefix(after, " "), "b/")
			return
		}
		p.problem("a quoted name that does not end")
		return
	}
	if at := strings.Index(rest, ` "`); at >= 0 {
		p.file.Old, p.file.New = strings.TrimPrefix(rest[:at], "a/"), p.name(rest[at+1:], "b/")
		return
	}
	if half := len(rest) / 2; len(rest)%2 == 1 && rest[half] == ' ' &&
		strings.TrimPrefix(rest[:half], "a/") == strings.TrimPrefix(rest[half+1:], "b/") {
		p.file.Old, p.file.New = strings.TrimPrefix(rest[:half], "a/"), strings.TrimPrefix(rest[half+1:], "b/")
		return
	}
	if first, second, ok := strings.Cut(rest, " b/"); ok {
		p.file.Old, p.file.New = strings.TrimPrefix(first, "a/"), second
		return
	}
	p.unnamed = p.number // later lines may name it
}

// ownBinary reads the line with which a workspace reports that a binary file changed.
func (p *parser) ownBinary(rest string) {
	status, name, ok := strings.Cut(rest, ": ")
	if !ok {
		p.problem("a binary file without a name")
		return
	}
	p.begin()
	f := p.file
	f.Binary, f.Old, f.New = true, p.name(name, ""), p.name(name, "")
	switch status {
	case added:
		f.Old = ""
	case deleted:
		f.New = ""
	}
}

// name reads a name as it is in a header; /dev/null is not a file.
func (p *parser) name(text, prefix string) string {
	if strings.HasPrefix(text, `"`) {
		name, _, ok := unquote(text)
		if !ok {
			p.problem("a quoted name that does not end")
			return ""
		}
		return strings.TrimPrefix(name, prefix)
	}
	text = strings.TrimSuffix(text, "\r")
	if name, _, stamped := strings.Cut(text, "\t"); stamped { // a time, or the end of a name with blanks
		text = name
	}
	if text == "/dev/null" {
		return ""
	}
	return strings.TrimPrefix(text, prefix)
}

// unquote reads a name in quotes, with git's escapes, and returns what follows it.
func unquote(text string) (name, rest string, ok bool) {
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			return out.String(), text[i+1:], true
		case '\\':
			i++
			if i >= len(text) {
				return "", "", false
			}
			if text[i] >= '0' && text[i] <= '3' && i+2 < len(text) {
				if octal, err := strconv.ParseUint(text[i:i+3], 8, 8); err == nil {
					out.WriteByte(byte(octal))
					i += 2
					continue
				}
			}
			out.WriteByte(unescaped(text[i]))
		default:
			out.WriteByte(c)
		}
	}
	return "", "", false
}

func unescaped(c byte) byte {
	const from, to = "abtnvfr", "\a\b\t\n\v\f\r"
	if at := strings.IndexByte(from, c); at >= 0 {
		return to[at]
	}
	return c
}
