package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/agent/catalog"
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

var verbs = func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(`Align Ask Check Compare Continue Convert Correct Count Create Cut Download Export
		Fetch Find Grade Judge Let Limit List Look Make Measure Merge Print Prove Query Read Remove Report Run Search Serve Show Split
		Test Turn Write`) {
		set[word] = true
	}
	return set
}()
