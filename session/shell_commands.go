package session

import (
	"path"
	"slices"
	"strings"
)

// SimpleCommand is one call of a program in a shell command.
type SimpleCommand struct {
	// Words are the program and its arguments, without quotes, assignments in front and wrappers
	// such as sudo. Redirections are among them.
	Words []string
	// After is the operator in front of it: ;, &&, ||, |, &, ( or, for the first, nothing.
	After string
}

// Name returns the program's name without its directory.
func (c *SimpleCommand) Name() string { return path.Base(c.Words[0]) }

// maxCommands bounds the calls that one shell command is split into, and maxShellDepth how deep
// shells in shells are followed.
const (
	maxCommands   = 256
	maxShellDepth = 4
)

// Commands splits a shell command into the calls that it makes, those in $(…), in backquotes and
// behind "bash -c" among them. What a here-document holds is text, unless a shell reads it.
func Commands(command string) []SimpleCommand {
	if len(command) > maxShell {
		command = command[:maxShell]
	}
	s := &commandSplitter{}
	s.split(unwrapShell(command), "", 0)
	return s.list
}

type commandSplitter struct {
	list []SimpleCommand
}

// split adds the calls of a script.
func (s *commandSplitter) split(script, after string, depth int) {
	if depth > maxShellDepth {
		return
	}
	var quote byte
	start := 0
	cut := func(end int, next string, width int) {
		s.add(script[start:end], after, depth)
		start, after = end+width, next
	}
	for i := 0; i < len(script) && len(s.list) < maxCommands; i++ {
		c := script[i]
		following := byte(0)
		if i+1 < len(script) {
			following = script[i+1]
		}
		switch {
		case quote == '\'':
			if c == '\'' {
				quote = 0
			}
		case c == '\\':
			i++
		case c == '$' && following == '(', c == '`':
			i = s.nested(script, i, depth)
		case quote == '"':
			if c == '"' {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '<' && following == '<' && !strings.HasPrefix(script[i:], "<<<"):
			if end := hereDocumentEnd(script, i); end > 0 {
				s.add(script[start:i], after, depth)
				s.hereDocument(script[start:i], script[i:end], depth)
				start, after, i = end, ";", end-1
			}
		case c == ';' || c == '\n':
			cut(i, ";", 1)
		case c == '(' || c == ')':
			cut(i, "(", 1)
		case c == '&' && (i > 0 && script[i-1] == '>' || following == '>'): // 2>&1 and &>
		case (c == '&' || c == '|') && following == c:
			cut(i, script[i:i+2], 2)
			i++
		case c == '|' || c == '&':
			cut(i, script[i:i+1], 1)
		}
	}
	if start < len(script) {
		s.add(script[start:], after, depth)
	}
}

// nested adds the calls of a $(…) or `…` that begins at i, and returns where it ends.
func (s *commandSplitter) nested(script string, i, depth int) int {
	if script[i] == '`' {
		if length := strings.IndexByte(script[i+1:], '`'); length >= 0 {
			s.split(script[i+1:i+1+length], "(", depth+1)
			return i + 1 + length
		}
		return i
	}
	open := 0
	for end := i + 1; end < len(script); end++ {
		switch script[end] {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				s.split(script[i+2:end], "(", depth+1)
				return end
			}
		}
	}
	return i
}

// hereDocumentEnd returns the end of the here-document whose << is at i; 0 if it is not one.
func hereDocumentEnd(script string, i int) int {
	line, _, _ := strings.Cut(script[i:], "\n")
	word := strings.TrimLeft(strings.TrimPrefix(line[2:], "-"), " ")
	if end := strings.IndexAny(word, " ;&|>)"); end >= 0 {
		word = word[:end]
	}
	if word = strings.Trim(word, `'"`); word == "" {
		return 0
	}
	at := i + len(line)
	for at < len(script) {
		body, _, _ := strings.Cut(script[at+1:], "\n")
		at += 1 + len(body)
		if strings.TrimLeft(body, "\t") == word {
			return at
		}
	}
	return len(script)
}

// hereDocument adds the calls that a here-document makes, where a shell reads it, and those on the
// rest of the line that it begins in.
func (s *commandSplitter) hereDocument(reader, document string, depth int) {
	line, body, _ := strings.Cut(document, "\n")
	if at := strings.IndexAny(line, ";&|"); at >= 0 {
		s.split(line[at:], ";", depth+1)
	}
	if list := commandWords(words(nil, strings.TrimSpace(reader))); len(list) > 0 && isShell(list[0]) {
		s.split(body, ";", depth+1)
	}
}

// add adds one call.
func (s *commandSplitter) add(text, after string, depth int) {
	list := commandWords(words(nil, strings.TrimSpace(text)))
	for len(list) > 0 && isKeyword(list[0]) {
		list = commandWords(list[1:])
	}
	if len(list) == 0 || list[0] == "" || len(s.list) >= maxCommands {
		return
	}
	if isShell(list[0]) {
		if at := slices.IndexFunc(list, isCommandFlag); at > 0 && at+1 < len(list) {
			s.split(list[at+1], after, depth+1)
			return
		}
	}
	s.list = append(s.list, SimpleCommand{Words: list, After: after})
}

// isCommandFlag reports whether a flag is -c or ends in it, such as -lc.
func isCommandFlag(word string) bool {
	return strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.HasSuffix(word, "c")
}

// isKeyword reports whether a word is a keyword of the shell that a call may follow.
func isKeyword(word string) bool {
	switch word {
	case "if", "then", "else", "elif", "do", "while", "until", "!", "{", "exec", "eval", "nohup", "xargs":
		return true
	}
	return false
}
