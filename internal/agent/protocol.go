package agent

import (
	"slices"

	"github.com/fit-eval/fit/internal/model"
)

// The model protocols that are named in more places than their own files, as Info.Protocols names
// them.
const (
	ProtocolAnthropic = "anthropic"
	ProtocolResponses = "responses"
	ProtocolChat      = "chat"
)

// Protocols are the names of model protocols in a document.
type Protocols []string

// JSONSchema allows those that there are.
func (Protocols) JSONSchema() map[string]any {
	return map[string]any{
		"type": "array", "items": map[string]any{"type": "string", "enum": model.ProtocolNames()},
	}
}

// ProtocolOf returns the protocol that the models of a family are made for, among those that an
// agent speaks, of which the first is for models of no known family. Most servers speak Chat
// Completions.
func ProtocolOf(name string, spoken ...string) string {
	best := ProtocolChat
	if known := model.MadeFor(name); known != nil {
		best = known.Name
	}
	if slices.Contains(spoken, best) {
		return best
	}
	if len(spoken) > 0 {
		return spoken[0]
	}
	return ProtocolChat
}
