package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
)

// newHelp is "fit help COMMAND", which unlike cobra's own knows what it does not know.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Example: "  fit help harness run",
		Short:   "Show help about a command",
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			command, rest, err := root.Find(args)
			switch {
			case err != nil:
				return console.Exit(console.ExitUsage, err)
			case len(rest) > 0 && command.HasSubCommands():
				return console.UnknownCommand(command, rest[0])
			}
			command.InitDefaultHelpFlag() // so that it is listed, as it is by --help
			return command.Help()
		},
	}
}

// refuseHelpOnNothing keeps --help after an unknown command from showing the help of the group
// above and calling that success. What was refused is found under the pointer after the run,
// because cobra's help functions return nothing.
func refuseHelpOnNothing(root *cobra.Command) *error {
	var refused error
	for _, command := range append(root.Commands(), root) { // the root last, because the others fall back on its help
		help := command.HelpFunc()
		command.SetHelpFunc(func(asked *cobra.Command, args []string) {
			if given := asked.Flags().Args(); asked.HasSubCommands() && len(given) > 0 {
				refused = console.UnknownCommand(asked, given[0])
				return
			}
			help(asked, args)
		})
	}
	return &refused
}

// widestHelp is where lines of help end on a terminal that is wider: longer ones are hard to read.
const widestHelp = 120

// fitTerminal breaks the help of a command, when it is shown, so that its lines fit into the given
// columns.
func fitTerminal(root *cobra.Command, columns int) {
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(),
		"Flags.FlagUsages ", "Flags.FlagUsagesWrapped "+strconv.Itoa(columns)+" "))
	for _, command := range append(root.Commands(), root) { // the root last, because the others fall back on its help
		show := command.HelpFunc()
		command.SetHelpFunc(func(asked *cobra.Command, args []string) {
			asked.Long = wrapped(asked.Long, columns)
			show(asked, args)
		})
	}
}

// wrapped fills the paragraphs of a text. A line that is indented is a paragraph of its own, and
// what does not fit stands deeper below it.
func wrapped(text string, columns int) string {
	var out strings.Builder
	used := 0 // columns of the line that is being filled; 0 if there is none
	for line := range strings.Lines(text) {
		words := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(words)]
		if used > 0 && (indent != "" || words == "\n") {
			out.WriteByte('\n')
			used = 0
		}
		if words == "\n" || indent != "" && len([]rune(line)) <= columns {
			out.WriteString(line)
			continue
		}
		if indent == "" {
			used = fill(&out, words, "", used, columns)
			continue
		}
		out.WriteString(indent)
		fill(&out, words, indent+"    ", 0, columns)
		out.WriteByte('\n')
	}
	return out.String()
}

// fill writes words to a line and to those below it, which are indented, and returns how many
// columns of the last are used.
func fill(out *strings.Builder, words, indent string, used, columns int) int {
	for word := range strings.FieldsSeq(words) {
		width := len([]rune(word))
		switch {
		case used == 0:
			used = len(indent) // or a little less, on the first line
		case used+1+width > columns:
			out.WriteString("\n" + indent)
			used = len(indent)
		default:
			out.WriteByte(' ')
			used++
		}
		out.WriteString(word)
		used += width
	}
	return used
}
