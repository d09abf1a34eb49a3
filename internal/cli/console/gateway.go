package console

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
)

// Gateway are the flags that say how model calls go through fit's gateway.
type Gateway struct {
	Choice
	DenyServerTools bool
	record          Choice
	replay          string
	replayMode      Choice
	faults          string
}

// Faults reads the plan of faults that was asked for; nil where there is none.
func (g *Gateway) Faults(con *Console) (*gateway.Faults, error) {
	if g.faults == "" {
		return nil, nil
	}
	faults, err := gateway.LoadFaults(con.Path(g.faults))
	if err != nil {
		return nil, Exit(ExitUsage, err)
	}
	return faults, nil
}

// FaultPlan returns the text of the plan of faults that was asked for; nil where there is none.
func (g *Gateway) FaultPlan(con *Console) ([]byte, error) {
	if g.faults == "" {
		return nil, nil
	}
	return os.ReadFile(con.Path(g.faults))
}

// Check refuses flags that contradict each other.
func (g *Gateway) Check() error {
	if g.faults != "" && g.Value == agent.GatewayOff {
		return Usagef("--faults needs the gateway, and --gateway is off")
	}
	if g.DenyServerTools && g.Value == agent.GatewayOff {
		return Usagef("--deny-server-tools needs the gateway, and --gateway is off")
	}
	if g.replay != "" && g.Value == agent.GatewayOff {
		return Usagef("--replay needs the gateway, and --gateway is off")
	}
	return nil
}

// Calls returns what is kept of model calls, and the run or file that answers them.
func (g *Gateway) Calls(con *Console) gateway.RecordConfig {
	cfg := gateway.RecordConfig{Mode: g.record.Value, ReplayMode: g.replayMode.Value}
	if g.replay != "" {
		cfg.Replay = con.Path(g.replay)
	}
	return cfg
}

// Register adds the flags.
func (g *Gateway) Register(flags *pflag.FlagSet) {
	g.Choice = Choice{Value: agent.GatewayOn, Choices: []string{agent.GatewayOn, agent.GatewayOff}}
	flags.Var(&g.Choice, "gateway",
		"send model calls through fit's own proxy, so that agents get a token and never the key; on covers all "+
			"agents that can be pointed at it")
	g.record = Choice{
		Value:   calls.RecordBodies,
		Choices: []string{calls.RecordBodies, calls.RecordMeta, calls.RecordOff},
	}
	flags.Var(&g.record, "record",
		"what to keep of model calls in a .calls file beside the trace: everything, everything but the bodies, or "+
			"nothing")
	flags.StringVar(&g.replay, "replay", "",
		"answer model calls from the record of this run or file instead of a model: offline and free")
	g.replayMode = Choice{Value: gateway.ReplayNearest, Choices: gateway.ReplayModes()}
	flags.Var(&g.replayMode, "replay-mode",
		"which recorded call answers: the best match, only one that is identical byte for byte, or the model "+
			"itself if none is identical (live)")
	flags.BoolVar(&g.DenyServerTools, "deny-server-tools", false,
		"remove tools that run at the model's vendor, such as web search, from every request")
	flags.StringVar(&g.faults, "faults", "",
		"make model calls fail on purpose, by this plan (YAML): 429, 5xx, cut streams, slow tokens, truncated "+
			"JSON, wrong usage; all arms get the same faults")
}
