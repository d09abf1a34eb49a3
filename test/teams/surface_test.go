package teams

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// reviewer is a facilitator that reads a file, tries to change it, and then has somebody answer.
const reviewer = `{"scenarios":[
  {"name":"facilitator","when":{"system":"You chair a session"},"turns":[
    {"calls":[{"read":"notes.txt"}]},
    {"calls":[{"bash":"echo mine > notes.txt; echo mine > new.txt"}]},
    {"calls":[{"mcp":"orchestration/Ask","input":{"question":"Ready?"}}]},
    {"text":"I wait."},
    {"calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"It is."}}]},
    {"text":"Over."}]}],
 "turns":[
    {"calls":[{"read":"notes.txt"}]},
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"Ready."}}]},
    {"text":"Done."}]}`

// TestEveryFacilitatorReadsAndChangesNothing lets agents chair a session in a directory with a
// file. The others do it in "make soak": they lead in TestASupervisedPairOfTwoVendors, where they
// look at a file and can change nothing either.
func TestEveryFacilitatorReadsAndChangesNothing(t *testing.T) {
	if !sandbox.DetectBwrap(t.Context()).Bwrap.OK {
		testenv.Missing(t, "bubblewrap, which keeps files read-only")
	}
	leads := []string{"codex", "builtin"}
	if soaking() {
		leads = append(leads, "claude-code", "pi-agent")
	}
	for _, lead := range leads {
		t.Run(lead, func(t *testing.T) {
			t.Parallel()
			m := gather(t, reviewer, lead)
			m.write(t, "notes.txt", "all is well\n")
			m.write(t, ".claude/agents/alice.md", "You are alice.\n")
			m.hold(t, "facilitate", "--agent", "builtin", "--lead-agent", lead, "--lead-model", "scripted-model",
				"--agent-profiles", "alice", "--isolation", "bwrap", "--task-text", "Review the notes.",
				"--output", "trace.ndjson", "--session-timeout", patience)
			m.check(t, map[string]string{"facilitator": lead}, map[string]string{"alice": "Ready."})
			if !m.toldOf("You chair a session", "all is well") {
				t.Errorf("the facilitator has not read the file\n%s", m.tail())
			}
			notes, err := os.ReadFile(filepath.Join(m.dir, "notes.txt"))
			if err != nil || string(notes) != "all is well\n" {
				t.Errorf("the notes are %q, %v", notes, err)
			}
			if _, err := os.Stat(filepath.Join(m.dir, "new.txt")); err == nil {
				t.Error("the facilitator wrote a file")
			}
		})
	}
}

// toldOf reports whether the model was told a text in a conversation with that system prompt.
func (m *meeting) toldOf(system, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.requests, func(request string) bool {
		return strings.Contains(request, system) && strings.Contains(request, text)
	})
}

// What the model of a participant is offered, whoever plays it: commands, reading and writing, the
// session's tools, and nothing else.
var (
	sessionTools = []string{"Announce", "Answer", "Ask", "RequestForComment", "RollCall"}
	usualTools   = append([]string{"Bash", "Edit", "Glob", "Grep", "Read", "Write"}, sessionTools...)
	piTools      = append([]string{"bash", "edit", "find", "grep", "read", "write"}, sessionTools...)
	// Codex reads by commands, and with a model that it does not know it writes by them too. It has
	// no switch for its tools for resources, of which the session's server has none.
	codexFixed = []string{
		"exec_command", "write_stdin", "list_mcp_resource_templates", "list_mcp_resources", "read_mcp_resource",
	}
	codexTools = append(slices.Clone(codexFixed), sessionTools...)
	// With a model that it knows, the session's tools are found by a search.
	codexKnownTools = append([]string{"apply_patch", "tool_search"}, codexFixed...)
)

// TestAParticipantHasTheToolsOfItsRole is about those that take no part in
// TestFiveVendorsUnderOneFacilitator, which looks at the tools of the others.
func TestAParticipantHasTheToolsOfItsRole(t *testing.T) {
	for agent, want := range map[string][]string{"codex": codexTools, "builtin": usualTools} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			m := gather(t, reviewer, agent)
			m.write(t, "notes.txt", "all is well\n")
			m.write(t, ".claude/agents/alice.md", "You are alice.\n")
			m.hold(t, "facilitate", "--agent", agent, "--model", "scripted-model", "--lead-agent", "builtin",
				"--agent-profiles", "alice", "--task-text", "Review the notes.", "--output", "trace.ndjson",
				"--session-timeout", patience)
			m.checkOffered(t, "You are alice.", want)
		})
	}
}

func (m *meeting) checkOffered(t *testing.T, system string, want []string) {
	t.Helper()
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), m.offered(system)); diff != "" {
		t.Errorf("what the model is offered where the prompt says %q:\n%s", system, diff)
	}
}

// offered are the names of the tools in the requests of a conversation, without the prefix of a
// tool server.
func (m *meeting) offered(system string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, request := range m.requests {
		var body struct {
			Tools []toolOffer `json:"tools"`
		}
		if !strings.Contains(request, system) || json.Unmarshal([]byte(request), &body) != nil {
			continue
		}
		for _, tool := range body.Tools {
			names = append(names, tool.names()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// toolOffer is a tool as the protocols describe it; some put tools of one server into a namespace.
type toolOffer struct {
	Type     string      `json:"type"`
	Name     string      `json:"name"`
	Function *toolOffer  `json:"function"`
	Tools    []toolOffer `json:"tools"`
}

func (o toolOffer) names() []string {
	switch {
	case o.Function != nil:
		return o.Function.names()
	case len(o.Tools) > 0:
		var names []string
		for _, tool := range o.Tools {
			names = append(names, tool.names()...)
		}
		return names
	case o.Name == "":
		return []string{o.Type}
	}
	parts := strings.Split(o.Name, "__")
	return parts[len(parts)-1:]
}
