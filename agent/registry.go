package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fit-eval/fit/session"
)

// Registry is the one list of agents. Its order decides which agent is used when nobody says.
type Registry struct{ agents []Agent }

// NewRegistry returns a registry of agents in order of preference.
func NewRegistry(agents ...Agent) *Registry { return &Registry{agents: agents} }

// All returns the agents in order.
func (r *Registry) All() []Agent { return r.agents }

// IDs returns the ids in order.
func (r *Registry) IDs() []string {
	ids := make([]string, len(r.agents))
	for i, a := range r.agents {
		ids[i] = string(a.Info().ID)
	}
	return ids
}

// Examples returns a number of ids for the examples in help: the first agents in order, over again
// where there are fewer.
func (r *Registry) Examples(n int) []any {
	ids := make([]any, n)
	for i := range ids {
		ids[i] = "AGENT"
		if len(r.agents) > 0 {
			ids[i] = r.agents[i%len(r.agents)].Info().ID
		}
	}
	return ids
}

// Get returns the agent of an id.
func (r *Registry) Get(id string) (Agent, error) {
	for _, a := range r.agents {
		if string(a.Info().ID) == id {
			return a, nil
		}
	}
	return nil, fmt.Errorf("unknown agent %q; known are %s", id, strings.Join(r.IDs(), ", "))
}

// First returns the first agent that is found on the host.
func (r *Registry) First(ctx context.Context, host Host) (Agent, Installation, error) {
	for _, a := range r.agents {
		installation, err := a.Probe(ctx, host)
		var notFound *NotFoundError
		switch {
		case err == nil:
			return a, installation, nil
		case errors.As(err, &notFound):
			continue
		default:
			return nil, Installation{}, err
		}
	}
	return nil, Installation{}, errors.New("no agent is installed; see fit doctor")
}

// Dialects returns the dialects of all agents in order, each name once.
func (r *Registry) Dialects() session.Dialects {
	var all session.Dialects
	for _, a := range r.agents {
		for _, d := range a.Dialects() {
			if _, known := all.Named(d.Name); !known {
				all = append(all, d)
			}
		}
	}
	return all
}

// Credentials returns the values of all agents' credential variables in an environment, by name. It
// reads no file.
func (r *Registry) Credentials(environ []string) map[string]string {
	credentials := map[string]string{}
	for _, a := range r.agents {
		for _, name := range a.Info().Credentials {
			if value := Getenv(environ, name); value != "" {
				credentials[name] = value
			}
		}
	}
	return credentials
}

// Secrets returns the credentials of an environment, and what is secret in the logins that the
// agents' programs keep, by name.
func (r *Registry) Secrets(environ []string) map[string]string {
	secrets := r.Credentials(environ)
	for _, a := range r.agents {
		if keeper, ok := a.(LoginKeeper); ok {
			prefix := strings.ToUpper(strings.ReplaceAll(string(a.Info().ID), "-", "_")) + "_LOGIN"
			loginSecrets(secrets, prefix, keeper.LoginFile(environ))
		}
	}
	return secrets
}
