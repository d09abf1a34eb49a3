package local

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/mcpserve"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// agentLane is the lane of the agent in a supervised session.
const agentLane = "agent"

// supervise lets a lead hand the task to the agent. Both work in the same directory: the pair is
// measured.
func (a *attempt) supervise(ctx context.Context) bool {
	keys := mcpserve.NewKeyring(2)
	a.redact = a.redact.With(keys.Secrets())
	writer, err := a.openAgentTrace()
	if err != nil {
		return a.fail(ctx, ledger.ErrorInternal, err)
	}
	a.record.AgentTracePath, a.record.SupervisorTracePath = a.artefact(agentTrace), a.artefact(agentTrace)
	base := a.teamConfig()
	a.noteNetwork(base)
	a.noteGateway(base)
	supervisor, err := a.newSupervisor(base, keys, writer)
	var result harness.Result
	if err == nil {
		a.calls, err = a.openCalls(agentTrace)
	}
	if err == nil {
		result, err = supervisor.Run(ctx, a.task.Prompt)
	}
	a.keepCalls()
	if closeErr := writer.Close(); err == nil {
		err = closeErr
	}
	if _, worked := outcomes[result.Reason]; err != nil && !worked {
		return a.fail(ctx, ledger.ErrorSetup, err)
	}
	a.settleSession(result)
	end := ending{reason: outcomeOf(result), err: cmp.Or(err, sessionError(result))}
	for _, member := range result.Participants {
		end.turns += member.Turns
	}
	return a.settleTreatment(ctx, a.agentEnded(ctx, end, nil))
}

// teamConfig is what lead and agent have in common.
func (a *attempt) teamConfig() agent.Config {
	base := a.placeConfig(a.space.Agent(), a.arm.Agent)
	// Lead and agent may be different programs. They are looked up as before, even if the sandbox
	// shows them at another path than the search path names.
	base.Installation, base.Environ = nil, a.machine.Host.Environ
	base.Auth = a.arm.Auth
	base.ModelURL = modelURL(&a.prepared.Setup, a.cell.ModelURL(a.arm.ModelURL))
	base.Context = a.arm.ContextFor(a.task) // of the agent: a lead reads nothing of the work
	return base
}

// newSupervisor returns the session of lead and agent.
func (a *attempt) newSupervisor(base agent.Config, keys mcpserve.Keyring, writer *trace.Writer,
) (*harness.Session, error) {
	place := a.space.Agent()
	servers, err := a.serversOf(place.Dir)
	if err != nil {
		return nil, err
	}
	chosen, err := a.machine.Registry.Get(a.arm.Agent)
	if err != nil {
		return nil, err
	}
	given, err := a.profile(place.Dir)
	if err != nil {
		return nil, err
	}
	return harness.NewSupervisor(harness.SupervisorConfig{
		SupervisorCwd: place.Dir,
		AgentCwd:      place.Dir,
		AgentProfile:  a.arm.Profile,
		Supervisor:    harness.AgentConfig{Agent: a.arm.Lead, Model: a.arm.LeadModel},
		Agent: harness.AgentConfig{
			Agent:    a.arm.Agent,
			Model:    a.arm.Model,
			Tools:    a.arm.AllowedTools,
			MaxTurns: a.turns(given, chosen.Info()),
			Amend:    a.arm.Prompt,
			// the servers of the task and of the arm are for the agent that works on it
			MCPServers:  servers,
			Settings:    a.arm.Settings,
			Effort:      a.arm.Effort,
			Temperature: a.arm.Temperature,
		},
		// The lead may read the work but not change it: the work is the agent's.
		ReadOnlySandbox: base.Isolation.Kind == sandbox.IsolationBwrap,
		NewAgent:        a.query,
		Redactor:        a.redact,
		Options: harness.Options{
			Trace:     writer,
			HomeDir:   place.Home,
			Base:      base,
			Connect:   keys.Connect(mcpserve.Config{}),
			TaskAmend: a.task.SupervisorPrompt,
			Limits: harness.Limits{
				Timeout: a.agentTimeout(a.task.Settings.Timeouts.Agent), CostUSD: a.prepared.CellBudget.USD,
				Tokens: a.prepared.CellBudget.Tokens,
			},
		},
	})
}

func (a *attempt) query(cfg harness.AgentConfig) (agent.Agent, error) {
	return a.machine.Registry.Get(cfg.Agent)
}

// settleSession reads the agent's last message and the total usage from the trace, and the usage of
// each participant from the result.
func (a *attempt) settleSession(result harness.Result) {
	a.record.Outcome = string(outcomeOf(result))
	sum, _, err := a.readUsage(agentTrace, func(e *session.EnrichedEvent) {
		if e.Lane == agentLane && e.Kind == session.KindMessage && e.Role == "assistant" && e.Text != "" {
			a.answer = e.Text
			a.record.Submission = strings.Clone(a.kept(e.Text))
		}
	})
	if err != nil {
		return // the trace cannot be read, so the cost stays unknown
	}
	a.spend(sum)
	breakdown := ledger.CostBreakdown{}
	for _, member := range result.Participants {
		cost := 0.0
		if member.CostUSD != nil {
			cost = *member.CostUSD
		}
		if member.Name == agentLane {
			breakdown.Agent, a.record.Turns = cost, member.Turns
		} else {
			breakdown.Supervisor += cost
		}
	}
	if sum.CostUSD != nil {
		a.record.CostBreakdown = &breakdown
	}
}

// outcomes maps how the session with its lead ended to the agent's outcome.
var outcomes = map[string]session.Outcome{
	harness.ReasonConcluded:   session.OutcomeSuccess, // the lead's opinion is not the grade
	harness.ReasonAuth:        session.OutcomeAuth,
	harness.ReasonProvider:    session.OutcomeProvider,
	harness.ReasonError:       session.OutcomeError,
	harness.ReasonTimeout:     session.OutcomeTimeout,
	harness.ReasonBudget:      session.OutcomeBudget,
	harness.ReasonMaxTurns:    session.OutcomeMaxTurns,
	harness.ReasonInterrupted: session.OutcomeCancelled,
}

func outcomeOf(result harness.Result) session.Outcome {
	return cmp.Or(outcomes[result.Reason], session.OutcomeError)
}

func sessionError(result harness.Result) error {
	if result.Reason == harness.ReasonConcluded {
		return nil
	}
	return errors.New(cmp.Or(result.Summary, "the session ended without a conclusion: "+result.Reason))
}
