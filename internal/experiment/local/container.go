package local

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/ledger"
)

// engines returns the container engines of this machine.
func (m *Machine) engines() *workspace.Engines {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Engines == nil {
		m.Engines = &workspace.Engines{}
	}
	return m.Engines
}

// checkImages makes sure that every task that runs in a container can have its image.
func (p *preparation) checkImages(ctx context.Context) error {
	for i := range p.Family.Tasks {
		if err := p.machine.engines().Check(ctx, p.Isolation, &p.Family.Tasks[i]); err != nil {
			return err
		}
	}
	return nil
}

// toolServers returns the tool servers that a task gives its agent.
func toolServers(t *task.Task) []agent.MCPServer {
	if t.Settings.Environment == nil {
		return nil
	}
	var servers []agent.MCPServer
	for _, server := range t.Settings.Environment.Servers {
		servers = append(servers, agent.MCPServer{
			Name:    server.Name,
			URL:     server.URL,
			Command: server.Command,
			Args:    server.Args,
		})
	}
	return servers
}

// checkServers refuses agents that cannot have the tools that a task gives them.
func (p *preparation) checkServers(context.Context) error {
	for i := range p.Family.Tasks {
		t := &p.Family.Tasks[i]
		for _, arm := range p.Arms {
			if len(toolServers(t)) == 0 {
				continue
			}
			chosen, err := p.machine.Registry.Get(arm.Agent)
			if err != nil {
				return err
			}
			if chosen.Info().Capabilities.MCP == agent.Unsupported {
				return fmt.Errorf("task %s gives its agent tool servers, which %s of arm %s cannot use; leave one of "+
					"them out", t.ID, arm.Agent, arm.Name)
			}
		}
	}
	return nil
}

// insideKey identifies what the program of an agent in containers depends on.
type insideKey struct{ image, agent string }

// insideAgents are the programs of agents in containers, each looked for once.
type insideAgents struct {
	mu    sync.Mutex
	found map[insideKey]agent.Installation
}

// insideTimeout limits the query for the version of an agent in a container.
const insideTimeout = time.Minute

// toolsOf returns the interpreters that the programs of an arm's agents need, by the names under
// which they look for them.
func (e *Executor) toolsOf(arm *experiment.Arm) map[string]string {
	tools := map[string]string{}
	for _, id := range []string{arm.Agent, arm.Lead} {
		if id == "" {
			continue
		}
		name := interpreterOf(e.machine.installation(id).Path)
		if name == "" {
			continue
		}
		if path, err := filepath.EvalSymlinks(agent.LookPath(e.machine.Host.Environ, name)); err == nil {
			tools[name] = path
		}
	}
	return tools
}

// interpreterOf returns the program that a script asks env for; empty for any other file.
func interpreterOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	line, _ := bufio.NewReaderSize(file, 256).ReadString('\n')
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) < 2 || filepath.Base(words[0]) != "env" {
		return ""
	}
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") {
			return word
		}
	}
	return ""
}

// findInside finds the programs of an arm's agents in the container of the attempt: those of the
// machine where they run there, else those that the image has.
func (a *attempt) findInside(ctx context.Context) error {
	_, _, image, inside := a.space.Container()
	if !inside {
		return nil
	}
	for _, id := range []string{a.arm.Agent, a.arm.Lead} {
		if id == "" || a.machine.installation(id).Path == "" {
			continue
		}
		if err := a.findOneInside(ctx, insideKey{image.ID, id}, image); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) findOneInside(ctx context.Context, key insideKey, image sandbox.Image) error {
	a.inside.mu.Lock()
	defer a.inside.mu.Unlock()
	if _, known := a.inside.found[key]; known {
		return nil
	}
	here := a.machine.installation(key.agent)
	version, err := a.askInside(ctx, here.Path, here.ReadPaths)
	if err != nil {
		own := agent.Installation{Path: filepath.Base(here.Path), Login: here.Login}
		var missing error
		if version, missing = a.askInside(ctx, own.Path, nil); missing != nil {
			return fmt.Errorf("this machine's %s does not run in image %s (%w), and the image does not include it; "+
				"add it to the Dockerfile: RUN %s", key.agent, image.Name, err, a.installHint(key.agent))
		}
		here = own
	}
	here.Version = version
	if a.inside.found == nil {
		a.inside.found = map[insideKey]agent.Installation{}
	}
	a.inside.found[key] = here
	return nil
}

func (a *attempt) installHint(id string) string {
	chosen, err := a.machine.Registry.Get(id)
	if err != nil {
		return "…"
	}
	return chosen.Info().InstallHint
}

// askInside asks a program in the agent's container for its version.
func (a *attempt) askInside(ctx context.Context, program string, paths []string) (string, error) {
	place := a.space.Agent()
	isolation := place.Isolation
	isolation.ReadOnly = append(append([]string{}, isolation.ReadOnly...), paths...)
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real
	}
	env := place.Env
	env["HOME"], env["TMPDIR"] = place.Home, place.TmpDir
	var stdout, stderr bytes.Buffer
	result, err := a.spawner.Spawn(ctx, sandbox.SpawnSpec{
		Argv:      []string{program, "--version"},
		Dir:       place.Dir,
		Env:       env.List(),
		Timeout:   insideTimeout,
		Grace:     -1,
		MaxOutput: 1 << 20,
		Isolation: isolation,
	}, &stdout, &stderr)
	switch {
	case err != nil:
		return "", err
	case result.TimedOut:
		return "", errors.New("it does not report its version")
	case result.ExitCode != 0:
		return "", fmt.Errorf("exit code %d: %s", result.ExitCode, display.Line(strings.TrimSpace(stderr.String())))
	}
	version := cmp.Or(agent.VersionIn(stdout.String()), agent.VersionIn(stderr.String()))
	if version == "" {
		return "", errors.New("it does not report its version")
	}
	return version, nil
}

// installationOf returns the program of an agent as the attempt sees it.
func (a *attempt) installationOf(id string) (agent.Installation, bool) {
	here, known := a.machine.lookUp(id)
	if _, _, image, inside := a.space.Container(); inside {
		a.inside.mu.Lock()
		defer a.inside.mu.Unlock()
		if found, ok := a.inside.found[insideKey{image.ID, id}]; ok {
			return found, true
		}
	}
	return here, known
}

// noteContainer records the container of the attempt.
func (a *attempt) noteContainer() {
	engine, version, image, inside := a.space.Container()
	if inside {
		a.record.Container = &ledger.Container{
			Engine:  engine,
			Version: version,
			Image:   image.Name,
			ID:      image.ID,
			Digest:  image.Digest,
		}
	}
}
