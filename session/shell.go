package session

import (
	"path"
	"slices"
	"strings"
)

// refined is the meaning of a shell command.
type refined struct {
	derived string   // read, search, list, test, build, or nothing
	head    string   // the first word that does something, to recognise the same command again
	paths   []string // the files that a reading command reads
}

// maxRefined bounds the commands that are remembered, maxRemembered the length of each.
const (
	maxRefined    = 512
	maxRemembered = 1 << 10
)

// refiner finds out what shell commands are for. It remembers some, because agents run the same
// ones again and again.
type refiner struct {
	splitter commandSplitter
	known    map[string]refined
}

// refine says what a command is for. Agents that read files through the shell would otherwise look
// as if they never read.
func (r *refiner) refine(command string) refined {
	if known, ok := r.known[command]; ok {
		return known
	}
	command = strings.Clone(command) // it may be a view of a buffer
	found := r.splitter.refine(command)
	if len(command) <= maxRemembered {
		if r.known == nil || len(r.known) >= maxRefined {
			r.known = map[string]refined{}
		}
		r.known[command] = found
	}
	return found
}

func (s *commandSplitter) refine(command string) refined {
	command = Script(command)
	command = command[:min(len(command), maxShell)]
	calls := slices.DeleteFunc(s.commands(command), func(c SimpleCommand) bool { return c.nested || c.After == "|" })
	r := refined{head: head(calls)}
	switch {
	case runsTests(command):
		r.derived = ToolTest
		return r
	case builds(command):
		r.derived = ToolBuild
		return r
	}
	for i := range calls {
		kind, paths := classify(&calls[i])
		switch kind {
		case neutral:
		case "":
			return refined{head: r.head}
		default:
			r.derived = stronger(r.derived, kind)
			r.paths = append(r.paths, paths...)
		}
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
func Script(command string) string {
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

// head returns the program of the first command that is not neutral, with its first word where that
// names a subcommand.
func head(calls []SimpleCommand) string {
	for i := range calls {
		name, args := calls[i].Name(), calls[i].args()
		switch {
		case isNeutral(name):
		case len(args) > 0 && !strings.HasPrefix(args[0], "-") && hasSubcommands(name):
			return name + " " + args[0]
		default:
			return name
		}
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

// isWrapper reports whether a program runs the one after it.
func isWrapper(name string) bool {
	switch name {
	case "sudo", "command", "time", "exec", "eval", "nohup", "xargs":
		return true
	}
	return false
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

// classify says what one simple command is for, and which files it reads.
func classify(c *SimpleCommand) (kind string, paths []string) {
	if c.writes {
		return "", nil
	}
	args := c.args()
	switch name := c.Name(); name {
	case "cat", "head", "tail", "less", "nl":
		return ToolRead, operands(args)
	case "sed":
		if len(args) > 0 && args[0] == "-n" {
			paths = operands(args)
			return ToolRead, paths[min(1, len(paths)):] // the first is the script
		}
	case "rg", "grep", "ag", "egrep", "fgrep":
		return ToolSearch, nil
	case "find":
		if !slices.ContainsFunc(args, func(arg string) bool {
			return strings.HasPrefix(arg, "-exec") || arg == "-delete" || arg == "-ok"
		}) {
			return ToolSearch, nil
		}
	case "git":
		if len(args) > 0 && args[0] == "grep" {
			return ToolSearch, nil
		}
	case "ls", "tree":
		return ToolList, nil
	default:
		if isNeutral(name) {
			return neutral, nil
		}
	}
	return "", nil
}

// operands returns the arguments that are neither flags nor numbers that belong to flags.
func operands(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return strings.HasPrefix(arg, "-") || strings.Trim(arg, "0123456789+") == ""
	})
}
