package experimentcli

import (
	"testing"

	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/experiment"
)

// Caps are by who is asked: the host of a URL, else whoever made the model's protocol.
func TestProviders(t *testing.T) {
	t.Parallel()
	registry := catalog.Default()
	for _, tt := range []struct{ agent, model, url, want string }{
		{"claude-code", "", "", "anthropic"},
		{"codex", "", "", "openai"},
		{"pi-agent", "claude-opus-4-5", "", "anthropic"},
		{"pi-agent", "gpt-5", "", "openai"},
		{"builtin", "claude-sonnet-4-5", "", "anthropic"},
		{"builtin", "gemini-2.5-pro", "", "google"},
		{"codex", "", "http://gateway.example:8080/v1", "gateway.example:8080"},
		{"nobody", "", "", "nobody"},
	} {
		t.Run(tt.agent, func(t *testing.T) {
			arm := &experiment.Arm{Agent: tt.agent, Model: tt.model, ModelURL: tt.url}
			if got := ProviderOf(registry, arm); got != tt.want {
				t.Errorf("%+v: got %s", tt, got)
			}
		})
	}
}
