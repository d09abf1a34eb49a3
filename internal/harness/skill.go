package harness

import (
	"bytes"
	"encoding/json"
	"sync"
)

// skillVariable names the skill that an agent is using, for programs that are started from then on.
const skillVariable = "LIBHARNESS_SKILL="

// skillNotes remembers the last skill that each member called.
type skillNotes struct {
	mu   sync.Mutex
	last map[string]string // by member
}

// watch looks at an event of a member's agent.
func (n *skillNotes) watch(member string, event []byte) {
	if !bytes.Contains(event, []byte(`"Skill"`)) {
		return
	}
	if skill := skillOf(event); skill != "" {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.last == nil {
			n.last = map[string]string{}
		}
		n.last[member] = skill
	}
}

func (n *skillNotes) of(member string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last[member]
}

// skillOf returns the skill that an event of the stream dialect calls, or nothing.
func skillOf(event []byte) string {
	type content []struct {
		Type  string `json:"type"`
		Name  string `json:"name"`
		Input struct {
			Skill string `json:"skill"`
		} `json:"input"`
	}
	var message struct {
		Type    string `json:"type"`
		Message struct {
			Content content `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(event, &message) != nil || message.Type != "assistant" {
		return ""
	}
	skill := ""
	for _, block := range message.Message.Content {
		if block.Type == "tool_use" && block.Name == "Skill" && block.Input.Skill != "" {
			skill = block.Input.Skill
		}
	}
	return skill
}
