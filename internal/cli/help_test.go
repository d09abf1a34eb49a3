package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/cli/console"
)

// TestHelp: the summary of a command starts with a verb, and every command that does something has
// an example.
func TestHelp(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		for _, child := range command.Commands() {
			if child.Hidden {
				continue
			}
			first, _, _ := strings.Cut(child.Short, " ")
			if !verbs[strings.TrimSuffix(first, ",")] {
				t.Errorf("%s: %q does not start with a verb that this test knows", child.CommandPath(), child.Short)
			}
			if !child.HasSubCommands() && child.Example == "" {
				t.Errorf("%s has no example", child.CommandPath())
			}
			visit(child)
		}
	}
	visit(newRoot(&console.Console{}, catalog.Default()))
}

// Descriptions and flags of every command fit into the columns of a terminal; examples and lists
// are lines that people copy.
func TestHelpFitsTheTerminal(t *testing.T) {
	root := newRoot(&console.Console{}, catalog.Default())
	root.SetOut(io.Discard)
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		if err := command.Help(); err != nil { // which breaks the lines
			t.Fatal(err)
		}
		for line := range strings.Lines(command.Long + "\n" + flagsOf(command)) {
			columns := len([]rune(strings.TrimRight(line, "\n")))
			if columns > 100 && !strings.HasPrefix(line, "  fit") {
				t.Errorf("%s: a line of its help takes %d columns: %s", command.CommandPath(), columns, line)
			}
		}
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	visit(root)
}

// flagsOf is what the help of a command says about its flags.
func flagsOf(command *cobra.Command) string {
	_, flags, _ := strings.Cut(command.UsageString(), "\nFlags:\n")
	return flags
}

var verbs = func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(`Align Ask Check Compare Continue Convert Correct Count Create Cut Download Drain Estimate Export
		Fetch Find Grade Judge Let Limit List Look Make Measure Merge Print Prove Query Read Regrade Remove Report Run Search Serve Show Split
		Test Turn Validate View Write`) {
		set[word] = true
	}
	return set
}()
