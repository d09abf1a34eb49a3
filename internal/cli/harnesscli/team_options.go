package harnesscli

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/harness"
)

// teamOptions are the flags that the commands for teams share.
type teamOptions struct {
	task        taskOptions
	agent       agentOptions
	leadProfile string
	leadModel   string
	leadAgent   console.AgentID
	output      string
	home        string
	transport   console.Choice
	limits      limitOptions
	advisor     advisorOptions
	retries     console.Count
	keepGoing   bool
}

func (o *teamOptions) register(flags *pflag.FlagSet, registry *agent.Registry, mode harness.Mode) {
	o.task.register(flags)
	o.agent.register(flags, registry, mode.DefaultTurns(),
		"model turns in one round of any participant; 0 is unlimited")
	o.leadAgent.Registry = registry
	o.transport = console.Choice{Value: "stdio", Choices: []string{"stdio", "http"}}
	o.retries = console.Count{Value: 1}
	flags.StringVar(&o.leadProfile, "lead-profile", "", "profile of the lead: .claude/agents/NAME.md in its directory")
	flags.StringVar(&o.leadModel, "lead-model", "", "model of the lead (default: its profile's or its agent's own)")
	flags.Var(&o.leadAgent, "lead-agent", "agent that plays the lead (default: its profile's, or that of --agent)")
	flags.StringVar(&o.output, "output", "",
		"write the trace to this file and readable text to standard output; with it a session can be resumed after "+
			"a crash")
	flags.StringVar(&o.home, "session-home", "",
		"directory where the agents keep their conversations (default: a temporary one)")
	flags.Var(&o.transport, "tool-transport",
		"how agents reach the session's tools: through a program that they start, or at an address on this machine")
	flags.Var(&o.retries, "agent-retries", "number of retries of a failed round")
	flags.BoolVar(&o.keepGoing, "keep-going", false,
		"continue without a participant that has failed for good, instead of ending the session")
	flags.Bool("fail-fast", true, "the default, which earlier versions had to be told")
	_ = flags.MarkHidden("fail-fast") // the flag exists
	o.limits.register(flags)
	o.advisor.register(flags)
}

// lead is what the flags say of the lead.
func (o *teamOptions) lead() harness.AgentConfig {
	return harness.AgentConfig{
		Agent:    o.leadAgent.Value,
		Model:    strings.TrimSpace(o.leadModel),
		MaxTurns: o.agent.TurnsGiven(),
	}
}

// limitOptions bound a session, and each participant of it.
type limitOptions struct {
	timeout, participantTimeout console.Span
	turns, participantTurns     console.Count
	tokens, participantTokens   console.Count
	cost, participantCost       console.Dollars
	leadTurns                   console.Count
	askDeadline, idle           console.Span
}

func (o *limitOptions) register(flags *pflag.FlagSet) {
	o.timeout.Value, o.idle.Value = harness.DefaultTimeout, harness.DefaultIdleTimeout
	o.turns.Value = harness.DefaultTurns
	o.leadTurns = console.Count{Value: harness.DefaultLeadTurns, Min: 1}
	flags.Var(&o.timeout, "timeout", "end the session after this time, e.g. 45m")
	flags.Var(&o.turns, "session-max-turns", "end the session after this many turns in total; 0 is unlimited")
	flags.Var(&o.tokens, "max-tokens", "end the session after this many tokens in total")
	flags.Var(&o.cost, "max-cost-usd", "end the session when it has cost this much")
	flags.Var(&o.participantTimeout, "participant-timeout", "dismiss a participant that has worked this long")
	flags.Var(&o.participantTurns, "participant-max-turns", "dismiss a participant that has had this many turns")
	flags.Var(&o.participantTokens, "participant-max-tokens", "dismiss a participant that has used this many tokens")
	flags.Var(&o.participantCost, "participant-max-cost-usd", "dismiss a participant that has cost this much")
	flags.Var(&o.leadTurns, "max-lead-turns", "end the session when the lead has had this many turns")
	flags.Var(&o.idle, "idle-timeout", "idle timeout: abort a turn after this long without an event or tool call")
	flags.Var(&o.askDeadline, "ask-deadline", "timeout for an answer to an Ask")
}

func (o *limitOptions) apply(to *harness.Options) {
	to.Limits = harness.Limits{
		Timeout: o.timeout.Value,
		Turns:   o.turns.Value,
		Tokens:  int64(o.tokens.Value),
		CostUSD: o.cost.Value,
	}
	to.ParticipantLimits = harness.Limits{
		Timeout: o.participantTimeout.Value,
		Turns:   o.participantTurns.Value,
		Tokens:  int64(o.participantTokens.Value),
		CostUSD: o.participantCost.Value,
	}
	if o.turns.Value == 0 {
		to.Limits.Turns = -1
	}
	to.MaxLeadTurns, to.AskDeadline, to.IdleTimeout = o.leadTurns.Value, o.askDeadline.Value, o.idle.Value
}

// advisorOptions give participants a stronger model to ask.
type advisorOptions struct {
	model   string
	maxUses console.Count
}

func (o *advisorOptions) register(flags *pflag.FlagSet) {
	o.maxUses = console.Count{Value: harness.DefaultAdvisorUses, Min: 1}
	flags.StringVar(&o.model, "advisor-model", "", "offer participants the tool Advisor, which asks this model")
	flags.Var(&o.maxUses, "advisor-max-uses", "how often participants may use Advisor in total")
}

func (o *advisorOptions) config() (harness.AdvisorConfig, error) {
	model := strings.TrimSpace(o.model)
	if model == "" && o.maxUses.Given {
		return harness.AdvisorConfig{}, console.Usagef("--advisor-max-uses needs --advisor-model")
	}
	return harness.AdvisorConfig{Model: model, MaxUses: o.maxUses.Value}, nil
}
