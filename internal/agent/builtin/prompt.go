package builtin

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/display"
)

// ownSystemPrompt is the default system prompt, which describes the agent's situation to the model.
const ownSystemPrompt = `You are a coding agent. You work in one directory, %s, and everything you change must lie in it.

Use the tools to look before you change anything, make the smallest change that does the task, and run the project's own tests where there are any. Paths may be
given relative to the directory. A command that fails tells you why: read its output before you try again. When the task is done, or cannot be done, say so in a
few plain sentences and call no more tools.`

// places are what the agent reads of a project.
var places = agent.Places{
	Instructions: []string{"AGENTS.md", "CLAUDE.md"},
	OneOf:        true,
	Skills:       []string{".claude/skills", ".agents/skills"},
}

// maxInstructions is how much of an instruction file the system prompt has, in bytes.
const maxInstructions = 32 << 10

// systemPrompt returns the agent's own prompt or the caller's in its place, then what the project
// brings, then what the caller appends.
func (c *conversation) systemPrompt() string {
	if c.agent.bare {
		return c.cfg.SystemPrompt
	}
	if c.project == nil { // looked for once: what the agent writes later does not change its prompt
		c.project = new("")
		if c.cfg.ReadsProject() {
			*c.project = projectPrompt(c.root)
		}
	}
	parts := []string{fmt.Sprintf(ownSystemPrompt, c.cfg.Dir), *c.project, c.cfg.SystemPrompt}
	if c.cfg.ReplaceSystemPrompt {
		parts = []string{c.cfg.SystemPrompt, *c.project}
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "\n\n")
}

// projectPrompt returns what a working directory adds to the system prompt: its instructions, and
// the list of its skills.
func projectPrompt(root *os.Root) string {
	var parts []string
	if name, text := places.FirstInstructions(root, maxInstructions+1); strings.TrimSpace(text) != "" {
		text = strings.ToValidUTF8(text, "\uFFFD")
		if len(text) > maxInstructions {
			text = display.FirstBytes(text, maxInstructions) +
				fmt.Sprintf("\n\n[This is the beginning of %s; read the file for the rest.]", name)
		}
		parts = append(parts, "The instructions of this project ("+name+"):\n\n"+strings.TrimSpace(text))
	}
	if skills := skillsPrompt(findSkills(root)); skills != "" {
		parts = append(parts, skills)
	}
	return strings.Join(parts, "\n\n")
}
