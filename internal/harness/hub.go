package harness

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/trace"
)

// hub guards the state of a session. Every change goes through commit, which writes it to the trace
// first. It starts no goroutines; the loop does.
type hub struct {
	mu       sync.Mutex
	state    *state
	redactor *redact.Redactor
	trace    *trace.Writer
	commits  int // how many events were committed

	// refused is the terminal call whose refusal has reached the lead.
	refused *refusalEvent
	// running counts the members that are in a round or between two attempts at one.
	running int
	// stopped says that the session is coming to its end, whatever the reason; concluded, by a
	// terminal call, is part of the state.
	stopped bool
	// onConclude informs the loop of a terminal call, with the last message that was on the bus
	// before it. It is called with the lock held.
	onConclude func(lastMessage int64)
	// onTraceError informs the loop that the trace cannot be written.
	onTraceError func(error)
	ended        bool // the summary is committed; nothing comes after it

	lanes  sync.RWMutex // guards closed; held for reading while a line of a lane is written
	closed bool

	outbox  outbox
	advisor *advisor
}

// commit stages the line of an event and applies it. The lock must be held; the line is in the file
// only after flush.
func (h *hub) commit(e event) {
	if !h.ended {
		h.record(e)
	}
	h.commits++
	e.apply(h.state)
}

func (h *hub) record(e event) {
	line := encode(e)
	switch e.(type) {
	case messageEvent, turnStartEvent, deliveryEvent, turnEndEvent:
		// made of ids, names, and text that was cleaned when it came in
	default:
		line = h.redactor.JSON(line)
	}
	seq, _ := h.trace.Stage(trace.Orchestrator, line) // an error stays with the writer, and flush returns it
	if r, ok := e.(*replyEvent); ok {
		r.seq = seq
	}
}

// flush makes sure that everything committed so far is in the trace. It must be called, without the
// lock, before an effect leaves the process.
func (h *hub) flush() error {
	var err error
	if h.outbox.sender == nil {
		err = h.trace.Flush()
	} else {
		err = h.outbox.send(h.trace.Flush)
	}
	h.checkTrace(err)
	return err
}

// checkTrace ends the session when its trace cannot be written. The lock must not be held.
func (h *hub) checkTrace(err error) {
	if err != nil && h.onTraceError != nil {
		h.onTraceError(err)
	}
}

// emitLane writes a line of a member's lane; it writes none after the summary.
func (h *hub) emitLane(lane string, line []byte) {
	h.lanes.RLock()
	defer h.lanes.RUnlock()
	if !h.closed {
		_, err := h.trace.Emit(lane, line)
		h.checkTrace(err)
	}
}

// emitRedacted writes a line of the orchestrator that may hold text from outside.
func (h *hub) emitRedacted(value any) {
	h.lanes.RLock()
	defer h.lanes.RUnlock()
	if !h.closed {
		_, err := h.trace.EmitValue(trace.Orchestrator, value)
		h.checkTrace(err)
	}
}

// clean redacts text that enters the bus.
func (h *hub) clean(text string) string {
	return h.redactor.String(strings.ToValidUTF8(text, "\uFFFD"))
}

// post puts a message on the bus. The lock must be held and the receiver must exist.
func (h *hub) post(m *Message) *Message {
	m.ID = h.state.lastMessage + 1
	h.commit(messageEvent{Type: trace.TypeMessage, Message: m})
	for _, to := range h.state.receivers(m) {
		if to.wake != nil {
			to.wake()
		}
	}
	return m
}

// open registers an ask and puts it on the bus.
func (h *hub) open(from, to *member, question string, deadline time.Duration, call string) int64 {
	m := &Message{
		Kind:  KindAsk,
		From:  from.name,
		To:    to.name,
		AskID: h.state.lastAsk + 1,
		Text:  question,
		Call:  call,
	}
	if deadline > 0 {
		m.DeadlineMs = time.Now().Add(deadline).UnixMilli()
	}
	h.post(m)
	h.arm(h.state.asks[m.AskID])
	return m.AskID
}

// arm starts the timer of an ask that has a deadline.
func (h *hub) arm(a *ask) {
	if a == nil || a.message.DeadlineMs == 0 {
		return
	}
	id := a.id
	left := time.Until(time.UnixMilli(a.message.DeadlineMs))
	a.timer = time.AfterFunc(max(left, 0), func() { h.expire(id) })
}

func (h *hub) expire(id int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.state.asks[id]
	if a == nil || h.stopped {
		return
	}
	h.cancel(a, cancelDeadline, fmt.Sprintf("%s did not answer before the deadline of this question", a.addressee.name))
}

// cancel ends an ask without an answer: the asker learns why.
func (h *hub) cancel(a *ask, reason, why string) {
	queued := !a.delivered
	h.post(&Message{
		Kind:  KindAnswer,
		From:  OrchestratorName,
		To:    a.asker.name,
		AskID: a.id,
		Text:  "[no answer: " + why + "]",
	})
	h.noteDropped(a, queued)
	if reason == cancelSilent {
		h.commit(violationEvent{
			Type:  trace.TypeProtocolViolation,
			Agent: a.addressee.name,
			AskID: a.id,
			Mode:  h.state.mode.traits().violationTag,
		})
	}
	h.commit(cancelEvent{
		Type:      trace.TypeCancel,
		AskID:     a.id,
		Asker:     a.asker.name,
		Addressee: a.addressee.name,
		Reason:    reason,
	})
}

// noteDropped records that an ask ended before it reached its addressee, who will not see it any
// more.
func (h *hub) noteDropped(a *ask, queued bool) {
	if queued && a.addressee.gone == "" {
		h.commit(undeliveredEvent{
			Type:   typeUndelivered,
			To:     a.addressee.name,
			IDs:    []int64{a.message.ID},
			Reason: "the ask has ended",
		})
	}
}

// cancelAll cancels every open ask.
func (h *hub) cancelAll(reason, why string) {
	for _, id := range h.state.openAsks() {
		h.cancel(h.state.asks[id], reason, why)
	}
}

// dismiss removes a participant from the session. Members that wait for it are informed.
func (h *hub) dismiss(m *member, why string) {
	for _, id := range h.state.openAsks() {
		a := h.state.asks[id]
		switch m {
		case a.addressee:
			h.cancel(a, cancelGone, fmt.Sprintf("%s %s", m.name, why))
		case a.asker:
			h.cancel(a, cancelGone, fmt.Sprintf("%s, who asked, %s", m.name, why))
		}
	}
	left := messageIDs(m.queue)
	h.commit(goneEvent{Type: trace.TypeAgentEnd, Agent: m.name, Reason: why})
	if len(left) > 0 {
		h.commit(undeliveredEvent{
			Type:   typeUndelivered,
			To:     m.name,
			IDs:    left,
			Reason: m.name + " " + why,
		})
	}
}

func messageIDs(batch []*Message) []int64 {
	ids := make([]int64, len(batch))
	for i, m := range batch {
		ids[i] = m.ID
	}
	return ids
}

// present returns the names of the members that can be asked something, without the given one.
func (h *hub) present(without *member) []string {
	var names []string
	for _, m := range h.state.order {
		if m != without && m.gone == "" {
			names = append(names, m.name)
		}
	}
	return names
}
