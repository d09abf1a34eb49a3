package session

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// SimpleCommand is one call of a program in a shell command.
type SimpleCommand struct {
	// Words are the program and its arguments, without quotes, assignments in front and wrappers
	// such as sudo; then the redirections.
	Words []string
	// After is the operator in front of it: ;, &&, ||, |, &, ( or, for the first, nothing.
	After string

	plain  int  // the number of words that are no redirections
	nested bool // it stands in $(…) or in backquotes
	writes bool // it is redirected to a file
}

// Name returns the program's name without its directory.
func (c *SimpleCommand) Name() string { return path.Base(c.Words[0]) }

func (c *SimpleCommand) args() []string { return c.Words[1:c.plain] }

// maxShell bounds the work on one command; what matters is at its beginning. maxCommands bounds the
// calls that one is split into, and maxShellDepth how deep shells in shells are followed.
const (
	maxShell      = 16 << 10
	maxCommands   = 256
	maxShellDepth = 4
)

// Commands splits a shell command into the calls that it makes, those in $(…), in backquotes and
// behind "bash -c" among them. What a here-document holds is text, unless a shell reads it.
func Commands(command string) []SimpleCommand {
	return new(commandSplitter).commands(command)
}

// commands is Commands; what it returns is valid until the next call.
func (s *commandSplitter) commands(command string) []SimpleCommand {
	if s.parser == nil {
		s.parser = syntax.NewParser()
	}
	s.list = s.list[:0]
	s.script(Script(command[:min(len(command), maxShell)]), "")
	return s.list
}

type commandSplitter struct {
	parser *syntax.Parser
	list   []SimpleCommand
	source string // the script that is being read
	depth  int    // of shells in shells
	nested int    // of $(…) in each other
}

// script adds the calls of a script. What follows a mistake is split at operators, quoted or not:
// another shell may read what this parser does not.
func (s *commandSplitter) script(source, after string) {
	if s.depth > maxShellDepth {
		return
	}
	outer := s.source
	s.source = source
	s.depth++
	file, err := s.parser.Parse(strings.NewReader(source), "")
	if problem := (syntax.ParseError{}); errors.As(err, &problem) {
		// A command that was cut off ends within its here-document.
		if _, word, open := strings.Cut(problem.Text, "unclosed here-document "); open {
			s.source += "\n" + strings.Trim(word, "`\"'")
			file, err = s.parser.Parse(strings.NewReader(s.source), "")
		}
	}
	s.statements(file.Stmts, after)
	if err != nil {
		read := 0
		if last := len(file.Stmts) - 1; last >= 0 {
			read, after = min(int(file.Stmts[last].End().Offset()), len(source)), ";"
		}
		for text := range strings.FieldsFuncSeq(source[read:], isOperator) {
			s.add(strings.Fields(unquoter.Replace(text)), nil, after)
			after = ";"
		}
	}
	s.depth--
	s.source = outer
}

var unquoter = strings.NewReplacer(`"`, "", `'`, "")

func isOperator(r rune) bool { return strings.ContainsRune(";&|()`\n", r) }

// statements adds the calls of statements that follow each other.
func (s *commandSplitter) statements(list []*syntax.Stmt, after string) {
	for _, statement := range list {
		s.statement(statement, after)
		if after = ";"; statement.Background {
			after = "&"
		}
	}
}

func (s *commandSplitter) statement(statement *syntax.Stmt, after string) {
	switch command := statement.Cmd.(type) {
	case *syntax.BinaryCmd:
		s.statement(command.X, after)
		s.statement(command.Y, strings.Replace(command.Op.String(), "|&", "|", 1))
	case *syntax.CallExpr:
		s.inside(command, after)
		var words []string
		for _, arg := range command.Args {
			words = append(words, s.text(arg))
		}
		s.add(words, statement.Redirs, after)
	case *syntax.DeclClause: // export and its like
		s.inside(command, after)
		s.add(append([]string{command.Variant.Value}, s.declared(command.Args)...), statement.Redirs, after)
	case *syntax.Subshell:
		s.statements(command.Stmts, "(")
	case *syntax.Block:
		s.statements(command.Stmts, after)
	case nil:
	default:
		s.inside(command, after)
	}
	for _, redirect := range statement.Redirs {
		s.inside(redirect, after)
	}
}

// inside adds the calls that are made within a command or a word.
func (s *commandSplitter) inside(node syntax.Node, after string) {
	syntax.Walk(node, func(n syntax.Node) bool {
		var list []*syntax.Stmt
		switch n := n.(type) {
		case *syntax.Stmt:
			s.statement(n, after)
			after = ";"
			return false
		case *syntax.CmdSubst:
			list = n.Stmts
		case *syntax.ProcSubst:
			list = n.Stmts
		default:
			return true
		}
		s.nested++
		s.statements(list, "(")
		s.nested--
		return false
	})
}

func (s *commandSplitter) declared(list []*syntax.Assign) (words []string) {
	for _, assign := range list {
		words = append(words, s.sourceOf(assign))
	}
	return words
}

func (s *commandSplitter) sourceOf(node syntax.Node) string {
	from, to := int(node.Pos().Offset()), int(node.End().Offset())
	if from > to || to > len(s.source) {
		return ""
	}
	return s.source[from:to]
}

// text returns a word without its quotes; what the shell would put into it stays as it is written.
func (s *commandSplitter) text(word *syntax.Word) string {
	var out strings.Builder
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch part := part.(type) {
			case *syntax.Lit:
				out.WriteString(part.Value)
			case *syntax.SglQuoted:
				out.WriteString(part.Value)
			case *syntax.DblQuoted:
				add(part.Parts)
			default:
				out.WriteString(s.sourceOf(part))
			}
		}
	}
	add(word.Parts)
	return out.String()
}

// add adds one call, or those of the shell that it starts.
func (s *commandSplitter) add(words []string, redirects []*syntax.Redirect, after string) {
	words = commandWords(words)
	if len(words) == 0 || words[0] == "" || len(s.list) >= maxCommands {
		return
	}
	if isShell(words[0]) {
		if at := slices.IndexFunc(words, isCommandFlag); at > 0 && at+1 < len(words) {
			s.script(words[at+1], after)
			return
		}
	}
	call := SimpleCommand{Words: words, After: after}
	call.plain, call.nested = len(words), s.nested > 0
	var read []string // by the call
	for _, redirect := range redirects {
		text := s.sourceOf(redirect)
		switch redirect.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if redirect.Hdoc != nil {
				read = append(read, s.text(redirect.Hdoc))
			}
			continue
		case syntax.WordHdoc:
			read = append(read, s.text(redirect.Word))
		case syntax.RdrIn, syntax.DplIn, syntax.DplOut:
		default:
			call.writes = call.writes || s.text(redirect.Word) != "/dev/null"
		}
		call.Words = append(call.Words, strings.Fields(text)...)
	}
	s.list = append(s.list, call)
	for _, script := range read {
		if isShell(words[0]) {
			s.script(script, ";")
		}
	}
}

// isCommandFlag reports whether a flag is -c or ends in it, such as -lc.
func isCommandFlag(word string) bool {
	return strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.HasSuffix(word, "c")
}
