package session

import (
	"path"
	"slices"
	"strings"
	"unsafe"
)

// refined is the meaning of a shell command.
type refined struct {
	derived string   // read, search, list, test, build, or nothing
	head    string   // the first word that does something, to recognise the same command again
	paths   []string // the files that a reading command reads
}

// maxShell bounds the work on one command; what matters is at its beginning.
const maxShell = 16 << 10

// shellReader reads shell commands. Its results may share its memory and the command's; they are
// valid until the next command.
type shellReader struct {
	segments, words, paths []string
	line                   []byte // the head of a command, where it is put together
}

// refine finds out what a shell command is for. Agents that read files through the shell would
// otherwise look as if they never read.
func (s *shellReader) refine(command string) refined {
	command = unwrapShell(command)
	if len(command) > maxShell {
		command = command[:maxShell]
	}
	s.segments = pipelines(s.segments[:0], command)
	r := refined{head: s.head()}
	switch {
	case runsTests(command):
		r.derived = ToolTest
		return r
	case builds(command):
		r.derived = ToolBuild
		return r
	}
	s.paths = s.paths[:0]
	for _, segment := range s.segments {
		if len(s.segments) > 1 { // of a single one the words are there already
			s.words = words(s.words[:0], segment)
		}
		var kind string
		kind, s.paths = classify(s.words, s.paths)
		switch kind {
		case neutral:
		case "":
			return refined{head: r.head}
		default:
			r.derived = stronger(r.derived, kind)
		}
	}
	if len(s.paths) > 0 {
		r.paths = s.paths
	}
	return r
}

// neutral marks a command that neither reads nor changes anything worth counting, such as cd.
const neutral = "neutral"

// stronger prefers reading over searching over listing.
func stronger(a, b string) string {
	for _, kind := range []string{ToolRead, ToolSearch, ToolList} {
		if a == kind || b == kind {
			return kind
		}
	}
	return b
}

func isShell(name string) bool {
	switch path.Base(name) {
	case "sh", "bash", "zsh", "dash":
		return true
	}
	return false
}

// Script returns the command that a shell runs: the text after "bash -lc", else the command itself.
func Script(command string) string { return unwrapShell(command) }

// unwrapShell strips "bash -lc '…'" from a command.
func unwrapShell(command string) string {
	command = strings.TrimSpace(command)
	first, rest, ok := strings.Cut(command, " ")
	if !ok || !isShell(first) {
		return command
	}
	flag, script, ok := strings.Cut(strings.TrimSpace(rest), " ")
	if !ok || !strings.HasPrefix(flag, "-") || !strings.HasSuffix(flag, "c") {
		return command
	}
	script = strings.TrimSpace(script)
	if len(script) >= 2 && (script[0] == '\'' || script[0] == '"') && script[len(script)-1] == script[0] {
		quote := script[:1]
		script = script[1 : len(script)-1]
		if quote == "'" {
			return strings.ReplaceAll(script, `'\''`, "'")
		}
		return strings.ReplaceAll(script, `\"`, `"`)
	}
	return script
}

// pipelines splits a command at ;, &&, ||, newlines and |, outside quotes, and returns the first
// simple command of each pipeline.
func pipelines(list []string, command string) []string {
	var quote byte
	start, piped := 0, false
	cut := func(end int) {
		if part := strings.TrimSpace(command[start:end]); part != "" && !piped {
			list = append(list, part)
		}
	}
	for i := 0; i < len(command); i++ {
		c := command[i]
		switch {
		case quote != 0:
			if c == '\\' && quote == '"' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '\\':
			i++
		case c == ';' || c == '\n':
			cut(i)
			start, piped = i+1, false
		case c == '&' && i > 0 && command[i-1] == '>': // 2>&1
		case (c == '&' || c == '|') && i+1 < len(command) && command[i+1] == c:
			cut(i)
			start, piped = i+2, false
			i++
		case c == '|':
			cut(i)
			start, piped = i+1, true
		}
	}
	cut(len(command))
	return list
}

// words splits a simple command at blanks, outside quotes, and drops the quotes.
func words(list []string, command string) []string {
	for i := 0; i < len(command); {
		if command[i] == ' ' || command[i] == '\t' {
			i++
			continue
		}
		end, quoted := wordEnd(command, i)
		word := command[i:end]
		if quoted {
			word = unquoted(word)
		}
		list = append(list, word)
		i = end
	}
	return list
}

// wordEnd returns where the word that begins at i ends.
func wordEnd(command string, i int) (end int, quoted bool) {
	var quote byte
	for ; i < len(command); i++ {
		switch c := command[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote, quoted = c, true
		case c == ' ' || c == '\t':
			return i, quoted
		}
	}
	return i, quoted
}

// unquoted drops the quotes of a word.
func unquoted(word string) string {
	plain := make([]byte, 0, len(word))
	var quote byte
	for _, c := range []byte(word) {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		default:
			plain = append(plain, c)
		}
	}
	return string(plain)
}

// head returns the program of the first command that is not neutral, with its first word where that
// names a subcommand.
func (s *shellReader) head() string {
	for _, segment := range s.segments {
		s.words = words(s.words[:0], segment)
		list := commandWords(s.words)
		if len(list) == 0 {
			continue
		}
		name := path.Base(list[0])
		if isNeutral(name) {
			continue
		}
		if len(list) > 1 && !strings.HasPrefix(list[1], "-") && hasSubcommands(name) {
			s.line = append(append(append(s.line[:0], name...), ' '), list[1]...)
			return unsafe.String(unsafe.SliceData(s.line), len(s.line))
		}
		return name
	}
	return ""
}

// isNeutral reports whether a command neither reads nor changes anything worth counting.
func isNeutral(name string) bool {
	switch name {
	case "cd", "echo", "pwd", "true", ":", "set", "export":
		return true
	}
	return false
}

// hasSubcommands reports whether a program's first argument says what it does.
func hasSubcommands(name string) bool {
	switch name {
	case "go", "git", "npm", "npx", "cargo", "make", "python", "python3", "pnpm", "yarn":
		return true
	}
	return false
}

func isWrapper(name string) bool { return name == "sudo" || name == "command" || name == "time" }

// isNumber reports whether a word consists of digits and signs.
func isNumber(word string) bool {
	for i := range len(word) {
		if !isDigit(word[i]) && word[i] != '+' {
			return false
		}
	}
	return true
}

// commandWords drops variable assignments and wrappers in front of a command.
func commandWords(list []string) []string {
	for len(list) > 0 {
		name, _, hasValue := strings.Cut(list[0], "=")
		assignment := hasValue && name != "" && !strings.ContainsAny(name, "/-.")
		if !assignment && !isWrapper(list[0]) {
			break
		}
		list = list[1:]
	}
	return list
}

// classify says what one simple command is for, and adds the files that it reads to others.
func classify(list, paths []string) (kind string, all []string) {
	list = commandWords(list)
	if len(list) == 0 {
		return neutral, paths
	}
	if redirects(list) {
		return "", paths
	}
	name, args := path.Base(list[0]), list[1:]
	switch name {
	case "cat", "head", "tail", "less", "nl":
		return ToolRead, operands(paths, args)
	case "sed":
		if len(args) > 0 && args[0] == "-n" {
			before := len(paths)
			paths = operands(paths, args)
			if len(paths) > before { // the script
				paths = slices.Delete(paths, before, before+1)
			}
			return ToolRead, paths
		}
	case "rg", "grep", "ag", "egrep", "fgrep":
		return ToolSearch, paths
	case "find":
		for _, arg := range args {
			if strings.HasPrefix(arg, "-exec") || arg == "-delete" || arg == "-ok" {
				return "", paths
			}
		}
		return ToolSearch, paths
	case "git":
		if len(args) > 0 && args[0] == "grep" {
			return ToolSearch, paths
		}
	case "ls", "tree":
		return ToolList, paths
	default:
		if isNeutral(name) {
			return neutral, paths
		}
	}
	return "", paths
}

// redirects reports whether a command writes to a file.
func redirects(list []string) bool {
	for i, word := range list {
		at := strings.IndexByte(word, '>')
		if at < 0 {
			continue
		}
		target := strings.TrimLeft(word[at:], ">|")
		if target == "" && i+1 < len(list) {
			target = list[i+1]
		}
		if target != "/dev/null" && !strings.HasPrefix(target, "&") {
			return true
		}
	}
	return false
}

// operands adds the arguments that are neither flags, nor numbers that belong to flags, nor
// redirections.
func operands(list, args []string) []string {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") || isNumber(arg) || strings.IndexByte(arg, '<') >= 0 ||
			strings.IndexByte(arg, '>') >= 0 {
			continue
		}
		list = append(list, arg)
	}
	return list
}
