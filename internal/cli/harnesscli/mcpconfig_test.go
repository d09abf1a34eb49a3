package harnesscli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
)

// A mistake in the file of tool servers is reported before the agent starts, in words about the
// file and not about our types.
func TestMistakesInTheFileOfToolServers(t *testing.T) {
	for content, want := range map[string]string{
		`[]`:                              "it is a JSON array; the form is",
		`7`:                               "it is a JSON number; the form is",
		`{"mcpServers":`:                  "it is not JSON",
		``:                                "it is not JSON",
		`{}`:                              "it names no servers; the form is",
		`{"mcpServers":null}`:             "it names no servers",
		`{"mcpServers":[]}`:               "mcpServers is a JSON array",
		`{"mcpServers":{"a":"http://x"}}`: "is a JSON string",
		`{"mcpServers":{"a":{"url":5}}}`:  "is a JSON number",
		`{"mcpServers":{"a":{}}}`:         `server "a" needs either a url or a command`,
		`{"mcpServers":{"a":{"url":"http://x","command":"y"}}}`:  `server "a" needs either a url or a command`,
		`{"mcpServers":{"a":{"url":"nourl"}}}`:                   `server "a" has the url "nourl", which must begin with http:// or https://`,
		`{"mcpServers":{"a":{"url":"http://"}}}`:                 `name a host`,
		`{"mcpServers":{"a":{"url":"file:///etc/passwd"}}}`:      `begin with http://`,
		`{"mcpServers":{"a":{"url":"${NOT_SET}"}}}`:              `has the url ""`,
		`{"mcpServers":{"a":{"url":"http://x","type":"sse"}}}`:   `is of type "sse", but must be http or stdio`,
		`{"mcpServers":{"a":{"url":"http://x","type":"stdio"}}}`: `is of type "stdio", which goes with a command`,
		`{"mcpServers":{"a":{"command":"x","type":"http"}}}`:     `is of type "http", which goes with a url`,
		`{"mcpServers":{"":{"command":"x"}}}`:                    `has no name`,
	} {
		t.Run(content, func(t *testing.T) {
			con := &console.Console{Dir: t.TempDir()}
			if err := os.WriteFile(filepath.Join(con.Dir, "mcp.json"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			servers, err := loadServers(con, "mcp.json")
			if err == nil {
				t.Errorf("accepted as %v", servers)
				return
			}
			message := err.Error()
			if console.Code(err) != console.ExitUsage || !strings.HasPrefix(message, "--mcp-config mcp.json: ") ||
				!strings.Contains(message, want) {
				t.Errorf("exit %d and %q, want exit 2, the file and %q", console.Code(err), message, want)
			}
			if strings.Contains(message, "struct") || strings.Contains(message, "harnesscli") ||
				strings.Contains(message, "Go ") {
				t.Errorf("%q speaks of our code", message)
			}
		})
	}
}

func TestTheFileOfToolServersMayNameTheEnvironment(t *testing.T) {
	con := &console.Console{Dir: t.TempDir(), Environ: []string{"WIKI=wiki.example:8443", "TOKEN=t-1"}}
	content := `{"mcpServers":{"wiki":{"type":"http","url":"https://${WIKI}/mcp","headers":{"Authorization":"Bearer ${TOKEN}"}},"db":{"command":"db-server","args":["-v"]}}}`
	if err := os.WriteFile(filepath.Join(con.Dir, "mcp.json"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := loadServers(con, "mcp.json")
	if err != nil {
		t.Fatal(err)
	}
	want := []agent.MCPServer{
		{
			Name: "db", Command: "db-server", Args: []string{"-v"}, Headers: map[string]string{},
			Env: map[string]string{},
		},
		{
			Name: "wiki", URL: "https://wiki.example:8443/mcp",
			Headers: map[string]string{"Authorization": "Bearer t-1"}, Env: map[string]string{},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
