package fit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
)

// Networks are the values of Wiring.Network.
var Networks = []string{sandbox.NetworkModel, sandbox.NetworkHost, sandbox.NetworkNone}

// closeNetwork leaves the agents of a session the network that was asked for. It comes after
// isolate. A network that is not available is an error: fit never substitutes another.
func (w Wiring) closeNetwork(ctx context.Context, base *agent.Config) error {
	asked := cmp.Or(w.Network, sandbox.NetworkHost)
	isolation := &base.Isolation
	switch {
	case !slices.Contains(Networks, asked):
		return &ConfigError{"Network", fmt.Errorf("it must be model, host or none, not %q", asked)}
	case asked == sandbox.NetworkHost:
		return nil
	case w.ToolServer.HTTP:
		return &ConfigError{"Network", fmt.Errorf(
			"%s blocks tool servers at an address; use the tool transport stdio", asked)}
	case isolation.Kind != sandbox.IsolationBwrap && cmp.Or(w.Isolation, isolation.Kind) == sandbox.IsolationNone:
		return &ConfigError{"Network", fmt.Errorf("%s needs isolation bwrap", asked)}
	case isolation.Kind != sandbox.IsolationBwrap:
		works := sandbox.DetectBwrap(ctx).Bwrap
		return fmt.Errorf("network %s needs isolation bwrap, which does not work here: %s (%s)", asked, works.Detail,
			works.Fix)
	}
	if err := sandbox.PrivateNetworkWorks(ctx); err != nil {
		return fmt.Errorf("network %s does not work here: %w; see fit doctor", asked, err)
	}
	isolation.Network, base.Network = false, asked
	return nil
}

// checkNetwork makes sure that an agent can work in the network of the session.
func checkNetwork(played agent.Agent, cfg agent.Config) error {
	err := agent.CheckNetwork(played, cfg)
	if _, ok := errors.AsType[*agent.NetworkError](err); ok {
		return &ConfigError{"Network", err}
	}
	return err
}

// networkNote says what the agents of a session reach.
func networkNote(kind string) string {
	switch kind {
	case sandbox.NetworkModel:
		return "agents reach their model and the session's tools, and nothing else"
	case sandbox.NetworkNone:
		return "programs that agents start reach nothing"
	}
	return "agents reach what this machine reaches"
}
