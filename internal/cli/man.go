package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/cli/console"
)

// newMan is "fit man DIR", which packagers run.
func newMan(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write a manual page of each command into a directory",
		Example: "  fit man share/man/man1",
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			dir := con.Path(args[0])
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			for name, tree := range programNames { // whose page is that of its command
				page := ".so man1/" + strings.TrimSuffix("fit-"+tree, "-") + ".1\n"
				if name == "fit-"+tree {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(page), 0o644); err != nil {
					return fmt.Errorf("write manual page: %w", err)
				}
			}
			return writeManual(command.Root(), dir)
		},
	}
}

func writeManual(command *cobra.Command, dir string) error {
	name := strings.ReplaceAll(command.CommandPath(), " ", "-")
	if err := os.WriteFile(filepath.Join(dir, name+".1"), manualPage(command), 0o644); err != nil {
		return fmt.Errorf("write manual page: %w", err)
	}
	for _, child := range shown(command) {
		if err := writeManual(child, dir); err != nil {
			return err
		}
	}
	return nil
}

// shown are the commands below one that its help lists.
func shown(command *cobra.Command) []*cobra.Command {
	hidden := func(child *cobra.Command) bool { return child.Hidden }
	return slices.DeleteFunc(slices.Clone(command.Commands()), hidden)
}

// manualPage is the help of a command as a page for man.
func manualPage(command *cobra.Command) []byte {
	path := command.CommandPath()
	name := strings.ReplaceAll(path, " ", "-")
	var page bytes.Buffer
	fmt.Fprintf(&page, ".TH %q 1 \"\" \"fit\" \"fit manual\"\n", strings.ToUpper(name))
	fmt.Fprintf(&page, ".SH NAME\n%s \\- %s\n", roff(name), roff(command.Short))
	fmt.Fprintf(&page, ".SH SYNOPSIS\n.B %s\n", roff(command.UseLine()))
	if command.Long != "" {
		fmt.Fprintf(&page, ".SH DESCRIPTION\n%s\n", strings.ReplaceAll(roff(command.Long), "\n\n", "\n.PP\n"))
	}
	children := shown(command)
	if len(children) > 0 {
		page.WriteString(".SH COMMANDS\n")
	}
	for _, child := range children {
		fmt.Fprintf(&page, ".TP\n\\fB%s\\fR\n%s\n", roff(child.Name()), roff(child.Short))
	}
	section(&page, "OPTIONS", command.NonInheritedFlags())
	section(&page, "GLOBAL OPTIONS", command.InheritedFlags())
	if command.Example != "" {
		fmt.Fprintf(&page, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(command.Example))
	}
	related := []string{}
	if command.HasParent() {
		related = append(related, strings.ReplaceAll(command.Parent().CommandPath(), " ", "-"))
	}
	for _, child := range children {
		related = append(related, strings.ReplaceAll(child.CommandPath(), " ", "-"))
	}
	for i, other := range related {
		related[i] = fmt.Sprintf("\\fB%s\\fR(1)", roff(other))
	}
	fmt.Fprintf(&page, ".SH SEE ALSO\n%s\n", strings.Join(related, ",\n"))
	return page.Bytes()
}

func section(page *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(page, ".SH %s\n", title)
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(flag)
		spelling := "--" + flag.Name
		if flag.Shorthand != "" {
			spelling = "-" + flag.Shorthand + ", " + spelling
		}
		fmt.Fprintf(page, ".TP\n\\fB%s\\fR", roff(spelling))
		if kind != "" {
			fmt.Fprintf(page, " \\fI%s\\fR", roff(kind))
		}
		if usual := defaultOf(flag); usual != "" {
			usage += " (default " + usual + ")"
		}
		fmt.Fprintf(page, "\n%s\n", roff(usage))
	})
}

// defaultOf is the default of a flag as its help shows it; empty if it is nothing.
func defaultOf(flag *pflag.Flag) string {
	one := pflag.NewFlagSet("", pflag.ContinueOnError)
	one.AddFlag(flag)
	_, usual, found := strings.Cut(strings.TrimSpace(one.FlagUsages()), " (default ")
	if !found || strings.Contains(flag.Usage, "(default ") {
		return ""
	}
	return strings.TrimSuffix(usual, ")")
}

// roff is text that means nothing to troff: no escapes, and no line that begins like a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
