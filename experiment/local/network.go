package local

import (
	"context"
	"fmt"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/task"
	"github.com/fit-eval/fit/workspace"
)

// networkKey is what the network of an agent depends on.
type networkKey struct{ arm, task string }

// network is what the agents of an arm reach in a task.
type network struct {
	kind string // sandbox.NetworkHost, NetworkModel or NetworkNone
	// instead is why it is not what the task prefers; empty if it is.
	instead string
}

// decideNetworks finds out what agents will reach, before the first of them starts. Somebody who
// insists on a network that cannot be had gets an error.
func (e *Executor) decideNetworks(ctx context.Context) error {
	e.networks = map[networkKey]network{}
	for i := range e.prepared.Arms {
		for j := range e.prepared.Family.Tasks {
			arm, t := &e.prepared.Arms[i], &e.prepared.Family.Tasks[j]
			decided, err := e.decideNetwork(ctx, arm, t)
			if err != nil {
				return err
			}
			e.networks[networkKey{arm.Name, t.ID}] = decided
		}
	}
	return nil
}

func (e *Executor) decideNetwork(ctx context.Context, arm *experiment.Arm, t *task.Task) (network, error) {
	asked := t.Settings.AgentNetwork
	if e.prepared.Network != "" {
		asked = task.AgentNetwork{Kind: e.prepared.Network, Required: true}
	}
	if asked.Kind == sandbox.NetworkHost || asked.Kind == "" {
		return network{kind: sandbox.NetworkHost}, nil
	}
	why := workspace.CannotEnclose(ctx, e.prepared.Isolation, t)
	for _, id := range []string{arm.Agent, arm.Lead} {
		if why == nil && id != "" {
			why = e.canWorkIn(asked.Kind, id, arm)
		}
	}
	switch {
	case why == nil:
		return network{kind: asked.Kind}, nil
	case asked.Required:
		return network{}, fmt.Errorf("arm %s, task %s: network %s cannot be had here: %w", arm.Name, t.ID, asked.Kind, why)
	}
	return network{kind: sandbox.NetworkHost, instead: why.Error()}, nil
}

// canWorkIn returns why an agent cannot work in a network of its own; nil if it can.
func (e *Executor) canWorkIn(kind, id string, arm *experiment.Arm) error {
	chosen, err := e.machine.Registry.Get(id)
	if err != nil {
		return err
	}
	installation, model := e.machine.installation(id), arm.Model
	if id != arm.Agent {
		model = arm.LeadModel
	}
	return agent.CheckNetwork(chosen, agent.Config{
		Installation: &installation,
		Isolation:    sandbox.Isolation{Kind: sandbox.IsolationBwrap},
		Network:      kind,
		Environ:      e.machine.Host.Environ,
		Model:        model,
		ModelURL:     arm.ModelURL,
		Auth:         arm.Auth,
		Gateway:      e.gatewayOf(experiment.Cell{}),
	})
}

// NetworkFallbacks returns why agents have the network of the machine where their task prefers
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

// networkOf is what the agents of an arm reach in a task.
func (e *Executor) networkOf(arm *experiment.Arm, t *task.Task) string {
	return e.networks[networkKey{arm.Name, t.ID}].kind
}

// judgeNetwork is what the judge reaches: its model and nothing else, where that is what the agent
// had.
func (a *attempt) judgeNetwork() string {
	if a.networkOf(a.arm, a.task) == sandbox.NetworkHost || a.canWorkIn(sandbox.NetworkModel, a.prepared.Judge.Agent,
		&experiment.Arm{ModelURL: a.prepared.Judge.ModelURL}) != nil {
		return sandbox.NetworkHost
	}
	return sandbox.NetworkModel
}

// doors are what answers the agent in a network of its own, beside its model.
func (a *attempt) doors() []agent.Door {
	port, serve := a.space.ServiceDoor()
	if port == 0 {
		return nil
	}
	return []agent.Door{{Port: port, Serve: serve}}
}
