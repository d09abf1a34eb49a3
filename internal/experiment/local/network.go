package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/egress"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/trace"
)

// networkKey identifies what the network of an agent depends on.
type networkKey struct{ arm, task string }

// network is what the agents of an arm reach in a task.
type network struct {
	kind string // sandbox.NetworkHost, NetworkModel or NetworkNone
	// instead says why it is not what the task prefers; empty if it is.
	instead string
}

// NetworkError says that an agent cannot have the required network.
type NetworkError struct {
	Arm, Task, Network string
	Err                error // an agent.NetworkError if it is not this machine's fault
}

func (e *NetworkError) Error() string {
	return fmt.Sprintf("arm %s, task %s: network %s is not available here: %v", e.Arm, e.Task, e.Network, e.Err)
}

func (e *NetworkError) Unwrap() error { return e.Err }

// decideNetworks finds out what agents will reach, before the first of them starts. A required
// network that is not available is a NetworkError.
func (m *Machine) decideNetworks(ctx context.Context, setup *experiment.Setup) (map[networkKey]network, error) {
	decided := map[networkKey]network{}
	for i := range setup.Arms {
		for j := range setup.Family.Tasks {
			arm, t := &setup.Arms[i], &setup.Family.Tasks[j]
			asked := t.Settings.AgentNetwork
			if setup.Network != "" {
				asked = task.AgentNetwork{Kind: setup.Network, Required: true}
			}
			key := networkKey{arm.Name, t.ID}
			why := m.networkProblem(ctx, asked.Kind, setup, arm, t)
			switch {
			case why == nil:
				decided[key] = network{kind: asked.Kind}
			case errors.Is(why, sandbox.ErrUntested):
				return nil, why
			case asked.Required:
				return nil, &NetworkError{arm.Name, t.ID, asked.Kind, why}
			default:
				decided[key] = network{kind: sandbox.NetworkHost, instead: why.Error()}
			}
		}
	}
	return decided, ctx.Err() // what an interrupted look found says nothing about the machine
}

// networkProblem returns why the agents of an arm cannot have a network in a task; nil if they can.
func (m *Machine) networkProblem(
	ctx context.Context, kind string, setup *experiment.Setup, arm *experiment.Arm, t *task.Task,
) error {
	if kind == sandbox.NetworkHost {
		return nil
	}
	if cmp.Or(setup.Isolation, t.Settings.Isolation) == sandbox.IsolationNone {
		return &agent.NetworkError{Network: kind, Reason: "it needs isolation bwrap, and isolation none is set"}
	}
	if err := workspace.CannotEnclose(ctx, setup.Isolation, t); err != nil {
		return err
	}
	for _, who := range []struct{ id, model string }{{arm.Agent, arm.Model}, {arm.Lead, arm.LeadModel}} {
		if who.id == "" {
			continue
		}
		if err := m.canWorkIn(kind, who.id, setup, agent.Config{
			Model: who.model, ModelURL: arm.ModelURL, Auth: arm.Auth,
		}); err != nil {
			return err
		}
	}
	return nil
}

// canWorkIn returns why an agent cannot work in its own network; nil if it can.
func (m *Machine) canWorkIn(kind, id string, setup *experiment.Setup, cfg agent.Config) error {
	chosen, err := m.Registry.Get(id)
	if err != nil {
		return err
	}
	installation := m.installation(id)
	cfg.Installation, cfg.Environ, cfg.Gateway.Off = &installation, m.Host.Environ, gatewayOff(setup)
	cfg.ModelURL = modelURL(setup, cfg.ModelURL)
	cfg.Isolation, cfg.Network = sandbox.Isolation{Kind: sandbox.IsolationBwrap}, kind
	return agent.CheckNetwork(chosen, cfg)
}

// NetworkFallbacks returns why agents have the network of the machine although their task prefers
// another, and in how many tasks.
func (e *Executor) NetworkFallbacks() map[string]int {
	tasks := map[string]map[string]bool{}
	for key, decided := range e.networks {
		if decided.instead == "" {
			continue
		}
		if tasks[decided.instead] == nil {
			tasks[decided.instead] = map[string]bool{}
		}
		tasks[decided.instead][key.task] = true
	}
	count := map[string]int{}
	for why, of := range tasks {
		count[why] = len(of)
	}
	return count
}

// ShareLoopback reports whether the agents of a task have the machine's loopback, and not one of
// their own.
func (e *Executor) ShareLoopback(taskID string) bool {
	for key, decided := range e.networks {
		if key.task == taskID && decided.kind == sandbox.NetworkHost {
			return true
		}
	}
	return false
}

// networkOf returns what the agents of an arm reach in a task.
func (e *Executor) networkOf(arm *experiment.Arm, t *task.Task) string {
	return e.networks[networkKey{arm.Name, t.ID}].kind
}

// judgeNetwork returns what the judge reaches: only its model, if the agent had that.
func (a *attempt) judgeNetwork() string {
	judge := a.prepared.Judge
	if a.networkOf(a.arm, a.task) == sandbox.NetworkHost || a.machine.canWorkIn(sandbox.NetworkModel,
		judge.Agent, &a.prepared.Setup, agent.Config{Model: judge.Model, ModelURL: judge.ModelURL}) != nil {
		return sandbox.NetworkHost
	}
	return sandbox.NetworkModel
}

// doors returns the services that the agent reaches in its own network, beside its model.
func (a *attempt) doors() []agent.Door {
	var doors []agent.Door
	if port, serve := a.space.ServiceDoor(); port != 0 {
		doors = append(doors, agent.Door{Port: port, Serve: serve})
	}
	if hosts := a.registries(); len(hosts) > 0 {
		proxy := &egress.Proxy{Hosts: hosts, Asked: a.askedFor}
		doors = append(doors, agent.Door{Port: egress.Port, Serve: proxy.Serve})
	}
	return doors
}

// registries returns the hosts that the agent reaches beside its model. The command's setting takes
// precedence over the task's.
func (a *attempt) registries() []string {
	if a.prepared.Network != "" || a.networkOf(a.arm, a.task) != sandbox.NetworkModel {
		return nil
	}
	return a.task.Settings.Registries
}

// askedFor records in the trace that the agent asked for a host.
func (a *attempt) askedFor(host string, allowed bool) {
	event := trace.HostEvent{Type: trace.TypeHostRefused, Host: host}
	if allowed {
		event.Type = trace.TypeHostReached
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.agentLines != nil {
		_, _ = a.agentLines.EmitValue(trace.Orchestrator, event) // the trace keeps its error
	}
}
