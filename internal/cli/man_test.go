package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/cli/console"
)

// formatting is what a page for man has besides its words.
var formatting = regexp.MustCompile(`(?m)^\.(?:SH .*|TP|PP|nf|fi|B)$|^\.B |\\f[BIR]|\\&`)

// pageless is what help has and a page does not: how to call, and the titles of its parts.
var pageless = regexp.MustCompile(`(?m)^(?:Usage:\n(?: .*\n)+|Aliases:\n(?: .*\n)+|[A-Z][a-zA-Z ]*:$|Use ".*)`)

// wordsOf are the words of a page, as a reader of man sees them.
func wordsOf(page []byte) string {
	text := formatting.ReplaceAllString(string(page), "")
	text = strings.NewReplacer(`\-`, "-", `\e`, `\`).Replace(text)
	return strings.Join(strings.Fields(text), " ")
}

// Every command has a manual page that says what its help says, and every name of the program leads
// to one.
func TestManualPagesAreTheHelp(t *testing.T) {
	dir := t.TempDir()
	var output bytes.Buffer
	con := &console.Console{Stdout: &output, Stderr: &output, Dir: dir}
	if code := Run(t.Context(), []string{"fit", "man", "."}, con); code != 0 {
		t.Fatalf("exit %d: %s", code, &output)
	}
	left := map[string]bool{}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		left[strings.TrimSuffix(filepath.Base(page), ".1")] = true
	}
	read := func(name string) []byte {
		delete(left, name)
		page, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
		}
		return page
	}
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		name := strings.ReplaceAll(command.CommandPath(), " ", "-")
		page := wordsOf(read(name))
		for line := range strings.Lines(pageless.ReplaceAllString(helpText(command, 10_000), "")) {
			words := strings.Join(strings.Fields(line), " ")
			if !strings.Contains(page, words) {
				t.Errorf("%s.1 lacks %q", name, words)
			}
		}
		for _, child := range shown(command) {
			if other := name + "-" + child.Name() + "(1)"; !strings.Contains(page, other) {
				t.Errorf("%s.1 does not lead to %s", name, other)
			}
			visit(child)
		}
	}
	root := newRoot(con, catalog.Default())
	root.InitDefaultHelpCmd()
	visit(root)
	for name := range programNames {
		if page, found := strings.CutPrefix(string(read(name)), ".so man1/"); found {
			read(strings.TrimSuffix(page, ".1\n"))
		}
	}
	for name := range left {
		t.Errorf("%s.1 is the page of no command", name)
	}
}
