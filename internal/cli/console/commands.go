package console

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// NeedsCommand is the mistake of calling a group of commands without naming one.
func NeedsCommand(group *cobra.Command) error {
	return Usagef("%s needs a command: %s", group.CommandPath(), commandNames(group))
}

// UnknownCommand is the mistake of naming a command that the group does not have. The answer holds
// the nearest name and all the others, so that nobody has to ask again.
func UnknownCommand(group *cobra.Command, typed string) error {
	complaint := fmt.Sprintf("unknown command %q", typed)
	if group.HasParent() {
		complaint = fmt.Sprintf("%s has no command %q", group.CommandPath(), typed)
	}
	if strings.ContainsAny(typed, "./") {
		return Usagef("%s: name what to do first; the commands are %s", complaint, commandNames(group))
	}
	return Usagef("%s%s; the commands are %s", complaint, suggestion(group, typed), commandNames(group))
}

func suggestion(group *cobra.Command, typed string) string {
	group.SuggestionsMinimumDistance = 2
	var near []string
	for _, name := range group.SuggestionsFor(typed) {
		near = append(near, strconv.Quote(name))
	}
	for _, child := range group.Commands() { // it may be the command of a group
		if found, _, err := child.Find([]string{typed}); err == nil && found != child {
			near = append(near, strconv.Quote(found.CommandPath()))
		}
	}
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
}

func commandNames(group *cobra.Command) string {
	var all []string
	for _, command := range group.Commands() {
		if command.IsAvailableCommand() {
			all = append(all, command.Name())
		}
	}
	return strings.Join(all, ", ")
}
