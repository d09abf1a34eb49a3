package harness

import (
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/acp"
	"github.com/fit-eval/fit/internal/sandbox"
)

// TestAgentsOfTheProtocolInEveryRole: an agent whose tools can be denied leads as others do, and
// one whose tools cannot leads where it can change nothing, or not at all. A list that somebody
// asked for is never dropped.
func TestAgentsOfTheProtocolInEveryRole(t *testing.T) {
	lead := AgentConfig{Tools: readingTools, ToolsByRole: true, DisallowedTools: facilitatorDenied}
	lead.System.Replace = true
	participant := AgentConfig{Tools: participantTools, ToolsByRole: true}
	asked := AgentConfig{Tools: readingTools}
	denied := lead
	denied.DisallowedTools = append(slices.Clone(facilitatorDenied), "WebFetch")
	for name, test := range map[string]struct {
		agent    string
		member   AgentConfig
		isolated bool
		refused  bool
		note     string
		readOnly bool
		lists    bool
	}{
		"a lead that asks":                     {"opencode", lead, true, false, "its own system prompt", false, true},
		"without a sandbox":                    {"opencode", lead, false, false, "its own system prompt", false, true},
		"a lead that does not":                 {"qwen-code", lead, true, false, "tools, in a sandbox", true, false},
		"that one without a sandbox":           {"qwen-code", lead, false, true, "", false, false},
		"somebody denies it a tool":            {"qwen-code", denied, true, true, "", false, false},
		"a participant":                        {"gemini", participant, false, false, "all of its own", false, false},
		"a participant in a sandbox":           {"gemini", participant, true, false, "all of its own", false, false},
		"a list that somebody asked for":       {"gemini", asked, true, true, "", false, false},
		"a list that is honoured as asked for": {"opencode", asked, true, false, "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			at := slices.IndexFunc(acp.Agents(), func(a agent.Agent) bool { return string(a.Info().ID) == test.agent })
			settings := memberSettings(agent.Config{ModelURL: "http://127.0.0.1:9", Model: "m"}, test.member)
			settings.Dir, settings.Home, settings.SystemPrompt = "/work", "/home", "Lead."
			if test.isolated {
				writable := []string{"/work", "/home"}
				settings.Isolation = sandbox.Isolation{Kind: sandbox.IsolationBwrap, Writable: writable}
			}
			note, err := adapt(&settings, acp.Agents()[at], ModeFacilitate, test.member)
			if (err != nil) != test.refused || !strings.Contains(note, test.note) {
				t.Errorf("%q, %v", note, err)
			}
			if err != nil {
				return
			}
			if readOnly := slices.Contains(settings.Isolation.ReadOnly, "/work"); readOnly != test.readOnly {
				t.Errorf("isolation %+v", settings.Isolation)
			}
			if lists := len(settings.AllowedTools) > 0; lists != test.lists || settings.ReplaceSystemPrompt {
				t.Errorf("allowed %v, denied %v, replace %v", settings.AllowedTools, settings.DisallowedTools,
					settings.ReplaceSystemPrompt)
			}
		})
	}
}
