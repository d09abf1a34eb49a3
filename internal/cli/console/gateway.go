package console

import (
	"errors"
	"strings"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
)

// Gateway are the flags that say how model calls go through fit's gateway.
type Gateway struct {
	policy                      gateway.Policy
	gateway, record, replayMode Choice
	faults                      string
}

// Policy returns what the flags say, and refuses flags that contradict each other.
func (g *Gateway) Policy(con *Console) (gateway.Policy, error) {
	policy := g.policy
	policy.Gateway, policy.Record, policy.ReplayMode = g.gateway.Value, g.record.Value, g.replayMode.Value
	if policy.Replay != "" {
		policy.Replay = con.Path(policy.Replay)
	}
	if g.faults != "" {
		var err error
		if policy.Faults, err = gateway.LoadFaults(con.Path(g.faults)); err != nil {
			return policy, Exit(ExitUsage, err)
		}
	}
	err := policy.Check()
	if option, ok := errors.AsType[*gateway.OptionError](err); ok {
		return policy, Usagef("%s %s", flagOf(option.Option), option.Reason)
	}
	return policy, err
}

// flagOf returns the flag that sets an option of a policy: --deny-server-tools for DenyServerTools.
func flagOf(option string) string {
	var name strings.Builder
	for i, r := range option {
		if unicode.IsUpper(r) && i > 0 {
			name.WriteByte('-')
		}
		name.WriteRune(unicode.ToLower(r))
	}
	return "--" + name.String()
}

// Register adds the flags.
func (g *Gateway) Register(flags *pflag.FlagSet) {
	g.gateway = Choice{Value: gateway.On, Choices: []string{gateway.On, gateway.Off}}
	flags.Var(&g.gateway, "gateway",
		"send model calls through fit's proxy, so that agents get a token and never the key; on covers all "+
			"agents that can be pointed at it")
	g.record = Choice{
		Value:   calls.RecordBodies,
		Choices: []string{calls.RecordBodies, calls.RecordMeta, calls.RecordOff},
	}
	flags.Var(&g.record, "record",
		"how much of each model call to record in the .calls file next to the trace: everything, all but the bodies, or "+
			"nothing")
	flags.StringVar(&g.policy.Replay, "replay", "",
		"answer model calls from the record of this run or file instead of a model: offline and free")
	g.replayMode = Choice{Value: gateway.ReplayNearest, Choices: gateway.ReplayModes()}
	flags.Var(&g.replayMode, "replay-mode",
		"how to match recorded calls: the best match, only one that is the same but for directories, ids and dates, "+
			"or the model itself if none is the same (live)")
	g.RegisterRequests(flags)
	flags.StringVar(&g.faults, "faults", "",
		"inject faults into model calls, as described in this YAML file: 429, 5xx, cut streams, slow tokens, truncated "+
			"JSON, wrong usage; all arms get the same faults")
}

// RegisterRequests adds the flags that change requests: a gateway that is started by hand has them,
// too.
func (g *Gateway) RegisterRequests(flags *pflag.FlagSet) {
	flags.BoolVar(&g.policy.DenyServerTools, "deny-server-tools", false,
		"remove tools that run at the model's vendor, such as web search, from every request")
}
