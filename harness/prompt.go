package harness

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed prompts/*.md
var promptFiles embed.FS

// promptText returns one of the built-in texts.
func promptText(name string) string {
	text, err := promptFiles.ReadFile("prompts/" + name + ".md")
	if err != nil {
		panic("harness: " + err.Error()) // the file is part of the binary
	}
	return strings.TrimSpace(string(text))
}

// trailerOf names the text that tells a member how its role works.
func trailerOf(mode Mode, lead bool) string {
	switch {
	case mode == ModeSupervise && lead:
		return "supervisor"
	case mode == ModeSupervise:
		return "supervised-agent"
	case mode == ModeFacilitate && lead:
		return "facilitator"
	case mode == ModeFacilitate:
		return "facilitated-agent"
	case mode == ModeDiscuss && lead:
		return "discuss-lead"
	case mode == ModeDiscuss:
		return "discuss-agent"
	default:
		return "judge"
	}
}

// SystemPrompt is what a member's agent is told before anything else.
type SystemPrompt struct {
	// Text is the whole of it: Profile and Protocol, each in its tag.
	Text string
	// Replace says that it replaces the agent's own system prompt instead of being added to it.
	Replace  bool
	Profile  string
	Protocol string
}

// composePrompt puts a system prompt together: the persona first, then the session protocol, whose
// parts are the role's mechanics, the profile's own section, and what is special about this run.
func composePrompt(p profile, trailer, amend string) SystemPrompt {
	prompt := SystemPrompt{Profile: p.persona, Protocol: joinBlocks(trailer, p.protocol, amend)}
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

// skillsText tells a member which skills its profile expects it to use.
func skillsText(skills []string) string {
	if len(skills) == 0 {
		return ""
	}
	return fmt.Sprintf("Skills that you are expected to use where they apply: %s.", strings.Join(skills, ", "))
}
