package cli

import (
	"cmp"
	"io"
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
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string,
		) ([]cobra.Completion, cobra.ShellCompDirective) {
			command, _, err := root.Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, child := range command.Commands() {
				if child.IsAvailableCommand() {
					names = append(names, child.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
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

// fitTerminal lets the help of every command fit into the given columns.
func fitTerminal(root *cobra.Command, columns int) {
	for _, command := range append(root.Commands(), root) { // each may be the root of its own program
		theirs := command.HelpFunc()
		command.SetHelpFunc(func(asked *cobra.Command, args []string) {
			if asked.Flags().Changed("json") { // programs read it
				theirs(asked, args)
				return
			}
			_, _ = io.WriteString(asked.OutOrStdout(), helpText(asked, columns))
		})
	}
}

// helpText is the help of a command in lines of so many columns. Examples stay as they are, because
// people copy them.
func helpText(command *cobra.Command, columns int) string {
	var out strings.Builder
	out.WriteString(wrapped(cmp.Or(command.Long, command.Short)+"\n\n", columns))
	for part := range strings.SplitSeq(strings.TrimRight(command.UsageString(), "\n"), "\n\n") {
		title, list, _ := strings.Cut(part, "\n")
		switch title {
		case "Available Commands:":
			var commands [][]string
			for _, child := range command.Commands() {
				if child.IsAvailableCommand() || child.Name() == "help" {
					commands = append(commands, []string{"  " + child.Name(), child.Short})
				}
			}
			part = title + "\n" + table(commands, columns)
		case "Flags:", "Global Flags:":
			var flags [][]string
			for _, line := range strings.Split(list, "\n") {
				spelling, usage, _ := strings.Cut(line[8:], "  ")
				flags = append(flags, []string{line[:8] + spelling, strings.TrimSpace(usage)})
			}
			part = title + "\n" + table(flags, columns)
		case "Examples:":
		default:
			if !strings.HasPrefix(title, " ") { // which are further examples
				part = strings.TrimRight(wrapped(part+"\n", columns), "\n")
			}
		}
		out.WriteString(part + "\n\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// table aligns the second cells of rows, and fills them. Where a first cell is wide, its second is
// below it.
func table(rows [][]string, columns int) string {
	const gap = 3
	left, most := 0, columns/2-6
	for _, row := range rows {
		if width := len(row[0]); width <= most {
			left = max(left, width)
		}
	}
	indent := strings.Repeat(" ", left+gap)
	var out strings.Builder
	for _, row := range rows {
		for len(row[0]) > columns { // a long list of values
			at := strings.LastIndexByte(row[0][:columns], '|') + 1
			if at == 0 {
				break
			}
			out.WriteString(row[0][:at] + "\n")
			row[0] = strings.Repeat(" ", 10) + row[0][at:]
		}
		out.WriteString(row[0])
		if len(row[0]) > left {
			out.WriteString("\n" + indent)
		} else {
			out.WriteString(indent[len(row[0]):])
		}
		fill(&out, row[1], indent, 0, columns)
		out.WriteByte('\n')
	}
	return strings.TrimRight(out.String(), "\n")
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
