package builtin

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/document"
)

// skillsDir is the directory of skills in a working directory: one directory each, with a SKILL.md
// in it.
const skillsDir = ".claude/skills"

// The bounds of what skills may add to a system prompt.
const (
	maxSkills           = 100
	maxSkillDescription = 1024
	maxSkillHead        = 64 << 10
)

// skill is the entry of a skill in the prompt; the model reads the rest when it needs it.
type skill struct {
	name, description, file string
}

// findSkills lists the skills of a working directory, sorted by their directories. No link is
// followed out of it, and a skill that cannot be read is left out.
func findSkills(root *os.Root) []skill {
	entries, err := fs.ReadDir(root.FS(), skillsDir)
	if err != nil {
		return nil
	}
	var skills []skill
	for _, entry := range entries {
		if len(skills) == maxSkills {
			break
		}
		file := path.Join(skillsDir, entry.Name(), "SKILL.md")
		head, err := readHead(root, file)
		if err != nil {
			continue
		}
		name, description := describeSkill(head)
		skills = append(skills, skill{
			name:        oneLine(cmp.Or(name, entry.Name())),
			description: oneLine(description),
			file:        file,
		})
	}
	return skills
}

func readHead(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxSkillHead))
}

// describeSkill reads name and description from the block between two lines of dashes at the
// beginning of a SKILL.md. A block that is missing or not YAML gives nothing.
func describeSkill(text []byte) (name, description string) {
	settings, _, err := document.FrontMatter("SKILL.md", text)
	if err != nil || settings == nil {
		return "", ""
	}
	var said struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	}
	if err := settings.Decode(&said); err != nil {
		return "", ""
	}
	return said.Name, said.Description
}

func oneLine(text string) string {
	return display.CutBytes(display.Line(text), maxSkillDescription)
}

// skillsPrompt returns the part of the prompt that lists the skills and says how to use them; empty
// without any.
func skillsPrompt(skills []skill) string {
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
