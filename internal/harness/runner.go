package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// continuer is a session that can continue a round in the middle: an agent whose conversation
// survives a crash of this process as it was at that moment. Every prompt has an id; if the
// conversation has the prompt of that id already, it continues from there. Tool calls that the
// agent then repeats must carry the ids they had (Dispatcher.CallOnce). Other agents get the
// messages of the interrupted round again, marked as such.
type continuer interface {
	PromptOnce(ctx context.Context, id, prompt string) (agent.Result, error)
}

// runner runs the rounds of one member.
type runner struct {
	loop        *loop
	member      *member
	record      *recorder // nil without advisor
	interrupted bool      // by a crash, in the middle of a round
	cut         cutRound  // what had been consumed by then
	recall      bool      // the agent does not know of the crash yet; for the goroutine of its rounds

	// Guarded by the hub's lock.
	awake     bool                    // it has a goroutine
	busy      bool                    // in a round, or between two attempts at one
	interrupt context.CancelCauseFunc // ends the round that is running
	roundID   int64                   // of the round; the goroutine that is in it may read it without the lock
	began     time.Time               // the round
	grace     *time.Timer
	limit     *time.Timer // interrupts the round when the member's time is up
	window    *time.Timer // of the lead: runs while it waits for more to read
	gathered  bool        // the window has closed
	final     bool        // it may take one more round after the conclusion

	account *gateway.Account // pays for the member

	garbage garbage // what the agent prints that is not an event; for the goroutine that reads it

	stopAbandon func() bool // cancels giving up the member, once its agent stops

	// current is the session that runs, for the goroutine that reads its events, and knownID the id
	// of its conversation.
	current   atomic.Pointer[agent.Session]
	knownID   atomic.Value
	idleTimer atomic.Pointer[time.Timer] // interrupts a round in which nothing happens
	prompted  atomic.Bool                // the agent has been given the messages of the round

	// Guarded by mu.
	mu      sync.Mutex
	session agent.Session
	closing bool

	opened sync.Once
	id     session.AgentID
}

// The outcomes of rounds.
const (
	roundDone        = "done"
	roundMaxTurns    = "max_turns"
	roundFailed      = "failed"
	roundAborted     = "aborted"
	roundInterrupted = "interrupted" // by a crash of the harness
	roundAbandoned   = "abandoned"   // the agent did not stop
)

// outcome is the outcome of one prompt.
type outcome struct {
	result agent.Result
	err    error // nothing was run at all
	kind   string
}

// wake gives the member a goroutine if it can take a round and has none. The lock must be held.
func (r *runner) wake() {
	if !r.awake && r.ready() {
		r.awake = true
		r.loop.working.Go(r.work)
	}
}

// work takes rounds as long as there is something queued.
func (r *runner) work() {
	if r.interrupted {
		r.continueRound()
	}
	for {
		ctx, prompt := r.next()
		if ctx == nil {
			return
		}
		r.round(ctx, prompt)
	}
}

// round prompts the agent, again if need be, until the round is over.
func (r *runner) round(ctx context.Context, prompt string) { r.attempts(ctx, prompt, 1) }

// attempts takes the attempts at a round that are left, the first of which has the given number.
func (r *runner) attempts(ctx context.Context, prompt string, attempt int) {
	for ; ctx != nil; attempt++ {
		ctx, prompt = r.settle(r.prompt(ctx, prompt, attempt), attempt)
	}
}

// settle ends an attempt at a round. It returns the context and prompt of the next one; the context
// is nil if there is none.
func (r *runner) settle(out outcome, attempt int) (context.Context, string) {
	again := r.end(out, attempt)
	_ = r.loop.hub.flush() // an error stays with the writer, and the next prompt meets it
	if !again {
		return nil, ""
	}
	r.closeSession() // a failed agent starts again, with the same conversation if it can
	return r.retry()
}

// prompt hands the agent what is in its inbox. An agent that panics has failed, and so has one that
// calls runtime.Goexit: in that case no call returns, so the deferred function ends the round.
func (r *runner) prompt(ctx context.Context, prompt string, attempt int) (out outcome) {
	returned := false
	defer func() {
		if returned {
			return
		}
		broken := brokenBy(recover())
		out = r.broke(ctx, broken)
		if broken.exited {
			ctx, prompt := r.settle(out, attempt)
			r.attempts(ctx, prompt, attempt+1)
			r.work()
		}
	}()
	out = r.converse(ctx, prompt)
	returned = true
	return out
}

// broke returns the outcome of an agent whose code broke. The stack is for readers of the trace,
// not for the other members.
func (r *runner) broke(ctx context.Context, broken *brokenAgent) outcome {
	warning := r.loop.hub.clean(broken.Error() + "\n" + broken.stack)
	r.loop.note(noteEvent{Type: typeWarning, Agent: r.member.name, Text: warning})
	return r.classify(ctx, agent.Result{Outcome: session.OutcomeError, Err: broken}, nil)
}

// converse starts the agent if need be and gives it the prompt.
func (r *runner) converse(ctx context.Context, prompt string) outcome {
	if err := r.loop.hub.flush(); err != nil {
		return outcome{err: err, kind: roundFailed}
	}
	conversation, err := r.conversation(ctx)
	if err != nil {
		return r.classify(ctx, agent.Result{}, err)
	}
	if r.record != nil {
		r.record.prompt(prompt)
	}
	result, err := r.ask(ctx, conversation, prompt)
	if r.forgotten(err, result.Err) {
		if conversation, err = r.conversation(ctx); err != nil {
			return r.classify(ctx, agent.Result{}, err)
		}
		result, err = r.ask(ctx, conversation, prompt)
	}
	r.open(agent.Started{}) // an agent that printed nothing still has its line
	if result.Success && err == nil {
		r.recall = false
	}
	result.SessionID = cmp.Or(result.SessionID, conversation.ID())
	return r.classify(ctx, result, err)
}

// ask gives the agent a prompt.
func (r *runner) ask(ctx context.Context, conversation agent.Session, prompt string) (agent.Result, error) {
	r.prompted.Store(true)
	if continuer, ok := conversation.(continuer); ok {
		return continuer.PromptOnce(ctx, r.loop.hub.state.promptID(r.roundID), prompt)
	}
	return conversation.Prompt(ctx, r.remember(conversation, prompt))
}

// forgotten reports whether the agent has no record of the conversation that it was to resume: an
// agent may show the id of a conversation before it saves anything. A new conversation is begun
// then.
func (r *runner) forgotten(errs ...error) bool {
	cause := errors.Join(errs...)
	if !errors.Is(cause, agent.ErrNoConversation) || !r.resumes() {
		return false
	}
	r.closeSession()
	r.forgetConversation(cause)
	return true
}

// resumes reports whether the member has a conversation to resume.
func (r *runner) resumes() bool {
	h := r.loop.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	return r.member.sessionID != ""
}

// forgetConversation notes why a conversation cannot be resumed, and forgets its id.
func (r *runner) forgetConversation(cause error) {
	r.loop.note(noteEvent{
		Type:  typeWarning,
		Agent: r.member.name,
		Text:  r.loop.hub.clean("a new conversation is started: " + cause.Error()),
	})
	h := r.loop.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commit(conversationEvent{Type: typeConversation, Agent: r.member.name})
}

func (r *runner) classify(ctx context.Context, result agent.Result, err error) outcome {
	out := outcome{result: result, err: err}
	switch {
	case result.Success && err == nil:
		out.kind = roundDone
	case errors.Is(context.Cause(ctx), errIdle):
		out.kind, out.err, out.result.Err = roundFailed, nil, r.idleError()
	case ctx.Err() != nil:
		out.kind, out.err = roundAborted, nil
	case err != nil:
		out.kind = roundFailed
	case result.Outcome == session.OutcomeMaxTurns:
		out.kind = roundMaxTurns
	default:
		out.kind = roundFailed
	}
	return out
}

// reason returns what went wrong, in words.
func (o outcome) reason() error {
	switch {
	case o.err != nil:
		return o.err
	case o.result.Err != nil:
		return o.result.Err
	case o.result.Outcome != "":
		return fmt.Errorf("the agent ended with %s", o.result.Outcome)
	default:
		return errors.New("the agent ended without a result")
	}
}

// conversation returns the member's session, starting it if there is none.
func (r *runner) conversation(ctx context.Context) (agent.Session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session != nil {
		return r.session, nil
	}
	if r.closing || ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	config := r.member.config
	config.Dispatcher = r.loop.dispatcher
	played, err := r.loop.agentOf(config)
	if err != nil {
		return nil, err
	}
	r.id = played.Info().ID
	started, err := r.start(played, config, r.member.sessionID)
	// a conversation that was not saved cannot be resumed, but a new one can begin
	if err != nil && r.member.sessionID != "" {
		if anew, failed := r.start(played, config, ""); failed == nil {
			r.forgetConversation(err)
			started, err = anew, nil
		}
	}
	if err != nil {
		return nil, err
	}
	r.session = started
	r.current.Store(&started)
	if known := started.ID(); known != "" && known != r.member.sessionID {
		r.loop.hub.mu.Lock()
		r.loop.hub.commit(conversationEvent{
			Type: typeConversation, Agent: r.member.name,
			SessionID: r.loop.hub.clean(known),
		})
		r.loop.hub.mu.Unlock()
		return started, r.loop.hub.flush()
	}
	return started, nil
}

// start runs the agent.
func (r *runner) start(played agent.Agent, config AgentConfig, resume string) (agent.Session, error) {
	return r.loop.startAgent(r.loop.ctx, played, config, resume, watching{r.line, r.open})
}

func (r *runner) closeSession() {
	r.mu.Lock()
	old := r.session
	r.session = nil
	r.closing = r.closing || r.loop.ctx.Err() != nil
	r.mu.Unlock()
	if old != nil {
		_ = guard(func() { _ = old.Close() }) // its lane has what matters about its end
	}
}

// line takes one event of the agent.
func (r *runner) line(event []byte) {
	r.active()
	r.open(agent.Started{})
	r.identify()
	if r.record != nil {
		r.record.line(event)
	}
	r.loop.skills.watch(r.member.name, event)
	if r.garbage.keep(event) {
		r.loop.hub.emitLane(r.member.name, event)
	}
}

// identify records the id of the agent's conversation as soon as its stream has shown it: a crash
// in the first round must not lose the conversation.
func (r *runner) identify() {
	current := r.current.Load()
	if current == nil {
		return
	}
	id := (*current).ID()
	if known, _ := r.knownID.Load().(string); id == "" || id == known {
		return
	}
	r.knownID.Store(id)
	h := r.loop.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if id = h.clean(id); id != r.member.sessionID && !h.ended {
		h.commit(conversationEvent{Type: typeConversation, Agent: r.member.name, SessionID: id})
	}
}

// open writes the lines that open the member's lane, once.
func (r *runner) open(info agent.Started) {
	r.opened.Do(func() {
		config := r.member.config
		r.loop.hub.emitRedacted(agentStart(r.member.name, string(r.id), config.Model, info))
		for _, part := range []struct{ source, label, content string }{
			{"profile", config.AgentProfile, config.System.Profile},
			{"session_protocol", r.member.name, config.System.Protocol},
		} {
			if part.content != "" {
				r.loop.hub.emitRedacted(trace.SystemPrompt{
					Type:    trace.TypeSystemPrompt,
					Agent:   r.member.name,
					Source:  part.source,
					Label:   part.label,
					Content: part.content,
				})
			}
		}
	})
}
