package console

import (
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
)

// Agents are the flags that every command has that starts agents: which model they use, how they
// reach it, what holds them, and how long they may work.
type Agents struct {
	Model, ModelURL          string
	Auth, Context, Isolation Choice
	Network, WorkTracker     Choice
	MaxTurns, MaxTrace       Count
	Gateway                  Gateway
}

// AgentsHelp is what differs between commands in how they explain these flags, and in what they can
// do.
type AgentsHelp struct {
	Isolations                                   []string // the first is the default
	Model, ModelURL, Context, Isolation, Network string
	MaxTurns                                     string
}

// Register adds the flags. turns is the default of --max-turns.
func (a *Agents) Register(flags *pflag.FlagSet, turns int, help AgentsHelp) {
	a.Context.Choices = fit.Contexts
	a.MaxTurns = Count{Value: turns}
	flags.StringVar(&a.Model, "model", "", help.Model)
	flags.Var(&a.Context, "context", help.Context)
	flags.Var(&a.MaxTurns, "max-turns", help.MaxTurns)
	a.Isolation.Value = help.Isolations[0]
	a.RegisterModel(flags, help)
}

// RegisterModel adds only those that say how agents reach their models and what holds them.
func (a *Agents) RegisterModel(flags *pflag.FlagSet, help AgentsHelp) {
	a.Auth.Choices = []string{agent.AuthSubscription, agent.AuthAPIKey}
	a.Isolation.Choices, a.Network.Choices = help.Isolations, fit.Networks
	a.WorkTracker.Choices = []string{"github", "filesystem"}
	a.MaxTrace = Count{Value: agent.DefaultOutput >> 20, Min: 1}
	flags.StringVar(&a.ModelURL, "model-url", "", help.ModelURL)
	flags.Var(&a.MaxTrace, "max-trace-mb", "end an agent that prints more than this, all of which its trace keeps")
	flags.Var(&a.Auth, "auth", "which credentials to use if the agent accepts both")
	flags.Var(&a.Isolation, "isolation", help.Isolation)
	flags.Var(&a.Network, "network", help.Network)
	flags.Var(&a.WorkTracker, "work-tracker",
		"where agents keep track of work (also LIBHARNESS_WORK_TRACKER; default github)")
	a.Gateway.Register(flags)
}

// OutputLimit is how many bytes an agent may print.
func (a *Agents) OutputLimit() int64 { return int64(a.MaxTrace.Value) << 20 }

// TurnsGiven is a limit that somebody asked for, as the library wants it: it wins over profiles,
// and -1 is no limit. It is 0 where nobody asked: then profiles and the default decide.
func (a *Agents) TurnsGiven() int {
	switch {
	case !a.MaxTurns.Given:
		return 0
	case a.MaxTurns.Value == 0:
		return -1
	}
	return a.MaxTurns.Value
}
