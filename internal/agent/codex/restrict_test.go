package codex

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
)

func TestListsOfToolsTakeAbilitiesAway(t *testing.T) {
	for name, test := range map[string]struct {
		allowed, denied []string
		without         []ability
		tools           map[string][]string
	}{
		"nothing said": {},
		"denied": {
			denied:  []string{"Bash", "Write", "Edit", "Agent", "Task"},
			without: []ability{commands, patching, helpers},
		},
		"what it does not have": {denied: []string{"Read", "Glob", "Grep"}},
		"allowed": {
			allowed: []string{"Bash", "Read", "Glob", "Grep", "Write", "Edit"},
			without: []ability{helpers, web, images, goals},
		},
		"allowed, and some of that denied": {
			allowed: []string{"Bash", "Write"}, denied: []string{"apply_patch"},
			without: []ability{helpers, web, images, goals, patching},
		},
		"only the tools of a server": {allowed: []string{"mcp__notes"}, without: abilities},
		"one tool of a server is forbidden": {
			denied: []string{"mcp__notes__forget"},
			tools:  map[string][]string{"notes": {"forget"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := restrict(agent.Config{AllowedTools: test.allowed, DisallowedTools: test.denied})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.tools) == 0 {
				got.tools = nil
			}
			if diff := cmp.Diff(restriction{test.without, test.tools}, got,
				cmp.AllowUnexported(restriction{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// offered are the tools in the first request that the program made, whichever of its ways to offer
// them the model has.
func offered(t *testing.T, s *agenttest.Stage) []string {
	t.Helper()
	type tool struct {
		Type        string `json:"type"`
		Name        string `json:"name"`
		Description string `json:"description"`
		Tools       []tool `json:"tools"`
	}
	var request struct {
		Tools []tool `json:"tools"`
		Input []struct {
			Tools []tool `json:"tools"`
		} `json:"input"`
	}
	if err := json.Unmarshal([]byte(s.Requests()[0].Body), &request); err != nil {
		t.Fatal(err)
	}
	tools := request.Tools
	for _, item := range request.Input {
		tools = append(tools, item.Tools...)
	}
	var names []string
	for i := 0; i < len(tools); i++ {
		if tools[i].Name != "" {
			names = append(names, tools[i].Name)
		} else {
			names = append(names, tools[i].Type)
		}
		for _, nested := range nestedTool.FindAllStringSubmatch(tools[i].Description, -1) {
			names = append(names, nested[1])
		}
		tools = append(tools, tools[i].Tools...)
	}
	return names
}

// nestedTool is how a tool is described that a model calls from a program that it writes.
var nestedTool = regexp.MustCompile("(?m)^### `(\\w+)`")

// TestWhatTheModelIsNotGivenItCannotUse looks at the tools that reach the model, for models that
// are offered them in three different ways.
func TestWhatTheModelIsNotGivenItCannotUse(t *testing.T) {
	taken := map[ability][]string{
		commands: {"exec_command", "write_stdin"}, patching: {"apply_patch"},
		helpers: {"spawn_agent", "multi_agent_v1", "collaboration"}, web: {"web_search"},
		images: {"view_image"}, goals: {"create_goal", "get_goal", "update_goal"},
	}
	for _, model := range []string{"gpt-5.5", "gpt-6-sol", "some-other-model"} {
		for name, denied := range map[string][]string{
			"nothing":                      nil,
			"a facilitator's tools":        {"Bash", "Agent", "Task", "TaskOutput", "TaskStop", "Write", "Edit"},
			"all but commands":             {"Write", "Agent", "WebSearch", "view_image", "TodoWrite"},
			"nothing but the tool servers": {"Bash", "Edit", "Task", "WebFetch", "view_image", "TodoWrite"},
		} {
			t.Run(model+" without "+name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, agenttest.Says("Done."))
				s.Config.Model, s.Config.DisallowedTools = model, denied
				s.Run("Go.")
				offered := offered(t, s)
				lost, err := restrict(s.Config)
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range abilities {
					for _, tool := range taken[a] {
						if lost.has(a) && slices.Contains(offered, tool) {
							t.Errorf("%s is offered: %q", tool, offered)
						}
					}
				}
				if !lost.has(commands) && !slices.Contains(offered, "exec_command") {
					t.Errorf("commands are not offered: %q", offered)
				}
				if patches := slices.Contains(offered, "apply_patch"); !lost.has(patching) &&
					patches != (model != "some-other-model") {
					t.Errorf("apply_patch is offered: %t, of %q", patches, offered)
				}
			})
		}
	}
}

func TestOneToolOfAServerCanBeDenied(t *testing.T) {
	t.Parallel()
	notes := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	for _, name := range []string{"remember", "forget"} {
		mcp.AddTool(notes, &mcp.Tool{Name: name, Description: name},
			func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{}, nil, nil
			})
	}
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return notes }, nil))
	t.Cleanup(server.Close)
	s := newStage(t, agenttest.Says("Done."))
	s.Config.Model = "some-other-model" // one that is shown the tools of servers without asking
	s.Config.MCPServers, s.Config.DisallowedTools = []agent.MCPServer{{
		Name: "notes",
		URL:  server.URL,
	}}, []string{"mcp__notes__forget"}
	s.Run("Go.")
	if offered := offered(t, s); !slices.Contains(offered, "remember") || slices.Contains(offered, "forget") {
		t.Errorf("offered: %q", offered)
	}
}
