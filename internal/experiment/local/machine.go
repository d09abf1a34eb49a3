package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
)

// Machine is what this machine offers to experiments: its agents, its environment, its prices.
type Machine struct {
	Registry *agent.Registry
	Host     agent.Host
	// Prices say what tokens cost; budgets in dollars need them.
	Prices session.Prices
	// Redactor takes secrets out of everything that is written; nil takes none out.
	Redactor *redact.Redactor
	Now      func() time.Time // nil is the system's clock
	// OutputLimit is how many bytes an agent may print; 0 is the usual limit.
	OutputLimit int64
	// Versions are those of the agents on the machines of a fleet, by id. They replace what is
	// installed here; nil means that cells run here.
	Versions map[string]string
	// Engines finds the images of tasks that run in containers; nil: images that are not on this
	// machine are not pulled.
	Engines *workspace.Engines

	mu    sync.Mutex
	found map[string]agent.Installation
	seen  map[string]string // the files of what was found, by agent
}

func (m *Machine) now() time.Time {
	if m.Now == nil {
		return time.Now()
	}
	return m.Now()
}

// find looks for an agent, once.
func (m *Machine) find(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	chosen, err := m.Registry.Get(id)
	if err != nil {
		return err
	}
	if _, known := m.lookUp(id); known {
		return nil
	}
	if version, there := m.Versions[id]; there {
		m.store(id, agent.Installation{Version: version})
		return nil
	}
	installation, err := chosen.Probe(ctx, m.Host)
	if err != nil {
		return err
	}
	return m.remember(id, installation)
}

// first finds the first agent that is installed and returns its id.
func (m *Machine) first(ctx context.Context) (string, error) {
	for _, id := range m.Registry.IDs() {
		if _, there := m.Versions[id]; there {
			return id, m.find(ctx, id)
		}
	}
	chosen, installation, err := m.Registry.First(ctx, m.Host)
	if err != nil {
		return "", err
	}
	id := string(chosen.Info().ID)
	return id, m.remember(id, installation)
}

// remember keeps what was found, with the digest of the program: records say what was measured.
func (m *Machine) remember(id string, installation agent.Installation) error {
	var err error
	if installation.SHA256, err = agent.Digest(m.Host, installation); err != nil {
		return err
	}
	if installation.ScriptSHA256, err = m.scriptDigests(installation); err != nil {
		return err
	}
	m.store(id, installation)
	return nil
}

func (m *Machine) store(id string, installation agent.Installation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.found == nil {
		m.found, m.seen = map[string]agent.Installation{}, map[string]string{}
	}
	m.found[id], m.seen[id] = installation, fingerprint(installation)
}

// Installed returns the versions of the agents that are installed on this machine, by id.
func (m *Machine) Installed(ctx context.Context) map[string]string {
	versions := map[string]string{}
	var mu sync.Mutex
	var looking sync.WaitGroup
	for _, id := range m.Registry.IDs() {
		looking.Go(func() {
			if m.find(ctx, id) == nil {
				mu.Lock()
				defer mu.Unlock()
				versions[id] = m.installation(id).Version
			}
		})
	}
	looking.Wait()
	return versions
}

func (m *Machine) lookUp(id string) (agent.Installation, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	installation, known := m.found[id]
	return installation, known
}

// installation returns the agent that was found; the zero value if it was not looked for.
func (m *Machine) installation(id string) agent.Installation {
	installation, _ := m.lookUp(id)
	return installation
}

// findAll finds the agents of a prepared experiment. Their versions must be those of the plan,
// which may have been made on another machine.
func (e *Executor) findAll(ctx context.Context) error {
	for _, arm := range e.prepared.Plan.Arms {
		for _, wanted := range []struct{ id, version string }{
			{arm.Agent, arm.AgentVersion},
			{arm.Lead, arm.LeadVersion},
		} {
			if err := e.machine.find(ctx, wanted.id); err != nil {
				return fmt.Errorf("arm %s: %w", arm.Name, err)
			}
			if here := e.machine.installation(wanted.id).Version; here != wanted.version {
				return fmt.Errorf("arm %s: the plan requires %s %s, but this machine has %s; install the planned "+
					"version", arm.Name, wanted.id, wanted.version, here)
			}
		}
	}
	return e.machine.find(ctx, e.prepared.Judge.Agent)
}
