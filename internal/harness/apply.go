package harness

import (
	"slices"
	"strconv"
	"strings"
)

// The apply methods are the only place where a session's state changes. They do the same for a live
// event and for one that is read back, and ignore events that make no sense: a trace may have been
// damaged.

func (e startedEvent) apply(s *state) {
	s.settings = e.Settings
	s.startedMs = e.Started
	if r := e.Resumed; r != nil {
		s.lastAsk, s.lastRFC = r.AskIDCounter, r.RFCCounter
		s.ends = make([]askEnd, s.lastAsk+1)
		for i := range s.ends {
			s.ends[i] = askCancelled
		}
		s.replies = slices.Clone(r.Replies)
		s.inherited = len(s.replies)
		for name, id := range r.Sessions {
			if m := s.members[name]; m != nil {
				m.sessionID = id
			}
		}
	}
	s.enqueue(&Message{
		Kind: KindTask,
		From: OrchestratorName,
		To:   s.lead.name,
		Text: e.Task,
	})
}

func (e conversationEvent) apply(s *state) {
	if m := s.members[e.Agent]; m != nil {
		m.sessionID = e.SessionID
	}
}

func (e metaEvent) apply(s *state) { s.discussionID = e.DiscussionID }

func (e messageEvent) apply(s *state) {
	if e.Message == nil {
		return
	}
	s.lastMessage = max(s.lastMessage, e.ID)
	switch e.Kind {
	case KindAsk:
		s.openAsk(e.Message)
	case KindAnswer:
		s.lastAnswer = e.Message
		s.closeAsk(e.Message)
	case KindHuman:
		s.lastInbox = max(s.lastInbox, e.InboxSeq)
	case KindSynthetic:
		s.remind(e.Message)
	}
	if from := s.members[e.From]; from != nil {
		from.unsure.sent = append(from.unsure.sent, statementOf(e.Message))
	}
	if e.Call != "" {
		s.recordCall(e.Message)
	}
	s.enqueue(e.Message)
}

func (s *state) openAsk(m *Message) {
	asker, addressee := s.members[m.From], s.members[m.To]
	if asker == nil || addressee == nil || s.asks[m.AskID] != nil || m.AskID < 1 || m.AskID > s.lastAsk+1 {
		return
	}
	s.lastAsk = max(s.lastAsk, m.AskID)
	for int64(len(s.ends)) <= m.AskID {
		s.ends = append(s.ends, askOpen)
	}
	a := &ask{
		id:        m.AskID,
		asker:     asker,
		addressee: addressee,
		message:   m,
	}
	s.asks[a.id] = a
	addressee.owed = append(addressee.owed, a)
	asker.asking++
	s.nudged = false // something happens again
}

func (s *state) closeAsk(m *Message) {
	a := s.asks[m.AskID]
	if a == nil {
		return
	}
	delete(s.asks, a.id)
	a.addressee.owed = slices.DeleteFunc(a.addressee.owed, func(other *ask) bool { return other == a })
	a.asker.asking--
	s.ends[a.id] = askAnswered
	if m.From == OrchestratorName {
		s.ends[a.id] = askCancelled
	} else {
		a.addressee.answered = true
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	if !a.delivered {
		s.takeOnly(a.addressee, a.message.ID)
	}
}

func (s *state) remind(m *Message) {
	for _, id := range m.Reminds {
		if a := s.asks[id]; a != nil {
			a.reminded, a.reminder, a.reminderSeen = true, m.ID, false
		}
	}
}

func (s *state) recordCall(m *Message) {
	sender := s.members[m.From]
	if sender == nil {
		return
	}
	record := sender.record(m.Call)
	if record == nil {
		return
	}
	record.message = m
	switch m.Kind {
	case KindAsk:
		record.tool = toolAsk
		record.askIDs, record.asked = append(record.askIDs, m.AskID), append(record.asked, m.To)
	case KindAnswer:
		record.tool = toolAnswer
	default:
		record.tool = toolAnnounce
	}
}

// record returns the record of a call of the round that the member is in, making it if need be.
func (m *member) record(call string) *callRecord {
	if m.round == nil || call == "" {
		return nil
	}
	if m.round.calls == nil {
		m.round.calls = map[string]*callRecord{}
	}
	r := m.round.calls[call]
	if r == nil {
		r = &callRecord{}
		m.round.calls[call] = r
	}
	return r
}

func (e turnStartEvent) apply(s *state) {
	m := s.members[e.Agent]
	if m == nil {
		return
	}
	s.lastRound = max(s.lastRound, e.Turn)
	s.turns++
	m.turns++
	m.round, m.answered = &round{id: e.Turn}, false
	if m.settled {
		m.unsure, m.settled = passage{}, false
	}
}

func (e deliveryEvent) apply(s *state) {
	m := s.members[e.To]
	if m == nil || m.round == nil {
		return
	}
	m.round.redelivery = e.Redelivery
	if e.batch == nil {
		e.batch = s.replayBatch(m, e)
	}
	m.round.batch, m.lastBatch = e.batch, e.batch
	m.unsure.give(e.batch)
	for _, message := range e.batch {
		switch message.Kind {
		case KindAsk:
			if a := s.asks[message.AskID]; a != nil {
				a.delivered = true
			}
		case KindSynthetic:
			for _, id := range message.Reminds {
				if a := s.asks[id]; a != nil && a.reminder == message.ID {
					a.reminderSeen = true
				}
			}
		}
	}
}

// replayBatch finds the messages of a delivery again: in the queue, or, when they are delivered
// again, in the round before.
func (s *state) replayBatch(m *member, e deliveryEvent) []*Message {
	if !e.Redelivery {
		return s.takeOnly(m, e.IDs...)
	}
	return slices.DeleteFunc(slices.Clone(m.lastBatch),
		func(message *Message) bool { return !slices.Contains(e.IDs, message.ID) })
}

func (e turnEndEvent) apply(s *state) {
	m := s.members[e.Agent]
	if m == nil || m.round == nil || m.round.id != e.Turn {
		return
	}
	if e.Outcome == roundDone || e.Outcome == roundMaxTurns {
		for _, message := range m.round.batch {
			if message.Kind == KindHuman {
				s.lastActed = max(s.lastActed, message.InboxSeq)
			}
		}
	}
	m.round = nil
	m.settled = settles(e.Outcome)
	if e.SessionID != "" {
		m.sessionID = e.SessionID
	}
	m.usage.add(e.TookMs, e.Steps, e.Tokens, e.CostUSD)
	s.usage.add(e.TookMs, e.Steps, e.Tokens, e.CostUSD)
}

func (e goneEvent) apply(s *state) {
	if m := s.members[e.Agent]; m != nil {
		m.gone = e.Reason
		m.round = nil
		s.take(m)
	}
}

func (e refusalEvent) apply(s *state) {
	s.refusal = &e
	if m := s.members[e.By]; m != nil {
		if r := m.record(e.Call); r != nil {
			r.tool, r.refusal = e.Tool, &e
		}
	}
}

func (e conclusionEvent) apply(s *state) {
	if s.conclusion != nil {
		return
	}
	s.conclusion = &e
	for _, id := range s.openAsks() {
		a := s.asks[id]
		s.openAtEnd = append(s.openAtEnd,
			PendingAsk{From: a.asker.name, To: a.addressee.name, Question: a.message.Text})
	}
	if m := s.members[e.By]; m != nil {
		if r := m.record(e.Call); r != nil {
			r.tool = e.Tool
		}
	}
}

func (e *replyEvent) apply(s *state) {
	body := e.Body
	if a := s.lastAnswer; a != nil && a.ID == e.Message {
		body = a.Text
		s.lastAnswer = nil
	}
	s.replies = append(s.replies, Reply{
		Body:     body,
		Agent:    e.Agent,
		Kind:     e.Kind,
		Seq:      e.seq,
		Run:      strconv.FormatInt(s.startedMs, 10),
		ThreadID: s.discussionID,
	})
	if m := s.members[e.Agent]; m != nil && e.Kind == ReplyAck {
		m.unsure.sent = append(m.unsure.sent, statement{verb: "you posted to the thread", text: e.Body})
		if r := m.record(e.Call); r != nil {
			r.tool = toolAcknowledge
		}
	}
}

func (e rfcEvent) apply(s *state) {
	if n, err := strconv.ParseInt(strings.TrimPrefix(e.CorrelationID, rfcPrefix), 10, 64); err == nil {
		s.lastRFC = max(s.lastRFC, n)
	}
	base := RFC{
		Body:          e.Body,
		Channel:       e.Channel,
		Agent:         e.Agent,
		CorrelationID: e.CorrelationID,
		ThreadID:      s.discussionID,
	}
	if len(e.Addressees) == 0 {
		s.rfcs = append(s.rfcs, base)
	}
	for _, addressee := range e.Addressees {
		one := base
		one.Addressee = addressee
		s.rfcs = append(s.rfcs, one)
	}
	if m := s.members[e.Agent]; m != nil {
		m.unsure.sent = append(m.unsure.sent, statement{verb: "you requested comments in " + e.Channel, text: e.Body})
		if r := m.record(e.Call); r != nil {
			r.tool, r.id = toolRequestForComment, e.CorrelationID
		}
	}
}

func (e advisorStartEvent) apply(s *state) { s.advisorUsed = max(s.advisorUsed, e.Used) }

func (e quiescenceEvent) apply(s *state) { s.nudged = s.nudged || e.Message != 0 }
