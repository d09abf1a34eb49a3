package builtin

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/skill"
)

// The bounds of what skills may add to a system prompt.
const (
	maxSkills           = 100
	maxSkillDescription = 1024
)

// listedSkill is the entry of a skill in the prompt; the model reads the rest when it needs it.
type listedSkill struct {
	name, description, file string
}

// findSkills lists the skills of a working directory, sorted by their directories; of two with one
// name the first counts. No symlink is followed out of it, and a skill that cannot be read, or that
// only a person may call, is left out.
func findSkills(root *os.Root) []listedSkill {
	var skills []listedSkill
	for _, dir := range places.Skills {
		found, _ := skill.List(root, dir) // the others are used without those that cannot be read
		for _, s := range found {
			name := oneLine(s.Name)
			known := slices.ContainsFunc(skills, func(other listedSkill) bool { return other.name == name })
			if known || s.Hidden || len(skills) == maxSkills {
				continue
			}
			skills = append(skills, listedSkill{name: name, description: oneLine(s.Description), file: s.File()})
		}
	}
	return skills
}

func oneLine(text string) string {
	return display.CutBytes(display.Line(text), maxSkillDescription)
}

// skillsPrompt returns the part of the prompt that lists the skills and says how to use them; empty
// without any.
func skillsPrompt(skills []listedSkill) string {
	if len(skills) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString("Skills are instructions for particular kinds of work. When one fits what you are about to do, " +
		"read its file first and follow it; files that it names lie beside it.\n")
	for _, s := range skills {
		fmt.Fprintf(&text, "\n- %s (%s)", s.name, s.file)
		if s.description != "" {
			fmt.Fprintf(&text, ": %s", s.description)
		}
	}
	return text.String()
}
