package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/inspectlog"
	"github.com/fit-eval/fit/internal/near"
	"github.com/fit-eval/fit/session"
)

// Registry is the one list of agents. Its order decides which agent is the default.
type Registry struct {
	agents  []Agent
	schemes []Scheme
}

// Scheme makes an agent from the text after a prefix, as in "acp:my-agent --stdio". The agent's id
// is the whole text, so that a record that names it is enough to find it again.
type Scheme struct {
	Prefix string // without the colon
	Usage  string // what may be written, for help and messages: "acp:COMMAND [ARGUMENT...]"
	// New starts nothing and does not look at the machine; its errors are about the text.
	New func(rest string) (Agent, error)
	// Dialects are the dialects of such agents that no agent of the list speaks.
	Dialects []session.Dialect
}

// NewRegistry returns a registry of agents in order of preference.
func NewRegistry(agents ...Agent) *Registry { return &Registry{agents: agents} }

// WithSchemes adds ways to name agents that are not in the list, and returns the registry.
func (r *Registry) WithSchemes(schemes ...Scheme) *Registry {
	r.schemes = append(r.schemes, schemes...)
	return r
}

// With returns a registry that has more agents, after those of this one.
func (r *Registry) With(agents ...Agent) *Registry {
	return &Registry{agents: slices.Concat(r.agents, agents), schemes: r.schemes}
}

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

// Examples returns a number of ids for the examples in help: the first agents in order, repeated if
// there are fewer.
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

// Get returns the agent with an id: one of the list, or one that a scheme makes from it.
func (r *Registry) Get(id string) (Agent, error) {
	for _, a := range r.agents {
		if string(a.Info().ID) == id {
			return a, nil
		}
	}
	prefix, rest, found := strings.Cut(id, ":")
	known := r.IDs()
	for _, scheme := range r.schemes {
		if found && scheme.Prefix == prefix {
			made, err := scheme.New(rest)
			if err != nil {
				return nil, fmt.Errorf("agent %q: %w; write %s", id, err, scheme.Usage)
			}
			return made, nil
		}
		known = append(known, scheme.Usage)
	}
	meant := near.Question(id, r.IDs())
	switch {
	case strings.Contains(id, "/"):
		meant = "; did you mean cmd:" + id + "?"
	case strings.Contains(id, ","):
		meant = "; name one, and compare several with --arm"
	}
	return nil, fmt.Errorf("unknown agent %q%s; known are %s", id, meant, strings.Join(known, ", "))
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

// Dialects returns the dialects of all agents in order, each name once, and those of the traces of
// other harnesses.
func (r *Registry) Dialects() session.Dialects {
	var all session.Dialects
	add := func(dialects []session.Dialect) {
		for _, d := range dialects {
			if _, known := all.Named(d.Name); !known {
				all = append(all, d)
			}
		}
	}
	for _, a := range r.agents {
		add(a.Dialects())
	}
	for _, scheme := range r.schemes {
		add(scheme.Dialects)
	}
	add([]session.Dialect{session.ATIF(), inspectlog.Dialect()})
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

// Secrets returns the credentials of an environment, and the secrets in the logins that the agents'
// programs keep, by name.
func (r *Registry) Secrets(environ []string) map[string]string {
	secrets := r.Credentials(environ)
	for _, a := range r.agents {
		if keeper, ok := a.(loginKeeper); ok {
			prefix := strings.ToUpper(strings.ReplaceAll(string(a.Info().ID), "-", "_")) + "_LOGIN"
			loginSecrets(secrets, prefix, keeper.LoginFile(environ))
		}
	}
	return secrets
}
