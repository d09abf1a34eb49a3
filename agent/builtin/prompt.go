package builtin

import (
	"fmt"
	"strings"
)

// ownSystemPrompt is the default system prompt, which describes the agent's situation to the model.
const ownSystemPrompt = `You are a coding agent. You work in one directory, %s, and everything you change must lie in it.

Use the tools to look before you change anything, make the smallest change that does the task, and run the project's own tests where there are any. Paths may be
given relative to the directory. A command that fails tells you why: read its output before you try again. When the task is done, or cannot be done, say so in a
few plain sentences and call no more tools.`

func (c *conversation) systemPrompt() string {
	if c.cfg.ReplaceSystemPrompt || c.agent.bare {
		return c.cfg.SystemPrompt
	}
	if c.skills == nil { // looked for once: what the agent writes later does not change its prompt
		c.skills = new(skillsPrompt(findSkills(c.root)))
	}
	parts := []string{fmt.Sprintf(ownSystemPrompt, c.cfg.Dir)}
	if *c.skills != "" {
		parts = append(parts, *c.skills)
	}
	if c.cfg.SystemPrompt != "" {
		parts = append(parts, c.cfg.SystemPrompt)
	}
	return strings.Join(parts, "\n\n")
}
