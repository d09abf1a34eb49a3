package skill

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/redact"
)

// The levels of findings.
const (
	LevelError   = "error"   // the specification is violated, or something cannot work
	levelWarning = "warning" // it works, and probably not as it is meant
)

// Finding is one thing that is wrong with a skill.
type Finding struct {
	Rule    string `json:"rule"`
	Level   string `json:"level"`
	File    string `json:"file"` // relative to the skill's directory
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
}

// Rules says what each rule is about.
var Rules = map[string]string{
	"skill-file":       "A skill is a directory with a SKILL.md.",
	"front-matter":     "SKILL.md begins with valid YAML between two lines of dashes.",
	"unknown-key":      "The front matter has the keys of the specification.",
	"name":             "The name has 1 to 64 characters: a-z, 0-9 and single dashes inside.",
	"name-directory":   "The name is that of the directory.",
	"description":      "The description has 1 to 1024 characters.",
	"description-when": "The description says when to use the skill: it is all that the model sees before it opens it.",
	"compatibility":    "Compatibility has at most 500 characters.",
	"metadata":         "Metadata is a map of texts.",
	"body-length":      "The body has at most 500 lines and 5000 tokens.",
	"missing-file":     "Files that the body refers to exist.",
	"not-executable":   "Scripts that begin with #! have the run bit.",
	"absolute-path":    "No path of somebody's machine is in the skill.",
	"secret":           "No credential is in the skill.",
	"evals":            "The test cases can be read.",
	"queries":          "The trigger queries can be read.",
	"unreadable":       "Every file can be read.",
}

// The bounds of the specification.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
	maxBodyLines     = 500
	maxBodyTokens    = 5000
)

// Lint checks the skill in a directory, whose name is given as well. Whoever runs test cases says
// with checkCase what is wrong with one that can be read.
func Lint(root *os.Root, name string, checkCase func(*Case) error) []Finding {
	l := &linter{
		root:      root,
		name:      name,
		checkCase: checkCase,
		redactor:  redact.New(redact.Config{}),
	}
	text, err := ReadFile(root, FileName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.add("skill-file", LevelError, FileName, 0, "there is no SKILL.md%s", Elsewhere(root))
	case err != nil:
		l.add("skill-file", LevelError, FileName, 0, "%v", err)
	default:
		l.text = text
		l.skillFile(text)
	}
	l.tests()
	l.files()
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return l.found
}

// Elsewhere says, as the end of a sentence, which skills are below a directory without SKILL.md.
func Elsewhere(root *os.Root) string {
	var found []string
	for _, pattern := range []string{"*/" + FileName, "skills/*/" + FileName, ".claude/skills/*/" + FileName} {
		names, _ := fs.Glob(root.FS(), pattern) // the patterns are good
		for _, name := range names {
			found = append(found, path.Dir(name))
		}
	}
	switch len(found) {
	case 0:
		return ""
	case 1:
		return "; there is one in " + found[0]
	}
	return fmt.Sprintf("; there are %d below it, such as %s", len(found), found[0])
}

type linter struct {
	root      *os.Root
	name      string
	checkCase func(*Case) error
	text      []byte // of SKILL.md
	redactor  *redact.Redactor
	found     []Finding
}

func (l *linter) add(rule, level, file string, line int, format string, args ...any) {
	l.found = append(l.found, Finding{
		Rule:    rule,
		Level:   level,
		File:    file,
		Line:    line,
		Message: fmt.Sprintf(format, args...),
	})
}

// place adds the problems of a file, each at its line.
func (l *linter) place(rule, level string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			l.place(rule, level, one)
		}
		return
	}
	if placed, ok := errors.AsType[*document.Error](err); ok {
		l.add(rule, level, placed.File, placed.Line, "%s", placed.Msg)
	} else if err != nil {
		l.add(rule, level, FileName, 0, "%v", err)
	}
}

// frontKeys are the keys of the specification, and those that agents read beside them.
var frontKeys = []string{
	"name", "description", "license", "compatibility", "metadata", "allowed-tools", "disable-model-invocation",
	"user-invocable", "argument-hint", "arguments", "model", "context", "agent", "hooks", "when_to_use", "effort",
	"paths", "shell",
}

func (l *linter) skillFile(text []byte) {
	settings, body, err := document.FrontMatter(FileName, text)
	switch {
	case err != nil:
		l.place("front-matter", LevelError, err)
		body = text
	case settings == nil:
		l.add("front-matter", LevelError, FileName, 1, "there is no front matter; begin the file with ---, a name, a "+
			"description and ---")
	default:
		l.settings(settings)
	}
	l.body(string(body), bytes.Count(text[:len(text)-len(body)], []byte("\n")))
}

func (l *linter) settings(doc *document.Document) {
	said := map[string]any{}
	if err := doc.Decode(&said); err != nil {
		l.place("front-matter", LevelError, err)
		return
	}
	at := func(key string) int { return doc.ErrorAt([]string{key}, "").Line }
	for _, key := range slices.Sorted(maps.Keys(said)) {
		if !slices.Contains(frontKeys, key) {
			l.add("unknown-key", levelWarning, FileName, at(key), "%s is not a key of the specification; put it below "+
				"metadata", key)
		}
	}
	l.skillName(said["name"], at("name"))
	l.description(said["description"], at("description"))
	if text, isText := said["compatibility"].(string); said["compatibility"] != nil &&
		(!isText || utf8.RuneCountInString(text) > maxCompatibility) {
		l.add("compatibility", LevelError, FileName, at("compatibility"), "compatibility must be a text of at most %d "+
			"characters", maxCompatibility)
	}
	if said["metadata"] != nil {
		entries, isMap := said["metadata"].(map[string]any)
		if !isMap {
			l.add("metadata", LevelError, FileName, at("metadata"), "metadata must be a map of texts")
		}
		for key, value := range entries {
			if _, isText := value.(string); !isText {
				l.add("metadata", levelWarning, FileName, at("metadata"), "metadata.%s must be a text; put it in "+
					"quotes", key)
			}
		}
	}
}

var goodName = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// ValidName reports whether a skill may have a name.
func ValidName(name string) bool { return len(name) <= maxName && goodName.Get().MatchString(name) }

func (l *linter) skillName(value any, line int) {
	name, isText := value.(string)
	switch {
	case !isText || name == "":
		l.add("name", LevelError, FileName, max(line, 1), "the name is missing; write name: %s", l.name)
	case !ValidName(name):
		l.add("name", LevelError, FileName, line, "the name %q must have at most %d characters of a-z, 0-9 and -, no "+
			"dash at the ends and no two in a row", name, maxName)
	case name != l.name:
		level := LevelError
		if _, err := l.root.Lstat(".git"); err == nil {
			level = levelWarning // a clone may have any name
		}
		l.add("name-directory", level, FileName, line, "the name %s differs from the name of the directory, %s; "+
			"rename one", name, l.name)
	}
}

// whenWords are what descriptions say about when to use a skill.
var whenWords = lazyregexp.New(`(?i)\b(when|whenever|use (it|this|for|to|if|before|after|proactively)|` +
	`if (the|you|a|an)|trigger|triggers|before|after|asks?|asked|mentions?|invoke|activate|for any|should be used)\b`)

func (l *linter) description(value any, line int) {
	text, isText := value.(string)
	runes := utf8.RuneCountInString(text)
	switch {
	case !isText || strings.TrimSpace(text) == "":
		l.add("description", LevelError, FileName, max(line, 1), "the description is missing: agents decide by it "+
			"whether to open the skill")
	case runes > maxDescription:
		l.add("description", LevelError, FileName, line, "the description has %d characters; at most %d", runes,
			maxDescription)
	case len(text) == runes && !whenWords.Get().MatchString(text): // other languages have other words
		l.add("description-when", levelWarning, FileName, line, "the description does not say when to use the skill; "+
			"add a sentence such as: Use it when …")
	}
}

var (
	inlineCode = lazyregexp.New("`[^`]*`")
	linkTarget = lazyregexp.New(`\]\(([^)\s]+)\)`)
	skillPath  = lazyregexp.New("(?:^|[\\s`\"'(])((?:\\./)?(?:scripts|references|assets)/" +
		`[A-Za-z0-9_./-]*[A-Za-z0-9_-])`)
	// interpreter matches a program that runs scripts, followed by a script.
	interpreter = lazyregexp.New(`\b(?:ba|z)?(?:sh|python3?|node|bun|deno run|uv run|tsx|ruby|perl|pwsh|source)(?: -\S+)* ` +
		`+["']?([A-Za-z0-9_./$\{}-]+)`)
	placeholder  = lazyregexp.New(`(?i)[/\\](\.+|example|user(name)?|you|your-?name|name|someone)$`)
	absolutePath = lazyregexp.New(`(/Users/[A-Za-z0-9_.-]+|/home/[A-Za-z0-9_.-]+|` +
		`[A-Za-z]:\\{1,2}Users\\{1,2}[A-Za-z0-9_.-]+)`) // JSON doubles the \
)

func (l *linter) body(body string, before int) {
	lines := strings.Count(body, "\n")
	if tokens := len(body) / 4; lines > maxBodyLines || tokens > maxBodyTokens {
		l.add("body-length", levelWarning, FileName, before+1, "the body has %d lines and about %d tokens; at most %d "+
			"and %d are meant: move parts into references/", lines, tokens, maxBodyLines, maxBodyTokens)
	}
	seen, fenced := map[string]bool{}, false
	for i, line := range strings.Split(body, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		var targets []string
		if !fenced {
			plain := inlineCode.Get().ReplaceAllString(line, "")
			for _, found := range linkTarget.Get().FindAllStringSubmatch(plain, -1) {
				targets = append(targets, found[1])
			}
		}
		for _, found := range skillPath.Get().FindAllStringSubmatchIndex(line, -1) {
			if end := found[3]; end == len(line) || !strings.ContainsRune("*<{[$…", rune(line[end])) &&
				!strings.HasPrefix(line[end:], "…") { // else it is a pattern
				targets = append(targets, line[found[2]:end])
			}
		}
		for _, target := range targets {
			l.refersTo(target, before+i+1, seen)
		}
	}
}

// refersTo checks one reference of the body.
func (l *linter) refersTo(target string, line int, seen map[string]bool) {
	target, _, _ = strings.Cut(target, "#")
	if target == "" || strings.Contains(target, ":") || strings.HasPrefix(target, "/") || strings.ContainsAny(target,
		"<>*{}$") {
		return
	}
	name := path.Clean(target)
	if seen[name] || strings.HasPrefix(name, "../") {
		return
	}
	seen[name] = true
	if _, err := l.root.Stat(name); errors.Is(err, fs.ErrNotExist) {
		l.add("missing-file", LevelError, FileName, line, "%s does not exist", name)
	}
}

// tests checks the evals and the queries.
func (l *linter) tests() {
	if text, ok := l.test(EvalsFile, "evals"); ok {
		evals, err := ParseEvals(EvalsFile, text)
		l.place("evals", LevelError, err)
		if evals != nil {
			for _, note := range evals.Notes {
				l.place("evals", levelWarning, note)
			}
			for i := range evals.Cases {
				l.place("evals", LevelError, l.checkCase(&evals.Cases[i]))
				l.caseFiles(&evals.Cases[i])
			}
		}
	}
	for _, name := range QueryFiles {
		if text, ok := l.test(name, "queries"); ok {
			_, err := ParseQueries(name, text)
			l.place("queries", LevelError, err)
		}
	}
}

func (l *linter) test(name, rule string) ([]byte, bool) {
	text, err := ReadFile(l.root, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.add(rule, LevelError, name, 0, "%v", err)
	}
	return text, err == nil
}

// caseFiles looks for the files of a case.
func (l *linter) caseFiles(c *Case) {
	for _, file := range c.Files {
		found, err := FindCaseFile(l.root.Name(), file.Text)
		switch {
		case err != nil:
			l.add("evals", LevelError, EvalsFile, file.Line, "case %s: files: %s %v", c.ID, file.Text, err)
		case found.OfSkill:
			l.add("evals", levelWarning, EvalsFile, file.Line, "case %s: %s is part of the skill, so the "+
				"arm without it does not get it; put files for both arms below evals/", c.ID, file.Text)
		}
	}
}
