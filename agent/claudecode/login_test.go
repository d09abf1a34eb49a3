package claudecode

import (
	"testing"

	"github.com/fit-eval/fit/agent"
)

// The agent's shell can read the key it was given, so whatever it prints must be known to redaction.
func TestEveryKeyThatTheProgramIsGivenIsRedacted(t *testing.T) {
	registry := agent.NewRegistry(&Agent{})
	for _, name := range []string{keyVariable, tokenVariable, oauthVariable} {
		if secrets := registry.Secrets([]string{name + "=a key"}); secrets[name] != "a key" {
			t.Errorf("%s is not among %v", name, secrets)
		}
	}
}
