package harness

import "context"

// crew gives goroutines to the members that have something to do: a thousand that are idle cost nothing. Goroutines are started one after the other, each by the one
// before, and whoever is done with a member takes the next, so that members who are quick share a few, and nobody waits for one who is slow. It is guarded by the hub's lock.
type crew struct {
	roused   []*runner     // whose queues are to be looked at
	begun    []begunTurn   // turns that have begun and wait for a goroutine
	starting bool          // a goroutine has been started and has not taken a turn yet; always so while somebody waits
	idle     int           // goroutines that sleep
	wake     chan struct{} // wakes one of them; it is closed when the session stops
}

type begunTurn struct {
	runner *runner
	ctx    context.Context // nil for one that a crash interrupted
	prompt string
}

const (
	// maxIdle is how many goroutines are kept for later: to begin with a new one costs about as much as everything else in a turn.
	maxIdle = 64
	// burst is how many turns begin together, so that the lines which say so are written in one call.
	burst = 16
)

// rouse makes a member look at its queue. The lock must be held.
func (r *runner) rouse() {
	l := r.loop
	if r.awake || l.hub.stopped {
		return
	}
	r.awake = true
	l.crew.roused = append(l.crew.roused, r)
	if !l.crew.starting {
		l.startAttending()
	}
}

func (l *OrchestrationLoop) startAttending() {
	l.crew.starting = true
	if l.crew.idle > 0 {
		l.crew.idle--
		l.crew.wake <- struct{}{} // there is room for all that sleep
		return
	}
	l.attending.Go(l.attend)
}

// attend looks after one member after the other as long as somebody waits, and sleeps until the next time.
func (l *OrchestrationLoop) attend() {
	reserveStack(0)
	for awake := true; awake; awake = l.sleep() {
		for turn, ok := l.firstTurn(); ok; turn, ok = l.nextTurn() {
			turn.runner.attend(turn.ctx, turn.prompt)
		}
	}
}

// firstTurn takes the first turn that a new goroutine looks after. If others wait, there must be another goroutine for them: nobody knows how long this one is busy.
func (l *OrchestrationLoop) firstTurn() (begunTurn, bool) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.crew.starting = false
	turn, ok := l.crew.take()
	if len(l.crew.begun)+len(l.crew.roused) > 0 {
		l.startAttending()
	}
	return turn, ok
}

func (l *OrchestrationLoop) nextTurn() (begunTurn, bool) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	return l.crew.take()
}

func (c *crew) take() (begunTurn, bool) {
	for len(c.begun) == 0 && len(c.roused) > 0 {
		c.beginSome()
	}
	if len(c.begun) == 0 {
		return begunTurn{}, false
	}
	turn := c.begun[0]
	c.begun = c.begun[1:]
	return turn, true
}

// beginSome begins the turns of the next members that were roused, as far as there is something for them.
func (c *crew) beginSome() {
	some := c.roused[:min(burst, len(c.roused))]
	c.roused = c.roused[len(some):]
	for _, r := range some {
		if r.interrupted {
			c.begun = append(c.begun, begunTurn{runner: r})
		} else if ctx, prompt := r.nextLocked(); ctx != nil {
			c.begun = append(c.begun, begunTurn{r, ctx, prompt})
		}
	}
}

// sleep returns true when there is something to do again.
func (l *OrchestrationLoop) sleep() bool {
	l.hub.mu.Lock()
	if l.hub.stopped || l.crew.idle == maxIdle {
		l.hub.mu.Unlock()
		return false
	}
	l.crew.idle++
	l.hub.mu.Unlock()
	_, woken := <-l.crew.wake
	return woken
}

// dismiss sends those home that sleep.
func (c *crew) dismiss() {
	c.idle = 0
	close(c.wake)
}

// reserveStack makes the goroutine's stack as large as a turn needs while there is nothing on it to be copied: growing it in the middle of a turn, several times, cost a
// quarter of everything.
//
//go:noinline
func reserveStack(i int) byte {
	var room [6 << 10]byte
	return room[i]
}
