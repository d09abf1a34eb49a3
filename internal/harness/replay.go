package harness

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/trace"
)

// pastSession is a session as its trace records it.
type pastSession struct {
	start   startedEvent
	events  []event
	elapsed time.Duration
	ended   bool // the caller has ended it, and nobody has resumed it
}

// ErrNoSession is the trace of a session that has not begun.
var ErrNoSession = errors.New("it holds no session that can be resumed: there is no session_start with members")

// readPast reads the orchestrator's lines of a trace. It skips damaged lines and those of agents,
// whose effects on the session are in the orchestrator's lines.
func readPast(path string) (*pastSession, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &pastSession{}
	started := false
	var lastTs int64
	for line, err := range trace.NewReader(file).All() {
		if err != nil {
			return nil, err
		}
		if line.Problem != nil || line.Source != trace.Orchestrator {
			continue
		}
		kind, e := decodeEvent(line.Event, line.Seq)
		p.elapsed += elapsedBetween(lastTs, line.Ts, kind)
		lastTs = line.Ts
		if start, ok := e.(startedEvent); ok {
			p.begin(start)
			started = true
		}
		p.add(e)
	}
	if !started || len(p.start.Members) == 0 {
		return nil, ErrNoSession
	}
	return p, p.start.check()
}

// check refuses a start that no session has.
func (e startedEvent) check() error {
	if e.Format > trace.FormatVersion {
		return fmt.Errorf("it has format %d, and this fit knows %d: resume it with the fit that wrote it", e.Format,
			trace.FormatVersion)
	}
	if e.Members[0].Name != e.Lead {
		return fmt.Errorf("its session_start is damaged: the first member is %q and the lead %q", e.Members[0].Name,
			e.Lead)
	}
	return e.Resumed.check()
}

// add adds an event that is part of the state. Events written while the agents of an interrupted
// session were stopped are not.
func (p *pastSession) add(e event) {
	switch e.(type) {
	case nil:
		return
	case interruptedEvent:
		p.ended = true
	case resumedEvent:
		p.ended = false
	}
	if !p.ended {
		p.events = append(p.events, e)
	}
}

// begin forgets earlier sessions: a file may hold several, and only the last can be resumed. A
// discussion's first line is before its start.
func (p *pastSession) begin(start startedEvent) {
	var meta []event
	if n := len(p.events); n > 0 {
		if last, ok := p.events[n-1].(metaEvent); ok {
			meta = []event{last}
		}
	}
	for i := range start.Members { // those of earlier versions read nothing of their projects
		start.Members[i].Context = cmp.Or(start.Members[i].Context, agent.ContextNone)
	}
	*p = pastSession{start: start, events: meta}
}

// decodeEvent reads a line of the orchestrator. Lines that only inform, and lines of later
// versions, give no event.
func decodeEvent(data []byte, seq int64) (kind string, e event) {
	var head struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(data, &head) != nil {
		return "", nil
	}
	decode := eventTypes[head.Type]
	if decode == nil {
		return head.Type, nil
	}
	e = decode(data)
	if r, ok := e.(*replyEvent); ok {
		r.seq = seq
	}
	return head.Type, e
}

// eventTypes reads the events that change the state of a session, by their types.
var eventTypes = map[string]func([]byte) event{
	trace.TypeMeta:           decodeAs[metaEvent],
	trace.TypeSessionStart:   decodeAs[startedEvent],
	trace.TypeMessage:        decodeAs[messageEvent],
	trace.TypeTurnStart:      decodeAs[turnStartEvent],
	typeInterrupted:          decodeAs[interruptedEvent],
	trace.TypeResumed:        decodeAs[resumedEvent],
	trace.TypeDelivery:       decodeAs[deliveryEvent],
	trace.TypeTurnEnd:        decodeAs[turnEndEvent],
	trace.TypeAgentEnd:       decodeAs[goneEvent],
	typeConversation:         decodeAs[conversationEvent],
	typeRefusal:              decodeAs[refusalEvent],
	typeConclusion:           decodeAs[conclusionEvent],
	typeReply:                decodeAs[*replyEvent],
	typeRFC:                  decodeAs[rfcEvent],
	trace.TypeAdvisorConsult: decodeAs[advisorConsultEvent],
	typeAdvisorStart:         decodeAs[advisorStartEvent],
	typeQuiescence:           decodeAs[quiescenceEvent],
	trace.TypeSummary:        decodeAs[summaryEvent],
}

func decodeAs[E event](data []byte) event {
	var e E
	if json.Unmarshal(data, &e) != nil {
		return nil
	}
	return e
}
