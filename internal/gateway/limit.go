package gateway

import "errors"

// ErrTurnLimit is the limit of a member that has used all its turns.
var ErrTurnLimit = errors.New("the limit of turns is reached")

// limitRefusal is the message to an agent whose call is refused, or stopped, because of a limit. It
// has no numbers: some agents look for the status of an error in its text, and retry.
const limitRefusal = "fit: the budget of this run is used up; the model no longer answers"

// Begin starts a prompt of the member: from now on at most n turns are answered; 0 is no limit. The
// channel is closed when a limit of the prompt is reached. A budget that was used up before stays
// used up.
func (s *Seat) Begin(maxTurns int) (reached <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns, s.maxTurns, s.failed = 0, maxTurns, [32]byte{}
	if s.reached == nil || errors.Is(s.limit, ErrTurnLimit) {
		s.limit, s.reached = nil, make(chan struct{})
	}
	return s.reached
}

// Limit returns the limit that the member has reached: ErrTurnLimit, or a BudgetError; nil if none.
func (s *Seat) Limit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit
}

// stopped notes that a limit was reached.
func (s *Seat) stopped(limit error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit != nil {
		return
	}
	s.limit = limit
	if s.reached != nil {
		close(s.reached)
	}
}
