package console

import (
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/agent"
)

// Gateway are the flags that say how model calls go through fit's gateway.
type Gateway struct {
	Choice
	DenyServerTools bool
}

// Check refuses flags that contradict each other.
func (g *Gateway) Check() error {
	if g.DenyServerTools && g.Value == agent.GatewayOff {
		return Usagef("--deny-server-tools needs the gateway, and --gateway is off")
	}
	return nil
}

// Register adds the flags.
func (g *Gateway) Register(flags *pflag.FlagSet) {
	g.Choice = Choice{Value: agent.GatewayOn, Choices: []string{agent.GatewayOn, agent.GatewayOff}}
	flags.Var(&g.Choice, "gateway",
		"whether model calls go through fit's own proxy, so that agents get a token and never the key; on is for all "+
			"agents that can be pointed at it")
	flags.BoolVar(&g.DenyServerTools, "deny-server-tools", false,
		"take the tools that run at the model's vendor, such as a search of the web, out of every request")
}
