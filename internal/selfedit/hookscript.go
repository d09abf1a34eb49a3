package selfedit

import (
	"encoding/json"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// checkHookScript refuses a target that a settings file runs as a hook or other helper, or may run.
func checkHookScript(target string, files []settings) error {
	for _, file := range files {
		for _, command := range file.commands {
			if mayRun(command, target, file.root) {
				return notAllowed("%s is a hook script: %s runs it, or may, and no rule can make hooks writable",
					display.Name(target), display.Name(file.path))
			}
		}
	}
	return nil
}

// reading looks for a target among what a shell command names or may run.
type reading struct {
	target string   // folded, with slashes
	root   string   // the project of a hook, with the files of builders; empty: none is read
	dirs   []string // beneath root, that words name: builders may work there
	done   []string // builders and directories that were read
	depth  int      // of commands in commands
	found  bool
}

const (
	// maxReading bounds how deep commands in commands are followed.
	maxReading = 4
	// maxDirs bounds the directories of one command whose builders are read.
	maxDirs = 50
)

// mayRun reports whether a shell command names a target, or may run it.
func mayRun(command, target, root string) bool {
	r := &reading{
		target: "/" + strings.TrimPrefix(foldName(filepath.ToSlash(target)), "/"),
		root:   root,
		dirs:   []string{"."},
	}
	r.command(command)
	return r.found
}

// command reads one command. A file that is only mentioned in a message does not count, unless
// something reads the message.
func (r *reading) command(text string) {
	if r.depth > maxReading || r.found {
		return
	}
	r.depth++
	defer func() { r.depth-- }()
	script, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		r.words(text)
		return
	}
	said, heard := map[*syntax.Word]bool{}, false
	syntax.Walk(script, func(node syntax.Node) bool {
		if word, ok := node.(*syntax.Word); ok {
			r.names(textOf(word))
		}
		return true
	})
	syntax.Walk(script, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.BinaryCmd:
			heard = heard || node.Op == syntax.Pipe || node.Op == syntax.PipeAll
		case *syntax.CmdSubst, *syntax.ProcSubst:
			heard = true
		case *syntax.CallExpr:
			if len(node.Args) > 0 && slices.Contains([]string{"echo", "printf"}, node.Args[0].Lit()) {
				for _, word := range node.Args {
					said[word] = true
				}
				return true
			}
			r.call(node.Args)
		}
		return true
	})
	syntax.Walk(script, func(node syntax.Node) bool {
		if word, ok := node.(*syntax.Word); ok && (heard || !said[word] || !isMessage(textOf(word))) {
			r.word(textOf(word), text)
		}
		return true
	})
}

// names keeps a word that may be the directory of a builder: cd sub, -C sub, --dir=sub.
func (r *reading) names(word string) {
	_, value, _ := strings.Cut(word, "=")
	for _, dir := range []string{word, value} {
		dir = strings.TrimLeft(strings.ReplaceAll(dir, unknown, ""), "/") // $PROJECT/sub
		if filepath.IsLocal(dir) && len(r.dirs) < maxDirs && !slices.Contains(r.dirs, dir) {
			r.dirs = append(r.dirs, dir)
		}
	}
}

// isMessage reports whether a text mentions no more than documents of this directory.
func isMessage(text string) bool {
	return !slices.ContainsFunc(strings.Fields(text), func(word string) bool {
		return strings.Contains(word, "/") || strings.Contains(word, ".") && !isDocument(word)
	})
}

// isDocument reports whether a name is more often mentioned in a message than run.
func isDocument(name string) bool {
	return strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".txt")
}

// unknown stands in a word for what is known only when it runs.
const unknown = "\x00"

// textOf returns the text of a word without quotes.
func textOf(word *syntax.Word) string {
	var text strings.Builder
	var write func(parts []syntax.WordPart)
	write = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch part := part.(type) {
			case *syntax.Lit:
				text.WriteString(part.Value)
			case *syntax.SglQuoted:
				text.WriteString(part.Value)
			case *syntax.DblQuoted:
				write(part.Parts)
			default:
				text.WriteString(unknown)
			}
		}
	}
	write(word.Parts)
	return text.String()
}

// word looks at one word of a command: a path, a pattern, or a command of its own.
func (r *reading) word(text, whole string) {
	r.words(text)
	for field := range strings.FieldsSeq(text) {
		r.found = r.found || strings.ContainsAny(field, "*?[{") && r.matches(field)
	}
	if strings.ContainsAny(strings.TrimSpace(text), " \t\n;") && text != whole {
		r.command(text)
	}
}

var (
	shellVariable = lazyregexp.New(`\$\{[^}]*\}|\$[A-Za-z_][A-Za-z0-9_]*|%[A-Za-z_][A-Za-z0-9_]*%`)
	notPath       = lazyregexp.New("[\\s\"'`;|&<>(){}\\[\\]=,:*?!$#\\\\\x00]+")
	braces        = lazyregexp.New(`\{[^}]*\}`)
)

// words looks for words that can mean the target: the word's path is the end of the target's path.
func (r *reading) words(text string) {
	for _, word := range notPath.Get().Split(shellVariable.Get().ReplaceAllString(foldName(text), " "), -1) {
		// A hidden directory at the start loses its dot; either spelling is looked for.
		named := strings.TrimLeft(path.Clean(word), "./~")
		r.found = r.found || named != "" &&
			(strings.HasSuffix(r.target, "/"+named) || strings.HasSuffix(r.target, "/."+named))
	}
}

// matches reports whether a pattern of a shell matches the end of the target's path.
func (r *reading) matches(pattern string) bool {
	pattern = braces.Get().ReplaceAllString(foldName(pattern), "*")
	if at := strings.LastIndex(pattern, unknown); at >= 0 {
		pattern = pattern[at+len(unknown):]
	}
	parts := strings.Split(strings.Trim(path.Clean(pattern), "./~"), "/")
	target := strings.Split(strings.TrimPrefix(r.target, "/"), "/")
	if len(parts) > len(target) || strings.Contains(pattern, "**") {
		parts = parts[len(parts)-1:]
	}
	for i, part := range parts {
		if ok, err := path.Match(part, target[len(target)-len(parts)+i]); err == nil && !ok {
			return false
		}
	}
	return true
}

// interpreters run the file, or the files of the directory, that they are given.
var interpreters = []string{
	"sh", "bash", "dash", "zsh", "ksh", "fish", ".", "source", "eval", "python", "python3", "node", "deno", "bun",
	"ruby", "perl", "php", "lua", "awk", "run-parts", "osascript", "pwsh",
}

// shells are the interpreters whose code is commands.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "fish", ".", "source", "eval"}

// entries are the files that an interpreter runs of the directory in which it starts.
var entries = []string{"index", "main", "__main__"}

// wordsOfCode returns the words of code among arguments: import lib.check, require('./lib/check').
func wordsOfCode(args []string) (words []string) {
	for _, arg := range args {
		if strings.ContainsAny(arg, " (") {
			words = append(words, notPath.Get().Split(arg, -1)...)
		}
	}
	return words
}

// builders are programs that run what files of these names say.
var builders = map[string][]string{
	"make":       {"makefile", "gnumakefile", "*.mk"},
	"gmake":      {"makefile", "gnumakefile", "*.mk"},
	"npm":        {"package.json", "package-lock.json", ".npmrc"},
	"npx":        {"package.json", "package-lock.json", ".npmrc"},
	"pnpm":       {"package.json", "pnpm-*.yaml", ".npmrc", ".pnpmfile.cjs"},
	"yarn":       {"package.json", "yarn.lock", ".yarnrc*"},
	"bun":        {"package.json", "bunfig.toml"},
	"deno":       {"deno.json*"},
	"just":       {"justfile", ".justfile"},
	"task":       {"taskfile.y*ml"},
	"rake":       {"rakefile", "*.rake"},
	"bundle":     {"gemfile", "*.gemspec"},
	"cargo":      {"cargo.toml", "build.rs", "*.rs"},
	"go":         {"go.mod", "*.go"},
	"pytest":     {"conftest.py", "pytest.ini", "pyproject.toml", "setup.cfg", "test_*.py", "*_test.py"},
	"tox":        {"tox.ini", "pyproject.toml", "setup.cfg", "setup.py"},
	"nox":        {"noxfile.py"},
	"pip":        {"pyproject.toml", "setup.py"},
	"uv":         {"pyproject.toml", "setup.py"},
	"poetry":     {"pyproject.toml"},
	"gradle":     {"*.gradle", "*.gradle.kts"},
	"gradlew":    {"*.gradle", "*.gradle.kts"},
	"mvn":        {"pom.xml"},
	"pre-commit": {".pre-commit-config.yaml"},
	"eslint":     {"eslint.config.*", ".eslintrc*", "package.json"},
	"prettier":   {"prettier.config.*", ".prettierrc*", "package.json"},
	"jest":       {"jest.config.*", "package.json"},
	"vitest":     {"vitest.config.*", "vite.config.*", "package.json"},
	"docker":     {"dockerfile", "docker-compose.y*ml", "compose.y*ml"},
}

// call looks at what a program that is called runs itself. The program may stand behind others,
// such as env and timeout.
func (r *reading) call(args []*syntax.Word) {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = textOf(arg)
	}
	handsOn := slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains([]string{"xargs", "parallel", "-exec", "-execdir"}, path.Base(word))
	})
	for i, word := range words {
		name := path.Base(word)
		if slices.Contains(interpreters, name) && (i == 0 || name != ".") {
			args := words[i+1:]
			if !slices.Contains(shells, name) { // code of a shell is read as commands
				args = slices.Concat(args, wordsOfCode(args))
			}
			r.interprets(args, handsOn)
			r.found = r.found || !slices.Contains(shells, name) && r.loadable()
		}
		if files, ok := builders[name]; ok {
			r.builds(files)
			r.found = r.found || r.loadable()
		}
	}
	r.found = r.found || loads(words) && r.loadable()
	r.git(words)
}

// interprets looks at the arguments of an interpreter: files, which may be named without their
// endings, directories and modules. One that is known only when it runs may be any file.
func (r *reading) interprets(args []string, handsOn bool) {
	r.found = r.found || handsOn
	for _, arg := range args {
		named := foldName(strings.TrimLeft(path.Clean(arg), "./~"))
		switch {
		case strings.Trim(arg, unknown) == "" && arg != "":
			r.found = true
		case arg == "." || arg == "./":
			base := path.Base(r.target)
			r.found = r.found || base == "package.json" ||
				slices.Contains(entries, strings.TrimSuffix(base, path.Ext(base)))
		case named == "" || strings.HasPrefix(arg, "-") || strings.Contains(arg, unknown):
		default:
			for _, name := range []string{named, strings.ReplaceAll(named, ".", "/")} {
				r.found = r.found || strings.Contains(r.target, "/"+name+"/") ||
					strings.HasSuffix(strings.TrimSuffix(r.target, path.Ext(r.target)), "/"+name)
			}
		}
	}
}

// builds looks at the files that a builder reads, and at the commands that they name.
func (r *reading) builds(files []string) {
	for _, pattern := range files {
		ok, _ := path.Match(pattern, path.Base(r.target)) // the pattern is right
		r.found = r.found || ok
	}
	if r.root == "" {
		return
	}
	for _, dir := range r.dirs {
		once := files[0] + " " + dir // a recipe may call its own builder, any number of times
		if slices.Contains(r.done, once) {
			continue
		}
		r.done = append(r.done, once)
		for _, command := range commandsIn(filepath.Join(r.root, dir), files) {
			r.command(command)
		}
	}
}

// commandsIn returns the commands in the files of a builder.
func commandsIn(dir string, files []string) (commands []string) {
	switch {
	case slices.Contains(files, "makefile"):
		for _, file := range []string{"GNUmakefile", "makefile", "Makefile"} {
			text, _ := readThroughLinks(filepath.Join(dir, file), maxSettingsFile) // there may be none
			for line := range strings.Lines(string(text)) {
				if recipe, ok := strings.CutPrefix(line, "\t"); ok {
					commands = append(commands, strings.TrimLeft(recipe, "@-+ "))
				}
			}
		}
	case slices.Contains(files, "package.json"):
		var manifest struct{ Scripts map[string]string }
		text, _ := readThroughLinks(filepath.Join(dir, "package.json"), maxSettingsFile)
		if json.Unmarshal(text, &manifest) == nil {
			commands = slices.Collect(maps.Values(manifest.Scripts))
		}
	}
	return commands
}
