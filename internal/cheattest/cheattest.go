// Package cheattest is the library of cheats, for tests: what wrong work does to be called right. A
// cheat is one small file, which anybody can read and add to:
//
//	Exits with success before any test runs.
//	-- {{file}} --
//	package {{package}}
//	...
//	-- run --
//	touch report.xml
//
// It says what it does, has the files that an agent would leave in its working directory, and may
// have a command that the agent runs when they are there. Words in double braces stand for the
// task: {{file}} is what the agent is to write, {{wrong}} a version of it that does nothing right.
package cheattest

import (
	"embed"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

//go:embed library
var library embed.FS

// Cheat is one file of the library.
type Cheat struct {
	Name  string
	Files map[string]string // by their paths in the working directory
	Run   string            // a command of a shell; empty: none
}

// runs is the name of the part of a file that is a command.
const runs = "run"

// All returns the cheats of a language for a task, by name. Those of any language are in "any".
func All(t testing.TB, language string, task map[string]string) map[string]Cheat {
	t.Helper()
	names, err := fs.Glob(library, path.Join("library", language, "*.txt"))
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no cheats in %s: %v", language, err)
	}
	var words []string
	for _, word := range slices.Sorted(maps.Keys(task)) {
		words = append(words, "{{"+word+"}}", task[word])
	}
	cheats := map[string]Cheat{}
	for _, name := range names {
		text, err := fs.ReadFile(library, name)
		if err != nil {
			t.Fatal(err)
		}
		filled := strings.NewReplacer(words...).Replace(string(text))
		if left := unset.Get().FindString(filled); left != "" {
			t.Fatalf("%s: nothing stands for %s", name, left)
		}
		cheat := parse(filled)
		cheat.Name = strings.TrimSuffix(path.Base(name), ".txt")
		cheats[cheat.Name] = cheat
	}
	return cheats
}

var (
	heading = lazyregexp.New(`(?m)^-- (.+) --\n`)
	unset   = lazyregexp.New(`\{\{[a-z]+\}\}`)
)

// parse reads what follows the headings of a file.
func parse(text string) Cheat {
	cheat := Cheat{Files: map[string]string{}}
	found := heading.Get().FindAllStringSubmatchIndex(text, -1)
	for i, at := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		if name := text[at[2]:at[3]]; name == runs {
			cheat.Run = text[at[1]:end]
		} else {
			cheat.Files[name] = text[at[1]:end]
		}
	}
	return cheat
}
