package agent_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
)

// probeRig is a program on a PATH of its own that counts how often it is asked for its version.
type probeRig struct {
	path  string
	asked int
	host  agent.Host
}

func newProbeRig(t *testing.T, answer string) *probeRig {
	t.Helper()
	dir := t.TempDir()
	r := &probeRig{path: filepath.Join(dir, "prog")}
	if err := os.WriteFile(r.path, []byte("#!/bin/false\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.host = agent.Host{Environ: []string{"PATH=relative:" + dir}, CacheDir: t.TempDir(), Spawner: program(
		func(_ context.Context, spec sandbox.SpawnSpec, stdout, _ io.Writer) (sandbox.SpawnResult, error) {
			r.asked++
			if spec.Argv[1] != "--version" {
				t.Errorf("argv %v", spec.Argv)
			}
			_, err := io.WriteString(stdout, answer)
			return sandbox.SpawnResult{}, err
		})}
	return r
}

var prog = agent.Program{Agent: "some-agent", Name: "prog", Hint: "install prog"}

func TestAVersionIsAskedForOnceForEachProgram(t *testing.T) {
	r := newProbeRig(t, "prog 1.2.3-beta.4 (Prog)\n")
	for range 3 {
		found, err := prog.Find(t.Context(), r.host)
		if err != nil || found.Version != "1.2.3-beta.4" || found.Path != r.path {
			t.Fatalf("found %+v, %v", found, err)
		}
	}
	if r.asked != 1 {
		t.Errorf("asked %d times", r.asked)
	}
	if err := os.Chtimes(r.path, time.Now(), time.Now().Add(time.Hour)); err != nil { // updated
		t.Fatal(err)
	}
	if _, err := prog.Find(t.Context(), r.host); err != nil || r.asked != 2 {
		t.Errorf("asked %d times after an update, %v", r.asked, err)
	}
}

// playedByProg is an agent of which only the program matters.
type playedByProg struct{ agent.Agent }

func (playedByProg) Info() agent.Info { return agent.Info{ID: "some-agent"} }

func (playedByProg) Probe(ctx context.Context, host agent.Host) (agent.Installation, error) {
	return prog.Find(ctx, host)
}

// TestEveryMemberOfATeamKnowsTheVersion starts an agent that another has looked for before.
func TestEveryMemberOfATeamKnowsTheVersion(t *testing.T) {
	r := newProbeRig(t, "prog 1.2.3\n")
	for range 3 {
		cfg := agent.Config{
			Dir:      t.TempDir(),
			Home:     t.TempDir(),
			Environ:  r.host.Environ,
			CacheDir: r.host.CacheDir,
			Spawner:  r.host.Spawner,
		}
		if err := agent.Ready(t.Context(), playedByProg{}, &cfg); err != nil || cfg.Installation.Version != "1.2.3" {
			t.Fatalf("found %+v, %v", cfg.Installation, err)
		}
	}
	if r.asked != 1 {
		t.Errorf("asked %d times", r.asked)
	}
}

func TestAProgramThatIsNotThereOrBroken(t *testing.T) {
	var notFound *agent.NotFoundError
	if _, err := prog.Find(t.Context(), agent.Host{Environ: []string{"PATH=" + t.TempDir()}}); !errors.As(err,
		&notFound) || notFound.Hint != "install prog" {
		t.Errorf("error %v", err)
	}
	r := newProbeRig(t, "Segmentation fault\n")
	if _, err := prog.Find(t.Context(), r.host); err == nil || errors.As(err, &notFound) {
		t.Errorf("error %v", err)
	}
}

func TestWhatAnAgentLacksIsRefusedBeforeItStarts(t *testing.T) {
	info := agent.Info{ID: "some-agent"}
	for name, cfg := range map[string]agent.Config{
		"resume": {Resume: "x"}, "append": {SystemPrompt: "x"},
		"replace": {SystemPrompt: "x", ReplaceSystemPrompt: true},
		"allowed": {AllowedTools: []string{"x"}}, "disallowed": {DisallowedTools: []string{"x"}},
		"mcp":          {MCPServers: []agent.MCPServer{{}}},
		"subscription": {Auth: agent.AuthSubscription},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Dir, cfg.Home = "/d", "/h"
			var lacking *agent.CapabilityError
			if err := agent.Require(info, cfg); !errors.As(err, &lacking) || lacking.Agent != "some-agent" {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if err := agent.Require(info, agent.Config{Dir: "/d", Home: "/h"}); err != nil {
		t.Errorf("nothing asked: %v", err)
	}
}
