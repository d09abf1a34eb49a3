package claudecode

import (
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
)

// The agent's shell can read the key it was given, so whatever it prints must be known to
// redaction.
func TestEveryKeyThatTheProgramIsGivenIsRedacted(t *testing.T) {
	registry := agent.NewRegistry(&Agent{})
	for _, name := range []string{keyVariable, tokenVariable, oauthVariable} {
		if secrets := registry.Secrets([]string{name + "=a key"}); secrets[name] != "a key" {
			t.Errorf("%s is not among %v", name, secrets)
		}
	}
}

// The program can also read the login that was copied into its home.
func TestALoginThatTheProgramPrintsIsRedacted(t *testing.T) {
	home := planWith(t, `{"claudeAiOauth":{"accessToken":"token-of-access-1","refreshToken":"token-of-refresh-2","expiresAt":1,"scopes":["user:inference"],"subscriptionType":"max"}}`)
	program := agenttest.Script(t, `cat "$CLAUDE_CONFIG_DIR"/`+credentials)
	cfg := agenttest.Config(t, program, "2.1.197", "HOME="+home)
	agenttest.CheckRedaction(t, New(), cfg, "user:inference", "token-of-access-1", "token-of-refresh-2")
}
