package harness

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/trace"
)

// becameIdle is called when a member has ended a round, or has found nothing to do. The lock must
// be held.
func (l *loop) becameIdle(r *runner) {
	l.checkOwed(r.member, false)
	if l.hub.running == 0 {
		l.wakeLead() // it may be waiting for more to read
	}
	l.checkQuiet()
}

// checkOwed deals with the asks that a member has been given and not answered. Those not reminded
// of yet are reminded of, all in one message; those that it left open after the reminder end
// without an answer, unless it answered something in its last round: then it is reminded again. A
// member that has something to read has not finished its part, and gets that first. A member that
// waits for answers itself is left alone, because it was asked to wait, unless force says that
// nobody else will ever act. The lock must be held.
func (l *loop) checkOwed(m *member, force bool) {
	if m.gone != "" || l.hub.stopped || len(m.queue) > 0 || m.asking > 0 && !force {
		return
	}
	var due, silent []*ask
	for _, a := range m.owed {
		switch {
		case !a.delivered || a.reminded && !a.reminderSeen:
		case !a.reminded || m.answered:
			due = append(due, a)
		default:
			silent = append(silent, a)
		}
	}
	for _, a := range silent {
		l.hub.cancel(a, cancelSilent, m.name+" did not answer, even after a reminder")
	}
	if len(due) > 0 {
		l.remind(m, due)
	}
}

func (l *loop) remind(m *member, due []*ask) {
	var text strings.Builder
	var ids []int64
	for _, a := range due {
		fmt.Fprintf(&text, "You have an unanswered ask from %s (askId=%d). ", a.asker.name, a.id)
		ids = append(ids, a.id)
	}
	text.WriteString("Call Answer with that askId now; otherwise the asker gets no answer.")
	message := l.hub.post(&Message{
		Kind:    KindSynthetic,
		From:    OrchestratorName,
		To:      m.name,
		Text:    text.String(),
		Reminds: ids,
	})
	l.hub.commit(reminderEvent{
		Type:   trace.TypeReminder,
		Agent:  m.name,
		ID:     message.ID,
		AskIDs: ids,
	})
}

// checkQuiet notices that nobody runs and nothing is queued. Members that wait for each other in a
// circle are reminded; then the lead is nudged, once; then the session ends. The lock must be held.
func (l *loop) checkQuiet() {
	h := l.hub
	if h.stopped || h.running > 0 || h.state.queued > 0 {
		return
	}
	for _, m := range h.state.order {
		l.checkOwed(m, true)
	}
	if h.state.queued > 0 {
		return
	}
	if h.state.nudged || h.state.mode == ModeJudge {
		h.commit(quiescenceEvent{Type: typeQuiescence})
		l.stopLocked(ReasonQuiescent, nil)
		return
	}
	nudge := h.post(&Message{
		Kind: KindSynthetic,
		From: OrchestratorName,
		To:   h.state.lead.name,
		Text: nudgeText(h.state.mode),
	})
	h.commit(quiescenceEvent{Type: typeQuiescence, Message: nudge.ID})
}

func nudgeText(mode Mode) string {
	tool := toolConclude
	if mode == ModeDiscuss {
		tool = "Adjourn or Recess"
	}
	return fmt.Sprintf("Nobody is working and nothing is on its way to you. Ask somebody something, or end the "+
		"session with %s. If you do neither, it ends without a conclusion.", tool)
}
