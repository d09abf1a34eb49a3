package treatment

import (
	"hash/maphash"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// fold returns the common form of a text in a file and in a request: without entities, line
// numbers and differences of white space. Its lines are joined by single spaces.
func fold(text string) string {
	var folded []byte
	for line := range foldedLines(text) {
		if len(folded) > 0 {
			folded = append(folded, ' ')
		}
		folded = append(folded, line...)
	}
	return string(folded)
}

// foldedLines iterates over the lines of a text that are not blank, each in its common form, which
// is valid until the next one.
func foldedLines(text string) func(yield func([]byte) bool) {
	text = unescape(text)
	return func(yield func([]byte) bool) {
		var folded []byte
		for rest := text; rest != ""; {
			line := rest
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				line, rest = rest[:end], rest[end+1:]
			} else {
				rest = ""
			}
			folded = appendFolded(folded[:0], withoutNumber(line))
			if len(folded) > 0 && !yield(folded) {
				return
			}
		}
	}
}

// maxEscapes is how often a text may have been escaped.
const maxEscapes = 3

// unescape replaces entities, as in a description inside of XML.
func unescape(text string) string {
	for range maxEscapes {
		if !strings.Contains(text, "&") {
			return text
		}
		plain := html.UnescapeString(text)
		if plain == text {
			return text
		}
		text = plain
	}
	return text
}

// withoutNumber removes the number that tools put before a line, as in "    12→", "12: ", "12 | "
// and "12<tab>".
func withoutNumber(line string) string {
	for {
		rest := strings.TrimLeft(line, " \t")
		digits := 0
		for digits < len(rest) && digits < 7 && '0' <= rest[digits] && rest[digits] <= '9' {
			digits++
		}
		if digits == 0 {
			return line
		}
		rest = rest[digits:]
		switch {
		case strings.HasPrefix(rest, "→"):
			line = rest[len("→"):]
		case strings.HasPrefix(rest, "\t"), rest == ":", strings.HasPrefix(rest, ": "):
			line = rest[1:]
		case rest == " |", strings.HasPrefix(rest, " | "):
			line = rest[2:]
		default:
			return line
		}
	}
}

// appendFolded appends a line with single spaces between its words.
func appendFolded(dst []byte, line string) []byte {
	start := len(dst)
	for i := 0; i < len(line); {
		from := i
		for i < len(line) && line[i] > ' ' && line[i] < utf8.RuneSelf { // nearly everything
			i++
		}
		if i > from {
			dst = append(dst, line[from:i]...)
			continue
		}
		c, size := utf8.DecodeRuneInString(line[i:])
		i += size
		switch {
		case c != '\ufeff' && c != 0 && !unicode.IsSpace(c):
			dst = utf8.AppendRune(dst, c)
		case len(dst) > start && dst[len(dst)-1] != ' ':
			dst = append(dst, ' ')
		}
	}
	if len(dst) > start && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// word is a word of a text: letters and digits, or one character of a script without spaces.
type word struct {
	sum        uint64
	start, end int // in the text
}

// words splits a text; what is between the words does not count.
func (r *reader) words(text string) []word {
	var found []word
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRuneInString(text[i:])
		start := i
		i += size
		switch {
		case isDense(c):
		case isWordRune(c):
			for i < len(text) {
				c, size := utf8.DecodeRuneInString(text[i:])
				if !isWordRune(c) || isDense(c) {
					break
				}
				i += size
			}
		default:
			continue
		}
		found = append(found, word{maphash.String(r.seed, text[start:i]), start, i})
	}
	return found
}

func isWordRune(c rune) bool {
	if c < utf8.RuneSelf {
		return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	return unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c)
}

// isDense reports whether a character belongs to a script that is written without spaces.
func isDense(c rune) bool {
	return c >= 0x0e00 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar)
}
