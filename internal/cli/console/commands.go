package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// NeedsCommand is the mistake of calling a group of commands without naming one.
func NeedsCommand(group *cobra.Command) error {
	return Usagef("%s needs a command: %s", Below(group), commandNames(group))
}

// Below returns a command's name without the program's, which begins every error anyway. A line
// with both would look like a command to copy, and such lines are never broken.
func Below(command *cobra.Command) string {
	_, name, _ := strings.Cut(command.CommandPath(), " ")
	return cmp.Or(name, "it")
}

// UnknownCommand is the mistake of naming a command that the group does not have. The answer holds
// the nearest name and all the others, so that nobody has to ask again.
func UnknownCommand(group *cobra.Command, typed string) error {
	complaint := fmt.Sprintf("unknown command %q", typed)
	if group.HasParent() {
		complaint = fmt.Sprintf("%s has no command %q", Below(group), typed)
	}
	if strings.ContainsAny(typed, "./") {
		return Usagef("%s: name what to do first; the commands are %s", complaint, commandNames(group))
	}
	return Usagef("%s%s; the commands are %s", complaint, suggestion(group, typed), commandNames(group))
}

// otherWords are what other programs call commands of ours.
var otherWords = map[string][]string{
	"cat":      {"timeline"},
	"convert":  {"export"},
	"diff":     {"align", "compare"},
	"evaluate": {"run"},
	"grep":     {"search"},
	"ls":       {"list"},
	"new":      {"init"},
	"results":  {"report"},
	"show":     {"overview"},
	"start":    {"run"},
	"test":     {"run", "lint"},
	"ui":       {"view"},
	"web":      {"view"},
}

func suggestion(group *cobra.Command, typed string) string {
	group.SuggestionsMinimumDistance = 2
	var near []string
	for _, word := range otherWords[typed] {
		if found, _, err := group.Find([]string{word}); err == nil && found != group {
			near = append(near, strconv.Quote(found.Name()))
		}
	}
	if len(near) > 0 {
		return fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
	}
	for _, name := range group.SuggestionsFor(typed) {
		near = append(near, strconv.Quote(name))
	}
	for _, word := range append([]string{typed}, otherWords[typed]...) {
		for _, child := range group.Commands() { // it may be the command of a group
			if found, _, err := child.Find([]string{word}); err == nil && found != child {
				near = append(near, strconv.Quote(found.CommandPath()))
			}
		}
	}
	if slices.Contains(strings.Fields(group.Annotations[outside]), typed) {
		near = append(near, strconv.Quote("fit "+typed))
	}
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
}

// outside is the annotation of a program of its own that names the commands of fit beside it.
const outside = "outside"

// Outside tells a program of its own which other commands fit has, for the answer to those that
// look for them in the wrong place.
func Outside(program *cobra.Command, others []*cobra.Command) {
	var names []string
	for _, other := range others {
		if other.IsAvailableCommand() {
			names = append(names, other.Name())
		}
	}
	program.Annotations = map[string]string{outside: strings.Join(names, " ")}
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
