package fit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The agent can read how its tool servers are reached, so what it prints of that must not reach the
// trace.
func TestTheCredentialsOfToolServersAreSecrets(t *testing.T) {
	got := serverSecrets(AgentConfig{MCPServers: []MCPServer{
		{Name: "wiki", Headers: map[string]string{
			"Authorization": "Bearer abc-123", "X-Api-Key": "def-456",
			"Accept": "text/plain",
		}},
		{Name: "db", Env: map[string]string{"DB_PASSWORD": "two words", "PORT": "8080"}},
	}})
	want := map[string]string{
		"MCP_wiki_Authorization": "abc-123", "MCP_wiki_X-Api-Key": "def-456",
		"MCP_db_DB_PASSWORD": "two words",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
