package catalog_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/catalog"
)

// every returns the agents of the catalog, and one of each kind that is named by a prefix.
func every(t *testing.T) []agent.Agent {
	t.Helper()
	agents := catalog.Default().All()
	for _, name := range []string{"cmd:true", "cmd+ndjson:true", "acp:true", "http://127.0.0.1/"} {
		a, err := catalog.Default().Get(name)
		if err != nil {
			t.Fatal(err)
		}
		agents = append(agents, a)
	}
	return agents
}

// TestAMisspeltToolIsRefusedByEveryAgent: a list of tools with a name that no agent knows is a
// mistake, and costs nothing.
func TestAMisspeltToolIsRefusedByEveryAgent(t *testing.T) {
	for _, a := range every(t) {
		cfg := agent.Config{
			Dir: t.TempDir(), Home: t.TempDir(), Model: "scripted-model", ModelURL: "http://127.0.0.1:1",
			AllowedTools: []string{"Read", "Bsh"},
		}
		err := agent.Check(a, cfg)
		if _, refused := errors.AsType[*agent.CapabilityError](err); !refused {
			t.Errorf("%s: %v", a.Info().ID, err)
		} else if a.Info().Capabilities.AllowedTools != agent.Unsupported && !strings.Contains(err.Error(), "Bsh") {
			t.Errorf("%s: it does not say which: %v", a.Info().ID, err)
		}
	}
}

// TestKindsWithoutAPlaceRefuseWhatNeedsOne: with the way out.
func TestKindsWithoutAPlaceRefuseWhatNeedsOne(t *testing.T) {
	for _, a := range every(t) {
		info := a.Info()
		skills, instructions := agent.RequirePlaces(info, true, false), agent.RequirePlaces(info, false, true)
		if (skills == nil) != (len(info.Places.Skills) > 0) ||
			(instructions == nil) != (len(info.Places.Instructions) > 0) {
			t.Errorf("%s: %v, %v", info.ID, skills, instructions)
		}
		if strings.Contains(string(info.ID), ":") || info.ID == "model" {
			if skills == nil || instructions == nil {
				t.Errorf("%s has places: %+v", info.ID, info.Places)
			}
			for _, way := range []string{string(info.ID), "prompt:", "{skills: [.agents/skills]}", "agents.yaml"} {
				if skills != nil && !strings.Contains(skills.Error(), way) {
					t.Errorf("%s: %v does not name %s", info.ID, skills, way)
				}
			}
		}
		if err := agent.Require(info, agent.Config{Settings: "x"}); info.Capabilities.Settings == agent.Unsupported &&
			(err == nil || !strings.Contains(err.Error(), "a settings file")) {
			t.Errorf("%s: settings: %v", info.ID, err)
		}
		if err := agent.RequirePlaces(info, false, false); err != nil {
			t.Errorf("%s: %v", info.ID, err)
		}
	}
}

// TestACommandDeclaresItsPlaces in agents.yaml, and gets what an arm brings there.
func TestACommandDeclaresItsPlaces(t *testing.T) {
	file, added, err := load(t, `
agents:
  - id: mine
    kind: command
    command: ./my-agent
    places: {skills: [.mine/skills], instructions: [MINE.md]}
`)
	if err != nil || len(added) != 1 {
		t.Fatal(added, err)
	}
	registry, err := catalog.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := registry.Get("mine")
	if err != nil {
		t.Fatal(err)
	}
	places := mine.Info().Places
	if err := agent.RequirePlaces(mine.Info(), true, true); err != nil || places.Skills[0] != ".mine/skills" ||
		places.Instructions[0] != "MINE.md" {
		t.Errorf("%+v, %v", places, err)
	}
	for _, wrong := range []string{"/skills", "../skills", ".", "a/../b", `''`} {
		_, _, err := load(t, "agents:\n  - id: a\n    kind: command\n    command: x\n    places: {skills: ["+wrong+"]}\n")
		if err == nil || !strings.Contains(err.Error(), ":5:") || !strings.Contains(err.Error(), "places.skills") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
