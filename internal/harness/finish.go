package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/trace"
)

// flushDeadline is how long replies may take to reach the thread at the end.
const flushDeadline = 30 * time.Second

// finish accounts for everything that is still open and writes the summary, which is the last line.
func (l *loop) finish(ctx context.Context) (Result, error) {
	if !resumable(l.reason) { // it can be resumed, with everything that is open
		l.closeOpenEnds()
	}
	flushErr := l.hub.flush()
	unsent := l.flushReplies(ctx)
	closeErr := l.disconnect()

	l.hub.lanes.Lock()
	l.hub.closed = true
	l.hub.lanes.Unlock()
	l.hub.mu.Lock()
	summary := l.summary()
	summary.Unsent = unsent
	l.hub.commit(summary)
	l.hub.ended = true
	result := summary.Result
	l.hub.mu.Unlock()
	flushErr = cmp.Or(flushErr, l.hub.flush())
	switch {
	case flushErr == nil && !resumable(l.reason):
		l.removeTempHome()
	case l.reason == ReasonTrace:
		flushErr = nil // it is the reason why the session ended
	}
	return result, errors.Join(l.err, flushErr, closeErr)
}

func (l *loop) removeTempHome() {
	if l.hub.state.settings.TempHome {
		_ = scratch.RemoveAll(l.hub.state.settings.HomeDir) // a leftover in the temporary directory does no harm
	}
}

// closeOpenEnds ends every ask, round and queue.
func (l *loop) closeOpenEnds() {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.state.conclusion; c != nil {
		h.cancelAll(cancelConcluded, concludedText(*c))
	} else {
		h.cancelAll(cancelStopped, l.endedText())
	}
	for _, m := range h.state.order {
		if m.round != nil {
			h.commit(turnEndEvent{
				Type:    trace.TypeTurnEnd,
				Agent:   m.name,
				Turn:    m.round.id,
				Outcome: roundAbandoned,
			})
			m.abandoned = true
		}
		if left := h.state.take(m); len(left) > 0 {
			h.commit(undeliveredEvent{
				Type:   typeUndelivered,
				To:     m.name,
				IDs:    messageIDs(left),
				Reason: "the session has ended",
			})
		}
	}
}

func (l *loop) flushReplies(ctx context.Context) []int64 {
	sender := l.hub.outbox.sender
	if sender == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushDeadline)
	defer cancel()
	return sender.Flush(ctx)
}

// summary says how the session ended. The lock must be held.
func (l *loop) summary() summaryEvent {
	s := l.hub.state
	e := summaryEvent{Type: trace.TypeSummary, Result: Result{
		Verdict:      s.mode.traits().failureVerdict,
		Turns:        s.usage.turns,
		Reason:       l.reason,
		Tokens:       s.usage.tokens,
		RFCs:         s.rfcs,
		CostUSD:      s.usage.cost(),
		Summary:      l.unconcluded(),
		LastActedSeq: -1,
	}}
	if c := s.conclusion; c != nil {
		e.Verdict, e.Summary, e.Outcome = c.Verdict, c.Summary, c.Outcome
		e.Trigger, e.Reason = c.Trigger, ReasonConcluded
		e.Success = c.Verdict == VerdictSuccess || c.Verdict == VerdictAdjourned
	}
	for _, m := range s.order {
		e.Participants = append(e.Participants, ParticipantResult{
			Name:      m.name,
			Turns:     m.usage.turns,
			Tokens:    m.usage.tokens,
			CostUSD:   m.usage.cost(),
			SessionID: m.sessionID,
			Gone:      m.gone,
			Abandoned: m.abandoned,
		})
	}
	if s.mode == ModeDiscuss {
		e.Replies, e.DiscussionID, e.LastActedSeq = s.replies[s.inherited:], s.discussionID, new(s.lastActed)
		e.Result.LastActedSeq = s.lastActed
		e.Resume = s.resumeContext()
	}
	return e
}

// unconcluded says why a session ended without a conclusion.
func (l *loop) unconcluded() string {
	switch l.reason {
	case ReasonQuiescent:
		if l.limit != "" {
			return "The lead did not conclude: " + l.limit + "."
		}
		return "The lead did not conclude, and nobody had anything left to do."
	case ReasonMaxTurns, ReasonTimeout, ReasonBudget:
		if l.limit == "" {
			return l.hub.clean(fmt.Sprint(l.err))
		}
		return strings.ToUpper(l.limit[:1]) + l.limit[1:] + " before the lead concluded."
	case ReasonInterrupted:
		return "The session was interrupted."
	default:
		if l.err != nil {
			return l.hub.clean(l.err.Error())
		}
		return ""
	}
}

// endedText tells those whose asks get no answer that the session has ended, and why.
func (l *loop) endedText() string {
	why := strings.TrimSuffix(l.unconcluded(), ".")
	if why == "" {
		return "the session has ended"
	}
	return "the session has ended (" + why + ")"
}

// cost is nil where it is not known.
func (s spending) cost() *float64 {
	if s.unknown {
		return nil
	}
	return new(s.costUSD)
}
