package harnesscli

import (
	"cmp"
	"os"
	"regexp"
	"testing"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/cli/console"
)

// TestTheTableOfLimitsStatesTheDefaults compares the tables of the page with the flags of the
// commands. Where commands differ, the page says which default is whose.
func TestTheTableOfLimitsStatesTheDefaults(t *testing.T) {
	page, err := os.ReadFile("../../../docs/agent-collaboration.md")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	commands := New(&console.Console{}, catalog.Default()).Commands()
	rows := regexp.MustCompile("\\| `--([a-z-]+) [^`]*` \\| ([^|\n]+) ")
	for _, cells := range rows.FindAllStringSubmatch(string(page), -1) {
		name, stated := cells[1], cells[2]
		for _, command := range commands {
			flag := command.Flags().Lookup(name)
			switch command.Name() {
			case "supervise", "facilitate", "discuss", "judge":
			default:
				continue
			}
			if flag == nil || flag.Hidden {
				continue
			}
			compared++
			want := defaultOf(flag)
			quoted := regexp.QuoteMeta(want)
			if !regexp.MustCompile("^" + quoted + `($|;)|\b` + quoted + " in " + command.Name()).MatchString(stated) {
				t.Errorf("--%s of %s: the default is %s, and the page says %q", name, command.Name(), want, stated)
			}
		}
	}
	if compared < 30 {
		t.Errorf("only %d defaults were found on the page", compared)
	}
}

// defaultOf is the default that the help of a flag states.
func defaultOf(flag *pflag.Flag) string {
	if said := regexp.MustCompile(`\(default ([^):]+)\)`).FindStringSubmatch(flag.Usage); said != nil {
		return said[1]
	}
	return cmp.Or(flag.DefValue, "none")
}
