package agent

import (
	"errors"
	"strings"
)

// Words splits a command line as a shell does, with quotes and backslashes, and without variables,
// patterns or anything else that a shell would replace.
func Words(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun := false
	for rest := text; rest != ""; {
		c := rest[0]
		rest = rest[1:]
		switch c {
		case ' ', '\t', '\n', '\r':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
			continue
		case '\'', '"':
			quoted, after, err := quotedWord(rest, c)
			if err != nil {
				return nil, err
			}
			word.WriteString(quoted)
			rest = after
		case '\\':
			if rest == "" {
				return nil, errors.New("the command ends in a backslash")
			}
			word.WriteByte(rest[0])
			rest = rest[1:]
		default:
			word.WriteByte(c)
		}
		begun = true
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// quotedWord reads up to the closing quote. Within double quotes a backslash escapes a quote or a
// backslash.
func quotedWord(text string, quote byte) (word, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return b.String(), text[i+1:], nil
		case c == '\\' && quote == '"' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\'):
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errors.New("a quote is not closed")
}
