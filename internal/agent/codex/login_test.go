package codex

import (
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
)

// The agent's shell can read the key it was given, so whatever it prints must be known to
// redaction.
func TestEveryKeyThatTheProgramIsGivenIsRedacted(t *testing.T) {
	registry := agent.NewRegistry(&Agent{})
	for _, name := range []string{keyVariable, vendorVariable} {
		if secrets := registry.Secrets([]string{name + "=a key"}); secrets[name] != "a key" {
			t.Errorf("%s is not among %v", name, secrets)
		}
	}
}

// The program can also read the login that was copied into its home.
func TestALoginThatTheProgramPrintsIsRedacted(t *testing.T) {
	home := loggedIn(t, `{"OPENAI_API_KEY":"token-of-the-key-3","tokens":{"id_token":"token-of-id-4","access_token":"token-of-access-1","refresh_token":"token-of-refresh-2","account_id":"user:inference"},"last_refresh":"2026-01-01T00:00:00Z"}`)
	program := agenttest.Script(t, `cat "$CODEX_HOME"/`+loginName)
	cfg := agenttest.Config(t, program, "0.166.0", "HOME="+home)
	cfg.Model = "m"
	agenttest.CheckRedaction(t, New(), cfg, "user:inference", "token-of-access-1", "token-of-refresh-2",
		"token-of-the-key-3", "token-of-id-4")
}
