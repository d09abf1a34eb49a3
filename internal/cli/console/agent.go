package console

import (
	"strings"

	"github.com/fit-eval/fit/internal/agent"
)

// AgentID is a flag for an agent: the name of one that is registered, or a command or an address
// behind one of the prefixes that stand for any agent.
type AgentID struct {
	Value    string
	Registry *agent.Registry
}

// Set implements pflag.Value.
func (a *AgentID) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if _, err := a.Registry.Get(text); err != nil {
		return err
	}
	a.Value = text
	return nil
}

func (a *AgentID) String() string {
	if a == nil {
		return ""
	}
	return a.Value
}

// Type implements pflag.Value. The help does not list the agents: fit agents list does.
func (*AgentID) Type() string { return "agent" }
