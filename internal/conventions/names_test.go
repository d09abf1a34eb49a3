package conventions

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/fit-eval/fit/internal/agent/acp"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/agent/catalog"
)

// registryPackage is the one place that knows all agents.
const registryPackage = "internal/agent/catalog"

// notTheAgent are texts that have an agent's name in them and do not mean the agent. Whoever adds
// to them says why.
var notTheAgent = []struct {
	hint string // what every match has in it
	text *regexp.Regexp
	why  string
}{
	{
		".claude", regexp.MustCompile(`\.claude\b`),
		"the directory of profiles, skills and settings: a format that benchmarks and agents share, and that fit's own profiles are kept in",
	},
	{
		"CLAUDE.md", regexp.MustCompile(`\bCLAUDE\.md\b`),
		"the file of instructions, which several agents read",
	},
	{
		"target", regexp.MustCompile(`"--target", "claude"|--target claude\b`),
		"what the package manager for skills calls that directory",
	},
	{"claude-", regexp.MustCompile(`\bclaude-(?:opus|sonnet|haiku)-[\d-]+\d`), "a model, which any agent can run on"},
	{
		"New(", regexp.MustCompile("lazyregexp\\.New\\(`\\^(?:claude`|\\(\\?:gpt-\\\\d\\|o\\\\d\\|codex\\|)"),
		"families of models, by whose names the protocol is chosen",
	},
	{
		"aude", regexp.MustCompile(`\b(?:C|c)laudeCodeVersion\b|\bclaude_code_version\b`),
		"a field of the document that fit trace prints, and of the stream it is read from; both have it by this name",
	},
	{
		"codex-acp", regexp.MustCompile(`codex-acp|\.codex/`),
		"another agent, a row of the table of those that speak the protocol, and the folder of its settings",
	},
}

// agentName is how an agent is called in texts and in code.
type agentName struct {
	id, folder string
	words      []string // in lower case
}

// realAgents are the agents of the catalog that are programs of their own. Those that are part of
// fit are its demonstration and its fallback, and are meant where they are named. Those that are
// rows of a table have nothing that could be known but the row, and are called like models and
// vendors.
func realAgents(t *testing.T) []agentName {
	t.Helper()
	var all []agentName
	for _, a := range catalog.Default().All() {
		info := a.Info()
		if _, row := a.(*acp.Agent); row || info.ID == builtin.ID || info.ID == builtin.ModelID {
			continue
		}
		folder := path.Base(reflect.TypeOf(a).Elem().PkgPath())
		first, _, _ := strings.Cut(info.Title, " ")
		words := []string{string(info.ID), folder, strings.ToLower(info.Title), strings.ToLower(first)}
		slices.Sort(words)
		folder = "internal/agent/" + folder
		all = append(all, agentName{id: string(info.ID), folder: folder, words: slices.Compact(words)})
	}
	if len(all) < 3 {
		t.Fatalf("the catalog has %d agents", len(all))
	}
	return all
}

// in returns the first word of a text that is the agent's name. A name of a few letters must be a
// word of its own; a longer one may be part of another word.
func (n agentName) in(text string) string {
	lower, split := strings.ToLower(text), ""
	for _, word := range n.words {
		if len(word) > 3 {
			if strings.Contains(lower, word) {
				return word
			}
			continue
		}
		if split == "" && strings.Contains(lower, word) {
			split = splitWords(text)
		}
		if strings.Contains(split, " "+word+" ") {
			return word
		}
	}
	return ""
}

// splitWords writes the words of a text or of a name of Go in lower case with a space around each:
// piTimeout has the words pi and timeout, API has one.
func splitWords(text string) string {
	var b strings.Builder
	b.WriteByte(' ')
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			b.WriteByte(' ')
			continue
		case i > 0 && unicode.IsUpper(r) &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsUpper(runes[i-1]) &&
				unicode.IsLower(runes[i+1])):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	b.WriteByte(' ')
	return b.String()
}

// findNames returns the places of a Go file, in identifiers, texts and comments, that name an
// agent; imports of its package included.
func findNames(t *testing.T, rel string, source []byte, agents []agentName, used map[int]bool) []string {
	t.Helper()
	for k, exception := range notTheAgent {
		if bytes.Contains(source, []byte(exception.hint)) && exception.text.Match(source) {
			used[k] = true
			source = exception.text.ReplaceAll(source, nil)
		}
	}
	var found []string
	fset := token.NewFileSet()
	file := fset.AddFile(rel, -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return found
		}
		if tok != token.IDENT && tok != token.STRING && tok != token.COMMENT {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			for _, a := range agents {
				if strings.HasPrefix(rel, a.folder+"/") {
					continue
				}
				if word := a.in(line); word != "" {
					found = append(found, fmt.Sprintf("%s:%d names %s (%q): %s", rel, fset.Position(pos).Line+i, a.id,
						word, strings.TrimSpace(line)))
				}
			}
		}
	}
}

// TestNothingKnowsAnAgentByName: an agent is known to its own folder and to the catalog, so that
// another one is a folder and a line.
func TestNothingKnowsAnAgentByName(t *testing.T) {
	agents := realAgents(t)
	used := map[int]bool{}
	for _, file := range goFiles(t) {
		if file.test || file.pkg() == registryPackage {
			continue
		}
		for _, place := range findNames(t, file.path, file.source, agents, used) {
			t.Error(place)
		}
	}
	for k, exception := range notTheAgent {
		if !used[k] {
			t.Errorf("the exception %s is no longer needed", exception.text)
		}
	}
}

// TestTheCatalogHasOneLinePerAgent: the registry line that adds an agent, beside the import that Go
// wants for it.
func TestTheCatalogHasOneLinePerAgent(t *testing.T) {
	file := filepath.Join(repository(t), registryPackage, "catalog.go")
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range realAgents(t) {
		lines := map[string]bool{}
		for _, place := range findNames(t, registryPackage+"/catalog.go", source, []agentName{a}, map[int]bool{}) {
			if !strings.Contains(place, module) { // the import
				lines[strings.Fields(place)[0]] = true
			}
		}
		if len(lines) != 1 {
			t.Errorf("%s stands in %d lines of %s: %v", a.id, len(lines), file, lines)
		}
	}
}

// TestNamesAreFoundWhereverTheyHide: the check itself, on a file that does what it forbids.
func TestNamesAreFoundWhereverTheyHide(t *testing.T) {
	agents := []agentName{
		{id: "pi-agent", folder: "internal/agent/pi", words: []string{"pi", "pi-agent"}},
		{id: "codex", folder: "internal/agent/codex", words: []string{"codex"}},
	}
	const source = "package x\n\n// codexYieldMs is for one of them.\nconst codexYieldMs = 1\n\n// API, pipe and Pisa are fine; pi's is not.\nvar piTimeout = `a\nb pi-agent c`\n"
	want := []string{"x.go:3", "x.go:4", "x.go:6", "x.go:7", "x.go:8"}
	var got []string
	for _, place := range findNames(t, "x.go", []byte(source), agents, map[int]bool{}) {
		got = append(got, strings.Fields(place)[0])
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if own := findNames(t, "internal/agent/codex/x.go", []byte("package x\n// codex and pi\n"), agents,
		map[int]bool{}); len(own) != 1 || !strings.Contains(own[0], "pi-agent") {
		t.Errorf("an agent's own folder may name that agent and no other: %q", own)
	}
}
