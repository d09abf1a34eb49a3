package harness

import "strconv"

// state is what a session knows. It changes only by applying events, and is guarded by the lock of
// its hub.
type state struct {
	mode    Mode
	lead    *member
	members map[string]*member
	order   []*member
	bus     *Bus

	asks map[int64]*ask // the open ones
	ends []askEnd       // by ask id: how each ask ended

	lastMessage, lastAsk, lastTurn, lastRFC int64

	turns      int // of everybody
	usage      spending
	nudged     bool
	refusal    *refusalEvent
	conclusion *conclusionEvent
	summarized bool

	discussionID string
	replies      []Reply
	inherited    int          // of the replies: how many are of earlier sessions
	unsettled    []PendingAsk // open when the session was concluded
	rfcs         []RFC
	advisorUsed  int

	lastInbox int64 // the highest inbox seq that was accepted
	lastActed int64 // the highest one whose turn is over; -1 is none

	settings  settings
	startedMs int64
	// lastAnswer is what a reply line, which follows its answer at once, refers to.
	lastAnswer *Message
}

// member is the lead or a participant.
type member struct {
	name, role string
	config     AgentConfig
	box        *mailbox

	gone      string // why it is out of the session
	sessionID string
	turns     int
	usage     spending
	consulted spending // how much of that went to the advisor

	turn      *turn      // the turn that it is in
	lastBatch []*Message // what it got in its last turn

	owed   askList // asks that it owes an answer to, oldest first
	asking int     // how many asks of its own are open

	abandoned bool // its agent did not stop at the end
	warned    bool // that its cost is not known
}

// turn is one prompt to one member.
type turn struct {
	id         int64
	batch      []*Message
	redelivery bool
	calls      map[string]*callRecord // of tool calls that carried an id
}

// callRecord is what is needed to answer a repeated tool call as it was answered the first time.
type callRecord struct {
	tool    string
	askIDs  []int64
	asked   []string // whom the asks went to
	message *Message
	id      string
	refusal *refusalEvent
}

// spending is what was consumed.
type spending struct {
	tokens  int64
	costUSD float64
	unknown bool // some of the cost is not known
	tookMs  int64
}

func (s *spending) add(tookMs, tokens int64, costUSD *float64) {
	s.tookMs += tookMs
	s.tokens += tokens
	if costUSD != nil {
		s.costUSD += *costUSD
	} else if tokens > 0 {
		s.unknown = true
	}
}

// plus is the sum of two.
func (s spending) plus(other spending) spending {
	s.tookMs += other.tookMs
	s.tokens += other.tokens
	s.costUSD += other.costUSD
	s.unknown = s.unknown || other.unknown
	return s
}

// ask is an open question.
type ask struct {
	id               int64
	asker, addressee *member
	message          *Message
	delivered        bool
	reminded         bool
	reminder         int64 // the message that reminds of it
	reminderSeen     bool
	timer            stopper

	prev, next *ask // in the addressee's list
}

type stopper interface{ Stop() bool }

type askEnd uint8

const (
	askOpen askEnd = iota
	askAnswered
	askCancelled
)

// askList is a list of asks from which one can be taken in constant time, however many a member
// owes.
type askList struct {
	first, last *ask
	count       int
}

func (l *askList) push(a *ask) {
	a.prev = l.last
	if l.last != nil {
		l.last.next = a
	} else {
		l.first = a
	}
	l.last = a
	l.count++
}

func (l *askList) remove(a *ask) {
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		l.first = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	} else {
		l.last = a.prev
	}
	a.prev, a.next = nil, nil
	l.count--
}

func newState(mode Mode, members []AgentConfig, lead string) (*state, error) {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Name
	}
	bus, err := NewBus(names...)
	if err != nil {
		return nil, err
	}
	s := &state{
		mode:      mode,
		bus:       bus,
		members:   make(map[string]*member, len(members)),
		asks:      map[int64]*ask{},
		ends:      make([]askEnd, 1),
		lastActed: -1,
	}
	for _, config := range members {
		m := &member{
			name:   config.Name,
			role:   config.Role,
			config: config,
			box:    bus.boxes[config.Name],
		}
		s.members[m.name] = m
		s.order = append(s.order, m)
	}
	s.lead = s.members[lead]
	return s, nil
}

// promptID names the prompt of a turn, among all that a conversation may ever get: it can go on in
// another session.
func (s *state) promptID(turn int64) string {
	return strconv.FormatInt(s.startedMs, 10) + "-" + strconv.FormatInt(turn, 10)
}

// endOf tells how an ask ended, or that it is open or never was.
func (s *state) endOf(id int64) askEnd {
	if id <= 0 || id >= int64(len(s.ends)) {
		return askOpen
	}
	return s.ends[id]
}

// openAsks returns the ids of the open asks in order.
func (s *state) openAsks() []int64 {
	var ids []int64
	for id := int64(1); id <= s.lastAsk && len(ids) < len(s.asks); id++ {
		if s.asks[id] != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// unreadHumans returns the ids of messages from people that the lead has not been given.
func (s *state) unreadHumans() []int64 {
	var ids []int64
	for _, m := range s.bus.Peek(s.lead.name) {
		if m.Kind == KindHuman {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
