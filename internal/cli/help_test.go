package cli

import (
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

// The help of every command fits into a small terminal; only examples, which people copy, may be
// wider.
func TestHelpFitsTheTerminal(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		for _, columns := range []int{80, widestHelp} {
			for line := range strings.Lines(helpText(command, columns)) {
				line = strings.TrimRight(line, "\n")
				if len([]rune(line)) > columns && !strings.Contains(command.Example, line) {
					t.Errorf("%s: a line of its help is wider than %d columns: %s", command.CommandPath(), columns, line)
				}
			}
		}
		for line := range strings.Lines(command.Example) {
			if _, about, found := strings.Cut(line, "   "); found && about != "" && len(line) > 80 {
				t.Errorf("%s: an example that says what it does is wider than 80 columns: %s", command.CommandPath(), line)
			}
		}
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	visit(newRoot(&console.Console{}, catalog.Default()))
}

var verbs = func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(`Align Ask Check Compare Continue Convert Correct Count Create Cut Download Drain Estimate Export
		Fetch Find Grade Judge Keep Let Limit List Look Make Measure Merge Post Print Prove Query Read Regrade Remove Report Run Search Serve Show Split
		Test Turn Use Validate View Write`) {
		set[word] = true
	}
	return set
}()
