package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// next begins a round with what is queued. The context is nil if there is no round to take; the
// member's goroutine then ends.
func (r *runner) next() (ctx context.Context, prompt string) {
	h := r.loop.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !r.ready() || !h.stopped && r.exhausted() {
		r.awake = false
		r.loop.becameIdle(r)
		return nil, ""
	}
	r.final, r.gathered = false, false
	batch := h.state.take(r.member)
	h.running++
	r.busy = true
	return r.begin(batch, false), inboxText(batch)
}

// ready reports whether the member can take a round now. The lock must be held.
func (r *runner) ready() bool {
	switch {
	case r.interrupted:
		return !r.loop.hub.stopped
	case r.member.gone != "" || len(r.member.queue) == 0:
		return false
	case r.loop.hub.stopped:
		return r.final
	default:
		return !r.shouldWait()
	}
}

// shouldWait reports whether the lead should wait a moment for more to read. It is woken when the
// window closes, or when nobody is left who could send more: nobody is in a round, and nobody has
// messages to read. The lock must be held.
func (r *runner) shouldWait() bool {
	h := r.loop.hub
	window := h.state.settings.BatchWindow
	switch {
	case r.member != h.state.lead || window <= 0:
		return false
	case h.running == 0 && h.state.queued == len(r.member.queue) || r.gathered:
		r.gathered = true // until the round begins, however often this is called
		if r.window != nil {
			r.window.Stop()
			r.window = nil
		}
		return false
	case r.window == nil:
		r.window = time.AfterFunc(window, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			if r.window != nil {
				r.window, r.gathered = nil, true
				r.wake()
			}
		})
	}
	return true
}

// begin records the start of a round and makes its context. The lock must be held.
func (r *runner) begin(batch []*Message, again bool) context.Context {
	h := r.loop.hub
	round := h.state.lastRound + 1
	h.commit(turnStartEvent{Type: trace.TypeTurnStart, Agent: r.member.name, Turn: round})
	h.commit(deliveryEvent{
		Type:       trace.TypeDelivery,
		To:         r.member.name,
		Turn:       round,
		IDs:        messageIDs(batch),
		Redelivery: again,
		batch:      batch,
	})
	r.prompted.Store(false)
	r.began = time.Now()
	ctx := r.roundContext(round)
	if h.stopped { // a last round after the conclusion
		r.interruptAfter(h.state.settings.FinalTurnGrace)
	}
	return ctx
}

// roundContext makes the context of a round. It has no parent: the code that ends the session
// interrupts every round itself. The lock must be held.
func (r *runner) roundContext(round int64) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	r.interrupt = cancel
	r.roundID = round
	r.startWatch()
	r.stopAbandon = context.AfterFunc(ctx, func() { r.abandonAfterGrace(round) })
	return ctx
}

// interruptAfter lets the round continue for a while after the conclusion. The lock must be held.
func (r *runner) interruptAfter(grace time.Duration) {
	interrupt := r.interrupt
	r.grace = time.AfterFunc(grace, func() { interrupt(errSessionConcluded) })
}

// end records how an attempt at a round ended. It reports whether the round must be retried.
func (r *runner) end(out outcome, attempt int) (again bool) {
	h := r.loop.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	round := r.member.round
	if round == nil { // finished without us, after we did not stop in time
		return false
	}
	if full := r.diskFull(out); full != nil {
		r.loop.stopLocked(ReasonDisk, full)
	}
	h.commit(r.roundEnd(round.id, out))
	if text := r.garbage.endRound(); text != "" {
		h.commit(noteEvent{Type: typeWarning, Agent: r.member.name, Text: text})
	}
	r.release()
	if out.kind == roundMaxTurns {
		r.loop.limited(limitEvent{
			Type:  typeLimit,
			Agent: r.member.name,
			Name:  "model_turns",
			Limit: float64(r.member.config.MaxTurns),
			Flag:  callTurnsFlag,
		})
	}
	switch {
	case h.stopped:
	case r.endWithoutBudget(out.result.Err):
	case out.kind == roundFailed && r.failed(out, round.id, attempt):
		return true
	case r.overBudget():
	}
	r.idle()
	return false
}

// abandonAfterGrace continues without the member if its agent does not stop although its round was
// interrupted.
func (r *runner) abandonAfterGrace(round int64) {
	grace := r.loop.hub.state.settings.StopGrace
	time.AfterFunc(grace, func() {
		h := r.loop.hub
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.stopped || r.member.round == nil || r.member.round.id != round {
			return
		}
		e := r.roundEnd(round, outcome{kind: roundAbandoned})
		e.Error = fmt.Sprintf("the agent did not stop within %s of being interrupted", grace)
		h.commit(e)
		r.release()
		r.member.abandoned = true
		if r.member == h.state.lead {
			r.loop.stopLocked(ReasonTimeout, fmt.Errorf("%s: %s", r.member.name, e.Error))
		} else {
			h.dismiss(r.member, "did not stop when its turn was interrupted")
		}
		r.idle()
	})
}

// release releases the round's context.
func (r *runner) release() {
	if r.stopAbandon != nil {
		r.stopAbandon()
	}
	if r.interrupt != nil {
		r.interrupt(nil)
		r.interrupt = nil
	}
	for _, timer := range []*time.Timer{r.grace, r.limit, r.idleTimer.Swap(nil)} {
		if timer != nil {
			timer.Stop()
		}
	}
}

// idle says that the member is between rounds.
func (r *runner) idle() {
	r.busy = false
	r.loop.hub.running--
	r.loop.becameIdle(r)
}

func (r *runner) roundEnd(round int64, out outcome) turnEndEvent {
	e := turnEndEvent{
		Type:      trace.TypeTurnEnd,
		Agent:     r.member.name,
		Turn:      round,
		Outcome:   out.kind,
		SessionID: r.loop.hub.clean(out.result.SessionID),
		Tokens:    out.result.Usage.TotalTokens,
		CostUSD:   out.result.Usage.CostUSD,
		Steps:     out.result.Turns,
	}
	// an agent that did not stop has no result
	if out.kind == roundDone { // an agent that shows no turns has taken one
		e.Steps = max(1, e.Steps)
	}
	if tokens, costUSD := r.unreported(); out.kind != roundDone && tokens > e.Tokens {
		e.Tokens, e.CostUSD = tokens, costUSD
	}
	if !r.began.IsZero() {
		e.TookMs = time.Since(r.began).Milliseconds()
	}
	if out.kind == roundFailed {
		e.Error = r.loop.hub.clean(out.reason().Error())
	}
	if e.SessionID == r.member.sessionID {
		e.SessionID = ""
	}
	r.cut.addTo(&e)
	return e
}

// failed decides what happens after a failed attempt: it returns true for another one. Otherwise
// the member, or the whole session, has failed.
func (r *runner) failed(out outcome, round int64, attempt int) (again bool) {
	h := r.loop.hub
	policy := h.state.settings.Errors
	reason := out.reason()
	again = attempt <= policy.Retries && out.result.Outcome != session.OutcomeAuth && h.trace.Err() == nil
	e := runnerErrorEvent{
		Type:    typeRunnerError,
		Agent:   r.member.name,
		Turn:    round,
		Attempt: attempt,
		Policy:  "fail",
		Error:   h.clean(reason.Error()),
	}
	if again {
		e.Policy = "retry"
	}
	h.commit(e)
	switch {
	case again:
		return true
	case r.member == h.state.lead, out.err != nil, !policy.KeepGoing:
		kind := ReasonError
		switch out.result.Outcome {
		case session.OutcomeAuth:
			kind = ReasonAuth
		case session.OutcomeProvider:
			kind = ReasonProvider
		}
		if errors.Is(reason, errIdle) {
			kind = ReasonTimeout
			r.loop.limited(limitEvent{
				Type:  typeLimit,
				Agent: r.member.name,
				Name:  "idle",
				Limit: h.state.settings.IdleTimeout.Seconds(),
				Flag:  idleFlag,
			})
		}
		r.loop.stopLocked(kind, fmt.Errorf("%s: %w", r.member.name, reason))
	default:
		h.dismiss(r.member, "failed: "+e.Error)
		r.loop.working.Go(r.closeSession)
	}
	return false
}

// retry waits a moment and begins the round again with the messages that are still relevant. The
// context is nil if there is nothing, or no time.
func (r *runner) retry() (context.Context, string) {
	h := r.loop.hub
	within(r.loop.stopped, h.state.settings.Errors.Backoff)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped || r.exhausted() {
		r.idle()
		return nil, ""
	}
	return r.again(failedDuring)
}

// again begins a round with the messages of the one before, except asks that have ended meanwhile.
// If first is set, the prompt begins with it and says what the agent had done. The lock must be
// held.
func (r *runner) again(first string) (context.Context, string) {
	var batch []*Message
	for _, m := range r.member.lastBatch {
		if m.Kind != KindAsk || r.loop.hub.state.asks[m.AskID] != nil {
			batch = append(batch, m)
		}
	}
	if len(batch) == 0 {
		r.idle()
		return nil, ""
	}
	ctx, prompt := r.begin(batch, true), inboxText(batch)
	if first != "" {
		prompt = r.withProgress(first, prompt)
	}
	return ctx, prompt
}

// withProgress adds to a prompt what happened before an interruption. The lock must be held.
func (r *runner) withProgress(first, prompt string) string {
	var now []*Message
	if r.member.round != nil {
		now = r.member.round.batch
	}
	note := r.loop.hub.clean(r.member.unsure.recall(first, now, r.cut.calls))
	return inboxText([]*Message{{Kind: KindSynthetic, From: OrchestratorName, Text: note}}) + "\n" + prompt
}

// remember adds to the first prompt after a crash what happened before it, unless the agent's own
// record is as good as ours.
func (r *runner) remember(conversation agent.Session, prompt string) string {
	if _, can := conversation.(continuer); can || !r.recall {
		return prompt
	}
	h := r.loop.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	first := interruptedAfter
	if r.member.round != nil && r.member.round.redelivery {
		first = interruptedDuring
	}
	return r.withProgress(first, prompt)
}

// continueRound continues the round that a crash interrupted.
func (r *runner) continueRound() {
	h := r.loop.hub
	h.mu.Lock()
	r.interrupted = false
	interrupted := r.member.round
	if interrupted == nil {
		h.mu.Unlock()
		return
	}
	r.busy = true // it is counted as running already
	if len(interrupted.batch) == 0 || h.stopped {
		h.commit(r.roundEnd(interrupted.id, outcome{kind: roundInterrupted}))
		r.idle()
		h.mu.Unlock()
		return
	}
	ctx := r.roundContext(interrupted.id)
	h.mu.Unlock()

	conversation, err := r.conversation(ctx)
	// an agent that cannot be started fails the same way there, where it is handled
	if _, can := conversation.(continuer); can || err != nil {
		r.round(ctx, inboxText(interrupted.batch))
		return
	}
	h.mu.Lock()
	h.commit(r.roundEnd(interrupted.id, outcome{kind: roundInterrupted}))
	r.release()
	if r.overBudget() { // the interrupted round may have used up the rest
		r.idle()
		h.mu.Unlock()
		return
	}
	ctx, prompt := r.again("") // the prompt itself recalls the rest
	h.mu.Unlock()
	if ctx != nil {
		r.round(ctx, prompt)
	}
}
