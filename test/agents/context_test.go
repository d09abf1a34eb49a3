package agents

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/session"
)

// given are the places of a project from which each agent gives its model something at its start,
// where every place of every agent is filled. Each was measured, and is a row of the table of
// places (agent.Info); a row without a line here fails a convention.
var given = map[session.AgentID][]string{
	"claude-code": {
		"CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", ".claude/rules", ".claude/skills", ".claude/agents",
	},
	"codex":    {"AGENTS.override.md", ".agents/skills", ".codex/skills"},
	"pi-agent": {"AGENTS.md", ".agents/skills", ".pi/skills"},
	"builtin":  {"AGENTS.md", ".agents/skills", ".claude/skills"},
	"opencode": {
		"AGENTS.md", ".agents/skills", ".claude/skills", ".opencode/skills", ".opencode/skill", ".opencode/agent",
		".opencode/agents",
	},
	"qwen-code": {"AGENTS.md", "QWEN.md", ".qwen/rules", ".agents/skills", ".qwen/skills", ".qwen/agents"},
	"gemini":    {"GEMINI.md", ".agents/skills", ".gemini/skills"},
	"cline":     {"AGENTS.md", ".clinerules", ".cline/rules", ".agents/skills", ".cline/skills", ".clinerules/skills"},
	"copilot": {
		"AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md", ".github/instructions",
		".claude/rules", ".agents/skills", ".claude/skills", ".github/skills", ".claude/agents", ".github/agents",
	},
}

// namesOnly are agents that give their model the names of skills without the descriptions.
var namesOnly = []session.AgentID{"cline"}

// secondChoices are rows of the table that an agent reads only where another file is missing, or of
// which it tells other models than this one.
var secondChoices = map[session.AgentID][]string{
	"codex": {"AGENTS.md", ".codex/agents"}, "pi-agent": {"CLAUDE.md"}, "builtin": {"CLAUDE.md"},
	"opencode": {"CLAUDE.md"},
}

// everywhere are places of a project that some agent reads or is said to read, beside those of the
// table.
var everywhere = agent.Places{
	Instructions: []string{
		"AGENTS.md", "AGENTS.override.md", "AGENT.md", "CLAUDE.md", "CLAUDE.local.md", "CODEX.md", "CONTEXT.md",
		"GEMINI.md", "QWEN.md", ".agents/AGENTS.md", ".claude/CLAUDE.md", ".claude/rules",
		".cline/rules",
		".clinerules", ".codex/AGENTS.md", ".cursor/rules", ".cursorrules", ".gemini/GEMINI.md", ".gemini/system.md",
		".github/copilot-instructions.md", ".github/instructions", ".opencode/AGENTS.md", ".pi/AGENTS.md",
		".pi/APPEND_SYSTEM.md", ".pi/SYSTEM.md", ".qwen/QWEN.md", ".qwen/rules", ".qwen/system.md",
		".windsurfrules",
	},
	Skills: []string{
		".agents/skills", ".claude/skills", ".cline/skills", ".clinerules/skills", ".codex/skills", ".copilot/skills",
		".cursor/skills", ".gemini/skills", ".github/skills", ".opencode/skill", ".opencode/skills", ".pi/skills",
		".qwen/skills", "skills",
	},
	Agents: []string{
		".agents/agents", ".claude/agents", ".cline/agents", ".codex/agents", ".gemini/agents", ".github/agents",
		".opencode/agent", ".opencode/agents", ".pi/agents", ".qwen/agents",
	},
	Commands: []string{
		".agents/commands", ".claude/commands", ".clinerules/workflows", ".codex/prompts", ".gemini/commands",
		".github/prompts", ".opencode/command", ".opencode/commands", ".pi/prompts", ".qwen/commands",
	},
}

// atHome are the places of a person's home that differ from those of a project.
var atHome = agent.Places{
	Instructions: []string{
		".pi/agent/AGENTS.md", ".pi/agent/SYSTEM.md", ".pi/agent/APPEND_SYSTEM.md", ".config/opencode/AGENTS.md",
		".copilot/copilot-instructions.md", "Documents/Cline/Rules",
		".config/AGENTS.md",
	},
	Skills: []string{
		".pi/agent/skills", ".config/opencode/skills", ".config/opencode/skill", ".config/agents/skills",
	},
	Agents:   []string{".config/opencode/agent", ".config/opencode/agents", ".copilot/agents"},
	Commands: []string{".pi/agent/prompts", ".config/opencode/command"},
}

// TestContext: of everything that a project, the directories above it and a person's home bring, an
// agent gives its model what the table of places says with context project, and nothing with none.
func TestContext(t *testing.T) {
	t.Parallel()
	for _, id := range slices.Sorted(maps.Keys(given)) {
		a, err := catalog.Default().Get(string(id))
		if err != nil {
			t.Fatal(err)
		}
		for _, context := range []string{agent.ContextProject, agent.ContextNone} {
			t.Run(string(id)+"/"+context, func(t *testing.T) {
				t.Parallel()
				checkContext(t, a, context)
			})
		}
	}
}

func checkContext(t *testing.T, a agent.Agent, context string) {
	t.Helper()
	s := agenttest.NewStageIn(t, "node_modules/.bin", a, modelName(a), agenttest.Turn{
		"turns": []turn{{"text": "Done."}}, "usage": turn{"input": 1000, "output": 100},
	})
	testenv.NeedTool(t, "git")
	s.UnpackCopilot()
	base := t.TempDir()
	s.Config.Dir = filepath.Join(base, "repository", "packages", "work")
	s.Config.Environ = append(s.Config.Environ, "HOME="+filepath.Join(base, "home"))
	s.Config.Context = context
	m := markers{t: t, places: map[string]string{}, names: map[string]string{}}
	m.fill(filepath.Join(base, "home"), "~", everyPlace(atHome))
	m.fill(filepath.Join(base, "repository"), "../..", everyPlace())
	if err := os.Mkdir(filepath.Join(base, "repository", ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.fill(filepath.Dir(s.Config.Dir), "..", everyPlace())
	m.fill(s.Config.Dir, ".", everyPlace())
	talk := startIn(t, a, s.Config)
	if talk == nil {
		return
	}
	if result := s.Prompt(t.Context(), talk, "Say done."); !result.Success {
		t.Errorf("outcome %q, error %v", result.Outcome, result.Err)
	}
	if err := talk.Close(); err != nil {
		t.Error(err)
	}
	m.check(a.Info(), context, s.Told())
}

// insist are agents that read some places whatever they are told: with context none they refuse a
// project that has them, and so nothing arrives. climb are agents that cannot be kept from the
// directories above a working directory that is not the root of a repository.
var insist, climb = []session.AgentID{"cline", "copilot"}, []session.AgentID{"copilot", "qwen-code"}

// startIn starts an agent in its project; nil where it refuses it, as it must. What is above the
// working directory it may refuse too, until that is the root of a repository.
func startIn(t *testing.T, a agent.Agent, cfg agent.Config) agent.Session {
	t.Helper()
	id := a.Info().ID
	talk, err := agent.Start(t.Context(), a, cfg)
	if slices.Contains(climb, id) && err != nil && strings.Contains(err.Error(), "above its working directory") {
		if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", cfg.Dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		talk, err = agent.Start(t.Context(), a, cfg)
	}
	if !cfg.ReadsProject() && slices.Contains(insist, id) {
		if err == nil || !strings.Contains(err.Error(), "whatever it is told") {
			t.Errorf("context none: %v", err)
		}
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = talk.Close() })
	return talk
}

// everyPlace returns the places of all agents, and others.
func everyPlace(more ...agent.Places) agent.Places {
	all := everywhere
	for _, a := range catalog.Default().All() {
		more = append(more, a.Info().Places)
	}
	for _, p := range more {
		all.Instructions = slices.Concat(all.Instructions, p.Instructions)
		all.Skills = slices.Concat(all.Skills, p.Skills)
		all.Agents = slices.Concat(all.Agents, p.Agents)
		all.Commands = slices.Concat(all.Commands, p.Commands)
	}
	for _, list := range []*[]string{&all.Instructions, &all.Skills, &all.Agents, &all.Commands} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return all
}

// markers are words of which each is in one place only.
type markers struct {
	t      *testing.T
	places map[string]string // of each marker
	names  map[string]string // places by the names of the skills, sub-agents and commands in them
}

// fill puts a marker into every place below a directory, which messages call by a name.
func (m markers) fill(dir, name string, p agent.Places) {
	m.t.Helper()
	all := slices.Concat(p.Instructions, p.Skills, p.Agents, p.Commands)
	for _, place := range p.Instructions {
		file := place
		// A directory of instructions has a name without an extension, or other places in it.
		if (strings.Contains(place, "/") && path.Ext(place) == "") ||
			slices.ContainsFunc(all, func(other string) bool { return strings.HasPrefix(other, place+"/") }) {
			file += fmt.Sprintf("/rule-%d.instructions.md", len(m.places))
		}
		m.write(filepath.Join(dir, file), name+"/"+place, "Remember %s.\n")
	}
	for _, list := range []struct {
		places []string
		file   string
	}{{p.Skills, "%s/SKILL.md"}, {p.Agents, "%s.md"}, {p.Commands, "%s.md"}} {
		for _, place := range list.places {
			own := fmt.Sprintf("thing-%dx", len(m.places))
			m.names[own] = name + "/" + place
			m.write(filepath.Join(dir, place, fmt.Sprintf(list.file, own)), name+"/"+place,
				"---\nname: "+own+"\ndescription: Use this for work on %s.\n---\n\nDo it well.\n")
		}
	}
}

func (m markers) write(file, place, text string) {
	m.t.Helper()
	marker := fmt.Sprintf("zq%dqz", len(m.places))
	m.places[marker] = place
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, text, marker), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// check compares the markers that the model was told with the table and with what was measured.
func (m markers) check(info agent.Info, context, told string) {
	m.t.Helper()
	arrived := found(m.places, told)
	if slices.Contains(namesOnly, info.ID) { // others may list the files of their project
		arrived = slices.Concat(arrived, found(m.names, told))
	}
	if context == agent.ContextNone {
		if len(arrived) > 0 {
			m.t.Errorf("with context none the model was told of %q", arrived)
		}
		return
	}
	want, places := given[info.ID], info.Places
	for _, place := range want {
		if !slices.Contains(arrived, place) {
			m.t.Errorf("the model was not told of %s", place)
		}
	}
	for _, place := range arrived {
		if !slices.Contains(want, place) && !slices.Contains(places.Commands, place) {
			m.t.Errorf("the model was told of %s", place)
		}
	}
	rows := slices.Concat(places.Instructions, places.Skills, places.Agents)
	for _, place := range rows {
		if !slices.Contains(want, place) && !slices.Contains(secondChoices[info.ID], place) {
			m.t.Errorf("the table of places names %s, which was not measured", place)
		}
	}
	for _, place := range want {
		if !slices.Contains(rows, place) {
			m.t.Errorf("the table of places does not name %s", place)
		}
	}
}

// found returns the places whose words are in a text.
func found(places map[string]string, text string) []string {
	var all []string
	for word, place := range places {
		if strings.Contains(text, word) {
			all = append(all, strings.TrimPrefix(place, "./"))
		}
	}
	slices.Sort(all)
	return all
}
