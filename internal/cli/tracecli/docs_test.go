package tracecli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fit-eval/fit/internal/testenv"
)

// example is a command of the page and what the page says that it prints; nil if it says nothing.
type example struct {
	line    int
	command string
	output  *string
}

// examplesOf reads the code blocks of a page: in "console" blocks a command follows a dollar sign
// and its output comes after it; "sh" blocks are commands only.
func examplesOf(page string) []example {
	var all []example
	language := ""
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```") && language == "":
			language = strings.TrimPrefix(line, "```")
		case strings.HasPrefix(line, "```"):
			language = ""
		case language == "sh":
			all = append(all, example{line: i + 1, command: line})
		case language == "console" && strings.HasPrefix(line, "$ "):
			all = append(all, example{line: i + 1, command: line[2:], output: new(string)})
		case language == "console":
			*all[len(all)-1].output += line + "\n"
		}
	}
	return all
}

func TestEveryCommandOfThePageWorks(t *testing.T) {
	testenv.NeedTool(t, "jq")
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "trace-analysis.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := examplesOf(string(page))
	if len(examples) < 20 {
		t.Fatalf("only %d commands were found on the page", len(examples))
	}
	archive := &txtar.Archive{}
	var script strings.Builder
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&script, "env FIT=%s\n", root)
	for _, e := range examples {
		fmt.Fprintf(&script, "# line %d of the page\n", e.line)
		if strings.HasPrefix(e.command, "cd ") {
			fmt.Fprintln(&script, e.command)
			continue
		}
		fmt.Fprintf(&script, "exec sh -c '%s'\n", strings.ReplaceAll(e.command, "'", "''"))
		if e.output != nil {
			name := fmt.Sprintf("line-%d.txt", e.line)
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(*e.output)})
			fmt.Fprintf(&script, "cmp stdout $WORK/%s\n", name)
		}
	}
	archive.Comment = []byte(script.String())
	path := filepath.Join(t.TempDir(), "page.txtar")
	if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: []string{path}, Setup: quickExit})
}
