package document

import "bytes"

// FrontMatter splits a Markdown file into the settings between the two lines of dashes with which
// it begins, and the text after them. A file without settings gives nil. Settings that are not
// closed, or that do not begin in the first line, are an error: they would be taken for text, and
// everything that they restrict would be allowed.
func FrontMatter(name string, text []byte) (settings *Document, body []byte, err error) {
	text = bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), []byte("\r\n"), []byte("\n"))
	line, rest, more := bytes.Cut(text, []byte("\n"))
	if !isFence(line) || !more {
		if isFence(firstLine(text)) {
			return nil, nil, &Error{
				File: name,
				Line: 1,
				Col:  1,
				Msg:  "the settings must begin in the first line, with --- at its beginning, and end with a line ---",
			}
		}
		return nil, text, nil
	}
	for at := 0; at <= len(rest); {
		line, _, more := bytes.Cut(rest[at:], []byte("\n"))
		if isFence(line) {
			settings, err := parseAt(name, rest[:at], 1)
			return settings, rest[min(len(rest), at+len(line)+1):], err
		}
		if !more {
			break
		}
		at += len(line) + 1
	}
	return nil, nil, &Error{
		File:    name,
		Line:    1,
		Col:     1,
		Msg:     "the settings that begin here do not end; close them with a line ---",
		Excerpt: string(line),
	}
}

// isFence reports whether a line begins or ends front matter.
func isFence(line []byte) bool { return string(bytes.TrimRight(line, " \t")) == "---" }

// firstLine returns the first line that is not blank.
func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimLeft(text, " \t\n"), []byte("\n"))
	return line
}
