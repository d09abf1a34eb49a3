package local

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/session"
)

// Each case changes an attempt whose agent ended by itself after one turn, and names the row that
// decides; an empty name is an attempt that is graded.
func TestHowAnAttemptEnds(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	untested := map[string]bool{}
	for _, row := range missingData {
		untested[row.name] = true
	}
	for name, test := range map[string]struct {
		change func(f *facts)
		want   string
	}{
		"a success":                    {func(f *facts) { f.reason = session.OutcomeSuccess }, ""},
		"an agent that crashes itself": {func(*facts) {}, ""},
		"an agent that runs out of time": {
			func(f *facts) { f.reason = session.OutcomeTimeout }, "",
		},
		"a stop, whatever else happened": {
			func(f *facts) { f.stopped, f.start, f.budget = refused, refused, refused }, "the harness was stopped",
		},
		"a process that was stopped under the agent": {
			func(f *facts) { f.paused, f.reason = time.Minute, session.OutcomeTimeout },
			"the time ran out while this process was stopped",
		},
		"a process that was stopped, and the agent did not mind": {
			func(f *facts) { f.paused = time.Minute }, "",
		},
		"a budget that stopped the agent": {
			func(f *facts) { f.budget = refused }, "a budget above the attempt was used up",
		},
		"a budget that was used up at the very end": {
			func(f *facts) { f.budget, f.reason = refused, session.OutcomeSuccess }, "",
		},
		"a model without a price": {
			func(f *facts) { f.unpriced = refused }, "a model without a price, and dollars are limited",
		},
		"a model without a price that the agent may have chosen": {
			func(f *facts) { f.unpriced, f.forgeable = refused, true },
			"the agent asked for a model without a price, and dollars are limited",
		},
		"no credentials": {
			func(f *facts) { f.start = &agent.AuthError{} }, "the agent had no credentials to start with",
		},
		"an agent that goes on after a strict replay had no answer": {
			func(f *facts) { f.missed, f.reason = refused, session.OutcomeSuccess },
			"a strict replay had no answer: what the agent did then is not its own",
		},
		"a sandbox that cannot be made": {
			func(f *facts) { f.start = sandbox.ErrBroken }, "the sandbox broke at the start",
		},
		"an agent that cannot be run": {func(f *facts) { f.start = refused }, "the agent did not start"},
		"an error of the service that nobody else saw": {
			func(f *facts) { f.reason, f.forgeable = session.OutcomeProvider, true },
			"the agent says that the service failed, and only the agent",
		},
		"an error of the service that the gateway denies": {
			func(f *facts) { f.reason, f.forgeable, f.seen = session.OutcomeProvider, true, true }, "",
		},
		"an error of the service that the gateway saw": {
			func(f *facts) { f.reason, f.forgeable, f.seen, f.troubled = session.OutcomeProvider, true, true, true },
			"the service failed",
		},
		"an error of the service from an agent that runs no programs": {
			func(f *facts) { f.reason = session.OutcomeProvider }, "the service failed",
		},
		"a call that fit held back until the agent gave up": {
			func(f *facts) {
				f.reason, f.forgeable, f.seen, f.heldBack = session.OutcomeProvider, true, true, true
			},
			"the agent gave up on a call that the gateway held back",
		},
		"a time limit after calls were held back": {
			func(f *facts) {
				f.reason, f.forgeable, f.held, f.unanswered = session.OutcomeTimeout, true, time.Second, time.Hour
			},
			"the time ran out in a run whose calls were held back",
		},
		"refused credentials":   {func(f *facts) { f.reason = session.OutcomeAuth }, "the credentials were refused"},
		"a fault on purpose":    {func(f *facts) { f.reason, f.faults = session.OutcomeProvider, true }, ""},
		"a failure after fault": {func(f *facts) { f.troubled, f.faults = true, true }, ""},
		"a failure because of the service": {
			func(f *facts) { f.troubled = true }, "the agent failed because the service did",
		},
		"a failure because of the service, of which the agent says nothing": {
			func(f *facts) { f.reason, f.troubled = session.OutcomeNoResult, true }, "the agent failed because the service did",
		},
		"a reply that breaks off, and an agent that does not notice": {
			func(f *facts) { f.reason, f.unfinished = session.OutcomeSuccess, true },
			"the agent took half of a reply for all of it",
		},
		"a reply that breaks off on purpose": {
			func(f *facts) { f.reason, f.unfinished, f.faults = session.OutcomeSuccess, true, true }, "",
		},
		"a model that is gone": {
			func(f *facts) { f.lost = true }, "the agent failed because the service did",
		},
		"a model that is gone, or that the agent made up": {
			func(f *facts) { f.lost, f.forgeable = true, true }, "the agent failed, and the model is gone or never was",
		},
		"a sandbox that breaks": {
			func(f *facts) { f.err = sandbox.ErrBroken }, "the sandbox broke, or this machine failed otherwise",
		},
		"a machine without free descriptors": {
			func(f *facts) { f.err = syscall.EMFILE }, "the sandbox broke, or this machine failed otherwise",
		},
		"a sandbox that broke under one of a team": {
			func(f *facts) { f.reason, f.unstarted = session.OutcomeSuccess, refused },
			"the sandbox broke, or this machine failed otherwise",
		},
		"a container that breaks": {
			func(f *facts) { f.err, f.contained = sandbox.ErrBroken, true }, "the container broke under the agent",
		},
		"a service that does not answer": {
			func(f *facts) { f.reason, f.unanswered = session.OutcomeTimeout, time.Minute },
			"the time ran out while the service failed or kept the agent waiting",
		},
		"a service that only fails until the time is over": {
			func(f *facts) { f.reason, f.troubled, f.turns = session.OutcomeTimeout, true, 0 },
			"the time ran out before the service completed a turn",
		},
		"a service that fails at the end of the time": {
			func(f *facts) { f.reason, f.troubled = session.OutcomeTimeout, true },
			"the time ran out while the service failed or kept the agent waiting",
		},
		"an agent that was killed at work": {
			func(f *facts) { f.reason, f.err = session.OutcomeNoResult, agent.ErrKilled },
			"the agent was killed at work",
		},
		"an agent that was killed before its first turn": {
			func(f *facts) { f.reason, f.err, f.turns = session.OutcomeNoResult, agent.ErrKilled, 0 },
			"the agent was killed before its first turn",
		},
		"an agent that was killed while it started": {
			func(f *facts) { f.start, f.turns = fmt.Errorf("initialize: %w", agent.ErrKilled), 0 },
			"the agent was killed before its first turn",
		},
		"an agent that shows no turns, and was killed": {
			func(f *facts) {
				f.reason, f.err, f.turns, f.forgeable = session.OutcomeNoResult, agent.ErrKilled, 0, true
			},
			"the agent was killed at work",
		},
		"a service that does not answer, on purpose": {
			func(f *facts) { f.reason, f.unanswered, f.faults = session.OutcomeTimeout, time.Minute, true }, "",
		},
		"no turn":            {func(f *facts) { f.turns = 0 }, "the model completed no turn"},
		"no work of a model": {func(f *facts) { f.err = agent.ErrNoModelWork }, "the model completed no turn"},
		"no turn because the agent spoiled its model's reply": {
			func(f *facts) { f.turns, f.spoiled = 0, true }, "",
		},
	} {
		delete(untested, test.want)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &facts{ending: ending{reason: session.OutcomeError, turns: 1}}
			test.change(f)
			got := ""
			if m := f.decide(); m != nil {
				got = m.name
				if m.why(f) == nil {
					t.Error("it gives no reason")
				}
			}
			if got != test.want {
				t.Errorf("decided by %q, want %q", got, test.want)
			}
		})
	}
	for name := range untested {
		t.Errorf("no case is decided by the row %q", name)
	}
}

// TestWhatTheGatewayRelayedIsNotDenied: an agent that reports that its request was rejected is
// right, if the gateway saw that.
func TestWhatTheGatewayRelayedIsNotDenied(t *testing.T) {
	t.Parallel()
	for rejected, want := range map[bool]string{
		true:  "the provider rejected the agent's request: no",
		false: "the agent reported a provider error that the gateway cannot confirm: no",
	} {
		f := &facts{forgeable: true, seen: true, rejected: rejected}
		f.reason, f.err, f.turns = session.OutcomeProvider, errors.New("no"), 1
		if m := f.decide(); m != nil || f.err.Error() != want {
			t.Errorf("rejected %t: %v, %q", rejected, m, f.err)
		}
	}
}
