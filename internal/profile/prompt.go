package profile

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed prompts/*.md
var promptFiles embed.FS

// Text returns one of the built-in texts by the name of its file.
func Text(name string) string {
	text, err := promptFiles.ReadFile("prompts/" + name + ".md")
	if err != nil {
		panic("profile: " + err.Error()) // the file is part of the binary
	}
	return strings.TrimSpace(string(text))
}

// SystemPrompt is the system prompt of a member's agent.
type SystemPrompt struct {
	// Text is the whole of it: Profile and Protocol, each in its tag.
	Text string
	// Replace says that it replaces the agent's own system prompt instead of being added to it.
	Replace  bool
	Profile  string
	Protocol string
}

// Compose builds a system prompt: the persona first, then the session protocol, whose parts are the
// text of the role, the profile's own section, and what is special about this run.
func Compose(p Profile, role, amend string) SystemPrompt {
	prompt := SystemPrompt{Profile: p.Persona, Protocol: Join(role, p.Protocol, amend)}
	var blocks []string
	if prompt.Profile != "" {
		blocks = append(blocks, "<agent_profile>\n"+prompt.Profile+"\n</agent_profile>")
	}
	if prompt.Protocol != "" {
		blocks = append(blocks, "<session_protocol>\n"+prompt.Protocol+"\n</session_protocol>")
	}
	prompt.Text = strings.Join(blocks, "\n\n")
	return prompt
}

// SkillsText returns the text that lists the skills a profile expects its member to use.
func SkillsText(skills []string) string {
	if len(skills) == 0 {
		return ""
	}
	return fmt.Sprintf("Skills that you are expected to use where they apply: %s.", strings.Join(skills, ", "))
}
