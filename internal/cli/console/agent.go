package console

import (
	"strings"

	"github.com/fit-eval/fit/agent"
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

// Type implements pflag.Value.
func (a *AgentID) Type() string {
	if a.Registry == nil {
		return "agent"
	}
	return strings.Join(a.Registry.IDs(), "|")
}
