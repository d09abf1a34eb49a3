package harness

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// state is the state of a session. It changes only by applying events, and is guarded by the lock
// of its hub.
type state struct {
	mode    Mode
	lead    *member
	members map[string]*member
	order   []*member
	queued  int // messages in all queues together

	asks map[int64]*ask // the open ones
	ends []askEnd       // by ask id: how each ask ended

	lastMessage, lastAsk, lastRound, lastRFC int64

	turns      int // of everybody
	usage      spending
	nudged     bool
	refusal    *refusalEvent
	conclusion *conclusionEvent
	summarized bool

	discussionID string
	replies      []Reply
	inherited    int          // of the replies: how many are of earlier sessions
	openAtEnd    []PendingAsk // open when the session was concluded
	rfcs         []RFC
	advisorUsed  int

	lastInbox int64 // the highest inbox seq that was accepted
	lastActed int64 // the highest one whose round is over; -1 is none

	settings  settings
	startedMs int64
	// lastAnswer is what a reply line, which follows its answer at once, refers to.
	lastAnswer *Message
}

// member is the lead or a participant.
type member struct {
	name, role string
	config     AgentConfig
	queue      []*Message // what it has not been given yet
	// wake makes it look at its queue, and active says that something happens in its round; nil if
	// there is no loop.
	wake, active func()

	gone      string // why it has left the session
	sessionID string
	turns     int
	usage     spending
	consulted spending // how much of that went to the advisor

	round     *round     // the round that it is in
	lastBatch []*Message // what it got in its last round

	// unsure is what happened since the last round that its agent's own record surely holds,
	// settled that this is the round which ended last.
	unsure  passage
	settled bool

	owed   []*ask // asks that it owes an answer to, oldest first
	asking int    // how many asks of its own are open
	// answered says that it has answered an ask since its last round began.
	answered bool

	abandoned bool // its agent did not stop at the end
	warned    bool // that its cost is not known
}

// round is one prompt to one member.
type round struct {
	id         int64
	batch      []*Message
	redelivery bool
	calls      map[string]*callRecord // of tool calls that carried an id
}

// callRecord holds what is needed to answer a repeated tool call as the first time.
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
	turns   int // of models
	tokens  int64
	costUSD float64
	unknown bool // some of the cost is not known
	tookMs  int64
}

func (s *spending) add(tookMs int64, turns int, tokens int64, costUSD *float64) {
	s.tookMs += tookMs
	s.turns += turns
	s.tokens += tokens
	if costUSD != nil {
		s.costUSD += *costUSD
	} else if turns > 0 || tokens > 0 {
		s.unknown = true
	}
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
	timer            *time.Timer
}

type askEnd uint8

const (
	askOpen askEnd = iota
	askAnswered
	askCancelled
)

func newState(mode Mode, members []AgentConfig, lead string) *state {
	s := &state{
		mode:      mode,
		members:   make(map[string]*member, len(members)),
		asks:      map[int64]*ask{},
		ends:      make([]askEnd, 1),
		lastActed: -1,
	}
	for _, config := range members {
		m := &member{name: config.Name, role: config.Role, config: config}
		s.members[m.name] = m
		s.order = append(s.order, m)
	}
	s.lead = s.members[lead]
	return s
}

// promptID names the prompt of a round among all that a conversation may ever get: another session
// may continue it.
func (s *state) promptID(round int64) string {
	return strconv.FormatInt(s.startedMs, 10) + "-" + strconv.FormatInt(round, 10)
}

// endOf returns how an ask ended; one that never existed counts as open.
func (s *state) endOf(id int64) askEnd {
	if id <= 0 || id >= int64(len(s.ends)) {
		return askOpen
	}
	return s.ends[id]
}

// openAsks returns the ids of the open asks in order.
func (s *state) openAsks() []int64 { return slices.Sorted(maps.Keys(s.asks)) }

// unreadHumans returns the ids of messages from people that the lead has not been given.
func (s *state) unreadHumans() []int64 {
	var ids []int64
	for _, m := range s.lead.queue {
		if m.Kind == KindHuman {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
