package agent

import (
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// The model protocols, as Info.Protocols names them.
const (
	ProtocolAnthropic = "anthropic"
	ProtocolResponses = "responses"
	ProtocolChat      = "chat"
	ProtocolGemini    = "gemini"
)

var openAIModel = lazyregexp.New(`^(?:gpt-\d|o\d|codex|chatgpt)`)

// ProtocolOf returns the protocol that the models of a family are made for, among those that an
// agent speaks, of which the first is for models of no known family. Most servers speak Chat
// Completions.
func ProtocolOf(model string, spoken ...string) string {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	best := ProtocolChat
	switch {
	case strings.HasPrefix(name, "claude"):
		best = ProtocolAnthropic
	case openAIModel.MatchString(name):
		best = ProtocolResponses
	case strings.HasPrefix(name, "gemini"):
		best = ProtocolGemini
	}
	if slices.Contains(spoken, best) {
		return best
	}
	if len(spoken) > 0 {
		return spoken[0]
	}
	return ProtocolChat
}
