package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/mcpserve"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/profile"
	"github.com/fit-eval/fit/trace"
)

// rehearsalScript is the model of a rehearsal: it says one word, and as a lead it hands the task to
// the agent first.
func rehearsalScript() scripted.Script {
	ready := scripted.Turn{Text: "ready"}
	use := func(tool, input string) scripted.Turn {
		return scripted.Turn{Calls: []scripted.Call{{
			MCP:   harness.ServerName + "/" + tool,
			Input: json.RawMessage(input),
		}}}
	}
	// An agent that keeps its tools back until they are searched for is recognised by its role.
	plays := func(role, tool string) scripted.Cond {
		return scripted.Cond{Any: []scripted.Cond{
			{Tool: harness.ServerName + "/" + tool},
			{Tool: "tool_search", Request: profile.Text(role)},
		}}
	}
	return scripted.Script{
		Scenarios: []scripted.Scenario{
			{Name: "lead", When: plays("supervisor", "Conclude"), Turns: []scripted.Turn{
				use("Ask", `{"question": "Are you ready?"}`), ready,
				use("Conclude", `{"verdict": "success", "summary": "ready"}`), ready,
			}},
			{Name: "agent", When: plays("supervised-agent", "Answer"), Turns: []scripted.Turn{
				use("Answer", `{"message": "ready"}`), ready,
			}},
		},
		Turns: []scripted.Turn{ready},
		End:   &ready,
		Aux:   &ready,
	}
}

// performWithLead starts the lead, who starts the agent, as in an attempt. A lead that makes no
// model call is refused. Where its calls pass no gateway, nobody can know, and nothing is started.
func (s *start) performWithLead(ctx context.Context) error {
	a := s.attempt
	lead, err := a.machine.Registry.Get(a.arm.Lead)
	if err != nil {
		return err
	}
	base := a.teamConfig()
	alone := base
	alone.Model = a.arm.LeadModel
	if agent.WithoutGateway(lead, alone) != "" {
		return nil
	}
	keys := mcpserve.NewKeyring(2)
	a.redact = a.redact.With(keys.Secrets())
	ctx, end, cancel := s.bounded(ctx)
	defer cancel()
	base.Gateway = endedAfterReply(base.Gateway, end)
	supervisor, err := a.newSupervisor(base, keys, trace.NewWriter(io.Discard, trace.Config{}))
	if err != nil {
		return &RefusedError{err}
	}
	if a.calls, err = a.openCalls(agentTrace); err != nil {
		return err
	}
	result, err := supervisor.Run(ctx, firstPrompt(a))
	err = errors.Join(err, a.calls.Close())
	if errors.As(err, new(*agent.CapabilityError)) {
		return &RefusedError{err}
	}
	if s.asked(false) {
		return nil
	}
	_, err = s.silent("the lead "+a.arm.Lead, lead, cmp.Or(context.Cause(ctx), err, sessionError(result)))
	return err
}

// bounded returns a context that ends when an agent has had enough time to make its first request,
// and the timer that ends it.
func (s *start) bounded(ctx context.Context) (context.Context, *time.Timer, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := min(rehearsalTimeout, s.attempt.agentTimeout(s.attempt.task.Settings.Timeouts.Agent))
	end := time.AfterFunc(limit, func() { cancel(fmt.Errorf("it was stopped after %s", limit)) })
	return ctx, end, func() { end.Stop(); cancel(nil) }
}

// asked reports whether the record has a model call of the agent, or else of its lead.
func (s *start) asked(byAgent bool) bool {
	record, err := calls.Open(s.calls)
	if err != nil {
		return false
	}
	defer record.Close()
	return slices.ContainsFunc(record.Calls(), func(call calls.Call) bool {
		return (call.Participant == agentLane) == byAgent
	})
}

// silent refuses an arm in which somebody starts and makes no model call. With a subscription,
// where the calls of the experiment itself pass no gateway, and of a program that shows no turns,
// nobody can know: then it returns why.
func (s *start) silent(who string, chosen agent.Agent, cause error) (unknown string, refused error) {
	why := fmt.Sprintf("%s made no model call in the rehearsal: %v", who, cause)
	setup := &s.real.prepared.Setup
	past := agent.WithoutGateway(chosen, agent.Config{
		Environ:  s.real.machine.Host.Environ,
		Auth:     s.declared.Auth,
		ModelURL: modelURL(setup, s.declared.ModelURL),
		Gateway:  agent.Gateway{Off: gatewayOff(setup)},
	})
	if past != "" || s.declared.Auth == agent.AuthSubscription ||
		chosen.Info().Capabilities.MaxTurns == agent.Unsupported {
		return why, nil
	}
	return "", &RefusedError{fmt.Errorf("%s; see how it starts with fit agents try %s", why, chosen.Info().ID)}
}
