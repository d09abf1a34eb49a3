package selfedit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// configEntry is one variable of a git configuration file. Section and key are in lower case, as
// git compares them.
type configEntry struct {
	section, subsection, key, value string
}

// parseGitConfig reads the text of a git configuration file by git's own rules.
func parseGitConfig(text []byte) ([]configEntry, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	// Git takes carriage returns for part of the line end and nothing else.
	parser := configParser{text: strings.ReplaceAll(string(text), "\r\n", "\n"), line: 1}
	if strings.ContainsRune(parser.text, 0) {
		return nil, errors.New("it holds a NUL byte")
	}
	for {
		parser.skipSpaceAndComments()
		if parser.done() {
			return parser.entries, nil
		}
		if err := parser.next(); err != nil {
			return nil, fmt.Errorf("line %d: %w", parser.line, err)
		}
	}
}

type configParser struct {
	text                string
	at, line            int
	section, subsection string
	entries             []configEntry
}

func (p *configParser) done() bool { return p.at >= len(p.text) }

func (p *configParser) peek() byte {
	if p.done() {
		return '\n'
	}
	return p.text[p.at]
}

func (p *configParser) take() byte {
	c := p.peek()
	p.at++
	if c == '\n' {
		p.line++
	}
	return c
}

func (p *configParser) skipSpaceAndComments() {
	for !p.done() {
		switch c := p.peek(); {
		case isSpace(c):
			p.take()
		case c == '#' || c == ';':
			for !p.done() && p.peek() != '\n' {
				p.take()
			}
		default:
			return
		}
	}
}

func (p *configParser) next() error {
	if p.peek() == '[' {
		return p.header()
	}
	return p.variable()
}

// header reads [section], [section "subsection"] or the old [section.subsection].
func (p *configParser) header() error {
	p.take()
	start := p.at
	for isNameByte(p.peek()) || p.peek() == '.' {
		p.take()
	}
	name := strings.ToLower(p.text[start:p.at])
	p.section, p.subsection, _ = strings.Cut(name, ".")
	if isBlank(p.peek()) {
		for isBlank(p.peek()) {
			p.take()
		}
		if err := p.quotedSubsection(name); err != nil {
			return err
		}
	}
	if name == "" || p.take() != ']' {
		return errors.New("a section header that cannot be read")
	}
	return nil
}

func (p *configParser) quotedSubsection(section string) error {
	if p.take() != '"' {
		return errors.New("a section header that cannot be read")
	}
	var subsection strings.Builder
	for p.peek() != '"' {
		c := p.take()
		if c == '\\' {
			c = p.take()
		}
		if c == '\n' {
			return errors.New("a section header that is not closed")
		}
		subsection.WriteByte(c)
	}
	p.take()
	p.section, p.subsection = section, subsection.String()
	return nil
}

func (p *configParser) variable() error {
	start := p.at
	for isNameByte(p.peek()) {
		p.take()
	}
	key := strings.ToLower(p.text[start:p.at])
	if key == "" || !isLetter(key[0]) {
		return errors.New("a variable that cannot be read")
	}
	entry := configEntry{section: p.section, subsection: p.subsection, key: key}
	for isBlank(p.peek()) {
		p.take()
	}
	switch p.peek() {
	case '\n':
		p.take()
	case '=':
		p.take()
		value, err := p.value()
		if err != nil {
			return err
		}
		entry.value = value
	default:
		return errors.New("a variable that cannot be read")
	}
	p.entries = append(p.entries, entry)
	return nil
}

// value reads up to the end of the line: quotes, escapes, continued lines, and no space at the ends
// that is not quoted.
func (p *configParser) value() (string, error) {
	var value strings.Builder
	kept, quoted := 0, false
	for {
		c := p.take()
		switch {
		case c == '\n' && quoted:
			return "", errors.New("a quote that is not closed")
		case c == '\n':
			return value.String()[:kept], nil
		case isSpace(c) && !quoted:
			if value.Len() > 0 {
				value.WriteByte(c)
			}
			continue
		case (c == '#' || c == ';') && !quoted:
			for p.peek() != '\n' {
				p.take()
			}
			continue
		case c == '"':
			quoted = !quoted
			kept = max(kept, value.Len())
			continue
		case c == '\\':
			escaped, err := unescape(p.take())
			if err != nil {
				return "", err
			}
			value.WriteString(escaped)
		default:
			value.WriteByte(c)
		}
		kept = value.Len()
	}
}

func unescape(c byte) (string, error) {
	switch c {
	case '\n':
		return "", nil
	case 'n':
		return "\n", nil
	case 't':
		return "\t", nil
	case 'b':
		return "\b", nil
	case '\\', '"':
		return string(rune(c)), nil
	}
	return "", errors.New("an escape that git does not know")
}

func isLetter(c byte) bool   { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isNameByte(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' || c == '-' }
func isBlank(c byte) bool    { return c == ' ' || c == '\t' }
func isSpace(c byte) bool    { return isBlank(c) || c == '\n' || c == '\r' || c == '\v' || c == '\f' }
