package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// ending describes how the session of an agent, or of an agent and its lead, ended.
type ending struct {
	reason  session.Outcome
	err     error // why it did not succeed
	aborted bool
	turns   int // that models completed
}

func (e ending) cause() error {
	if e.err == nil {
		return errors.New(string(e.reason))
	}
	return e.err
}

// facts are what is known about the end of an attempt's agents, from all who can tell.
type facts struct {
	ending
	stopped error // why the harness was stopped
	// paused is how long this process did not run while the agent worked.
	paused time.Duration
	start  error // why the agent could not be run
	// unstarted is why this machine did not start a process for one of the agents; contained says
	// that they work in a container.
	unstarted error
	contained bool

	// budget is the budget above the attempt that was used up, and budgetOf names it.
	budget   error
	budgetOf string
	// unpriced is a call that was refused because nobody knows what it costs.
	unpriced error
	// missed is a request that a strict replay had no answer to.
	missed error

	// forgeable says that the agent could have forged what it reported.
	forgeable bool
	// faults says that the service fails on purpose: how the agent handles that is measured.
	faults bool

	// What the gateway says: it has seen calls, the service failed the last one, it no longer has
	// the model, it rejected the last request, a reply was spoiled, or it did not answer for too
	// long at the end; unfinished says that it did not complete the last reply to an agent's work.
	seen, troubled, lost, rejected, spoiled, unfinished bool
	unanswered                                          time.Duration

	// held is how long the gateway held back calls, if that was long enough to matter, and heldBack
	// says that the last call never left it: both are fit's own doing.
	held     time.Duration
	heldBack bool
}

// blamesService reports whether the agent says that the model's service failed.
func (f *facts) blamesService() bool {
	return f.reason == session.OutcomeAuth || f.reason == session.OutcomeProvider
}

// broke returns how this machine failed the agents.
func (f *facts) broke() error {
	if errors.Is(f.err, sandbox.ErrBroken) || sandbox.MachineFailed(f.err) {
		return f.err
	}
	return f.unstarted
}

// starved reports whether the agent's time ran out because of the service.
func (f *facts) starved() bool {
	return f.reason == session.OutcomeTimeout && (f.troubled || f.unanswered > 0) && !f.faults
}

func (f *facts) starvation() error {
	if f.unanswered == 0 {
		return fmt.Errorf("the model's service failed the last call: %w", f.cause())
	}
	return fmt.Errorf("the model's service did not answer for %s: %w", f.unanswered.Round(time.Millisecond), f.cause())
}

func (f *facts) holding() error {
	return fmt.Errorf("rate limits of the model held back calls for %s: %w", f.held.Round(time.Millisecond), f.cause())
}

// weigh replaces the agent's own reason where others know better.
func (f *facts) weigh() {
	if f.faults && f.reason == session.OutcomeProvider {
		f.reason = session.OutcomeError
	}
	if f.blamesService() && f.forgeable && f.seen && !f.troubled && !f.lost && !f.heldBack {
		why := "the agent reported a provider error that the gateway cannot confirm"
		if f.rejected {
			why = "the provider rejected the agent's request"
		}
		f.err = fmt.Errorf("%s: %w", why, f.cause())
		f.reason = session.OutcomeError
	}
}

// refused reports whether a model may have been asked, and its service did not fail: what it
// refuses may depend on what the model would have answered.
func (f *facts) refused(watched bool) bool {
	return f.start == nil && (f.seen || !watched) && !f.troubled && !f.lost
}

// missing is a way to end that leaves no data.
type missing struct {
	name  string
	when  func(f *facts) bool
	class string // of the error
	why   func(f *facts) error
	// unverified says that the agent could have arranged it.
	unverified bool
}

// missingData separates missing data from an agent that did badly. The first row that applies
// counts; an attempt to which none applies is graded. An agent whose model never completed a turn
// has not been measured, whatever the reason: the agent could not influence it.
var missingData = []missing{
	{
		name:  "the harness was stopped",
		when:  func(f *facts) bool { return f.stopped != nil },
		class: ledger.ErrorInterrupted,
		why:   func(f *facts) error { return f.stopped },
	},
	{
		name:  "the time ran out while this process was stopped",
		when:  func(f *facts) bool { return f.paused > 0 && f.reason == session.OutcomeTimeout },
		class: ledger.ErrorInterrupted,
		why: func(f *facts) error {
			return fmt.Errorf("the agent's time ran out while fit itself was stopped for %s",
				f.paused.Round(time.Second))
		},
	},
	{
		name:  "a budget above the attempt was used up",
		when:  func(f *facts) bool { return f.budget != nil && f.reason != session.OutcomeSuccess },
		class: ledger.ErrorBudget,
		why:   func(f *facts) error { return fmt.Errorf("%w%s", f.budget, experiment.LargerBudget) },
	},
	{
		name:       "the agent asked for a model without a price, and dollars are limited",
		when:       func(f *facts) bool { return f.unpriced != nil && f.forgeable },
		class:      ledger.ErrorBudget,
		why:        func(f *facts) error { return f.unpriced },
		unverified: true, // it can ask for any model
	},
	{
		name:  "a model without a price, and dollars are limited",
		when:  func(f *facts) bool { return f.unpriced != nil },
		class: ledger.ErrorBudget,
		why:   func(f *facts) error { return f.unpriced },
	},
	{
		name:  "the agent had no credentials to start with",
		when:  func(f *facts) bool { return errors.As(f.start, new(*agent.AuthError)) },
		class: ledger.ErrorAuth,
		why:   func(f *facts) error { return f.start },
	},
	{
		name:  "the sandbox broke at the start",
		when:  func(f *facts) bool { return errors.Is(f.start, sandbox.ErrBroken) },
		class: ledger.ErrorSandbox,
		why:   func(f *facts) error { return f.start },
	},
	{
		name: "the agent was killed before its first turn",
		when: func(f *facts) bool {
			return f.turns == 0 && !f.forgeable && errors.Is(cmp.Or(f.start, f.err), agent.ErrKilled)
		},
		class: ledger.ErrorAgentKilled,
		why:   func(f *facts) error { return cmp.Or(f.start, f.err) },
	},
	{
		name:  "the agent did not start",
		when:  func(f *facts) bool { return f.start != nil },
		class: ledger.ErrorAgentStart,
		why:   func(f *facts) error { return f.start },
	},
	{
		name:  "a strict replay had no answer: what the agent did then is not its own",
		when:  func(f *facts) bool { return f.missed != nil },
		class: ledger.ErrorSetup,
		why:   func(f *facts) error { return fmt.Errorf("%w: %w", errNotRecorded, f.missed) },
	},
	{
		name: "the agent gave up on a call that the gateway held back",
		when: func(f *facts) bool {
			return f.heldBack && f.reason != session.OutcomeSuccess && f.reason != session.OutcomeTimeout
		},
		class: ledger.ErrorProvider,
		why:   (*facts).holding,
	},
	{
		name:  "the time ran out in a run whose calls were held back",
		when:  func(f *facts) bool { return f.held > 0 && f.reason == session.OutcomeTimeout },
		class: ledger.ErrorProvider,
		why:   (*facts).holding,
	},
	{
		name:       "the agent says that the service failed, and only the agent",
		when:       func(f *facts) bool { return f.blamesService() && !f.troubled && f.forgeable },
		class:      ledger.ErrorProvider,
		why:        (*facts).cause,
		unverified: true,
	},
	{
		name:  "the credentials were refused",
		when:  func(f *facts) bool { return f.reason == session.OutcomeAuth },
		class: ledger.ErrorAuth,
		why:   (*facts).cause,
	},
	{
		name:  "the service failed",
		when:  func(f *facts) bool { return f.reason == session.OutcomeProvider },
		class: ledger.ErrorProvider,
		why:   (*facts).cause,
	},
	{
		name: "the agent failed, and the model is gone or never was",
		when: func(f *facts) bool {
			return f.reason == session.OutcomeError && f.lost && f.forgeable && !f.faults
		},
		class:      ledger.ErrorProvider,
		why:        (*facts).cause,
		unverified: true, // it can ask for a model that does not exist
	},
	{
		name: "the agent failed because the service did",
		when: func(f *facts) bool {
			return (f.reason == session.OutcomeError || f.reason == session.OutcomeNoResult) &&
				(f.troubled || f.lost) && !f.faults
		},
		class: ledger.ErrorProvider,
		why:   (*facts).cause,
	},
	{
		name:  "the agent took half of a reply for all of it",
		when:  func(f *facts) bool { return f.reason == session.OutcomeSuccess && f.unfinished && !f.faults },
		class: ledger.ErrorProvider,
		why: func(*facts) error {
			return errors.New("the model's service did not complete its last reply, and the agent ended as if it had")
		},
		unverified: true, // its own commands may make calls
	},
	{
		name:       "the container broke under the agent",
		when:       func(f *facts) bool { return f.broke() != nil && f.contained && f.turns > 0 },
		class:      ledger.ErrorSandbox,
		why:        (*facts).broke,
		unverified: true, // its own commands can do that
	},
	{
		name:  "the sandbox broke, or this machine failed otherwise",
		when:  func(f *facts) bool { return f.broke() != nil },
		class: ledger.ErrorSandbox,
		why:   (*facts).broke,
	},
	{
		name:       "the agent was killed at work",
		when:       func(f *facts) bool { return errors.Is(f.err, agent.ErrKilled) && (f.turns > 0 || f.forgeable) },
		class:      ledger.ErrorAgentKilled,
		why:        func(f *facts) error { return f.err },
		unverified: true, // its own commands can do that
	},
	{
		name:  "the time ran out before the service completed a turn",
		when:  func(f *facts) bool { return f.starved() && f.turns == 0 },
		class: ledger.ErrorProvider,
		why:   (*facts).starvation,
	},
	{
		name:       "the time ran out while the service failed or kept the agent waiting",
		when:       (*facts).starved,
		class:      ledger.ErrorProvider,
		why:        (*facts).starvation,
		unverified: true, // an agent can make a slow request, or wait after an error
	},
	{
		name:  "the model completed no turn",
		when:  func(f *facts) bool { return (f.turns == 0 || errors.Is(f.err, agent.ErrNoModelWork)) && !f.spoiled },
		class: ledger.ErrorAgentStart,
		why:   func(f *facts) error { return fmt.Errorf("no turn of the model was completed: %w", f.cause()) },
	},
}

// asked are the classes of errors before the first turn that a model's reply may have caused.
var asked = []string{ledger.ErrorAgentStart, ledger.ErrorAgentKilled, ledger.ErrorProvider}

// decide returns the row that applies; nil for an attempt that is graded.
func (f *facts) decide() *missing {
	f.weigh()
	at := slices.IndexFunc(missingData, func(m missing) bool { return m.when(f) })
	if at < 0 {
		return nil
	}
	return &missingData[at]
}

// agentEnded records how the agents of the attempt ended, and reports whether it is graded.
func (a *attempt) agentEnded(ctx context.Context, end ending, start error) bool {
	f := a.facts(ctx, end, start)
	a.record.HeldMs = f.held.Milliseconds()
	failed, refused := a.failures()
	a.record.FailedCalls = failed
	if m := f.decide(); m != nil {
		a.record.Begun = a.opaque() && !errors.Is(start, sandbox.ErrBroken) ||
			slices.Contains(asked, m.class) && f.refused(a.record.Gateway == "on")
		a.record.FailedCalls += refused // it is asked again, by the next attempt
		if m.class == ledger.ErrorBudget {
			a.record.BudgetOf = f.budgetOf
		}
		if m.unverified {
			a.record.Unverified = 1
		}
		return a.fail(ctx, m.class, m.why(f))
	}
	if f.reason != session.OutcomeSuccess && a.record.AgentError == nil {
		a.record.AgentError = &ledger.AgentError{
			Message: a.kept(f.cause().Error()),
			Aborted: f.aborted,
		}
	}
	return true
}

// opaque reports whether only the agents of the attempt know how far their models have come.
func (a *attempt) opaque() bool {
	for _, id := range []string{a.arm.Agent, a.arm.Lead} {
		if chosen, err := a.machine.Registry.Get(id); id != "" && err == nil && chosen.Info().Opaque {
			return true
		}
	}
	return false
}

func (a *attempt) facts(ctx context.Context, end ending, start error) *facts {
	f := &facts{
		ending:     end,
		stopped:    context.Cause(ctx),
		start:      start,
		forgeable:  a.couldForge(end),
		faults:     a.prepared.Faults != nil,
		lost:       a.anySeat((*gateway.Seat).Lost),
		rejected:   a.anySeat((*gateway.Seat).Rejected),
		spoiled:    a.anySeat((*gateway.Seat).Spoiled),
		unfinished: a.anySeat((*gateway.Seat).Unfinished),
		unanswered: a.unanswered(),
		paused:     a.pauses.look(time.Now()),
		unstarted:  a.watched.failure(),
		contained:  a.space.Agent().Isolation.Container != nil,
		heldBack:   a.anySeat((*gateway.Seat).HeldBack),
		missed:     a.calls.Missed(),
	}
	if held := a.held(); held >= min(shortHold, a.agentTimeout(a.task.Settings.Timeouts.Agent)/10) {
		f.held = held
	}
	f.seen, f.troubled = a.seenByGateway()
	if empty := a.budgetError(); empty != nil {
		f.budgetOf = a.budgetOf(empty)
		if empty.Unpriced {
			f.unpriced = empty
		} else {
			f.budget = empty
		}
	}
	return f
}

// budgetOf names the budget that an error is about.
func (a *attempt) budgetOf(empty *gateway.BudgetError) string {
	if empty.Account == a.accounts.Whole() {
		return ledger.BudgetExperiment
	}
	return ledger.BudgetArm
}

// couldForge reports whether an agent could have forged the error that ended it. The output of an
// agent in its own process is trusted; but once its model has completed a turn, the commands it
// runs may print in its name. The built-in agent talks to the model itself.
func (a *attempt) couldForge(end ending) bool {
	own := a.machine.installation(a.arm.Agent).Path != "" ||
		a.arm.Lead != "" && a.machine.installation(a.arm.Lead).Path != ""
	return own && end.turns > 0
}

// seenByGateway reports whether the gateway has seen calls of the attempt's agents, and whether the
// service failed the last call of one of them.
func (a *attempt) seenByGateway() (seen, troubled bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, seat := range a.seats {
		seen = seen || seat.Wire().Count() > 0
		troubled = troubled || seat.Troubled()
	}
	return seen, troubled
}

// longSilence is more than a service that works lets its caller wait for the next sign of life.
const longSilence = 2 * time.Minute

// unanswered returns how long an agent waited at its end for a model that did not answer; zero
// unless it was long, or more than half of the agent's time.
func (a *attempt) unanswered() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var longest time.Duration
	for _, seat := range a.seats {
		longest = max(longest, seat.Unanswered())
	}
	if longest <= min(longSilence, a.agentTimeout(a.task.Settings.Timeouts.Agent)/2) {
		return 0
	}
	return longest
}

// shortHold is less than what makes a run end in another way.
const shortHold = time.Second

// held returns how long calls of the attempt's agents were held back by the gateway.
func (a *attempt) held() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var longest time.Duration
	for _, seat := range a.seats {
		longest = max(longest, seat.Held())
	}
	return longest
}

// failures adds up the calls of the attempt's agents that failed at the model's service.
func (a *attempt) failures() (failed, refused int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, seat := range a.seats {
		own, others := seat.Failures()
		failed, refused = failed+own, refused+others
	}
	return failed, refused
}

// anySeat reports whether something holds for one of the attempt's agents at the gateway.
func (a *attempt) anySeat(holds func(*gateway.Seat) bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.seats, holds)
}
