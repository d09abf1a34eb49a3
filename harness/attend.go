package harness

import (
	"context"
	"time"
)

// crew gives goroutines to the members that have something to do: a thousand that are idle cost
// nothing. Whoever is done with a member takes the next, so that members who are quick share one
// goroutine, and do not cost more on several processors, where they would only wait for each
// other's locks. Nobody waits for one who is slow: a timer looks whether those who wait get on, and
// starts more goroutines if they do not. It is guarded by the hub's lock.
type crew struct {
	roused []*runner     // whose queues are to be looked at
	begun  []begunTurn   // turns that have begun and wait for a goroutine
	awake  int           // goroutines that look after somebody
	idle   int           // goroutines that sleep
	wake   chan struct{} // wakes one of them; it is closed when the session stops

	watching bool // the timer runs; always so while somebody waits
	taken    int  // turns that goroutines have taken
	seen     int  // of these, when the timer started
	help     int  // how many goroutines the timer starts if nobody gets on
}

type begunTurn struct {
	runner *runner
	ctx    context.Context // nil for one that a crash interrupted
	prompt string
}

const (
	// maxIdle is how many goroutines are kept for later: to begin with a new one costs about as
	// much as everything else in a turn.
	maxIdle = 64
	// burst is how many turns begin together, so that the lines which say so are written in one
	// call.
	burst = 16
	// patience is how long members wait for one who may be slow, and quickTurns how many turns one
	// goroutine must get done meanwhile to be left alone.
	patience   = time.Millisecond
	quickTurns = 32
)

// rouse makes a member look at its queue. The lock must be held.
func (r *runner) rouse() {
	l := r.loop
	if r.awake || l.hub.stopped {
		return
	}
	r.awake = true
	l.crew.roused = append(l.crew.roused, r)
	if l.crew.awake == 0 {
		l.startAttending()
	} else {
		l.watch()
	}
}

func (l *OrchestrationLoop) startAttending() {
	l.crew.awake++
	if l.crew.idle > 0 {
		l.crew.idle--
		l.crew.wake <- struct{}{} // there is room for all that sleep
		return
	}
	l.attending.Go(l.attend)
}

// watch sees to it that those who wait do not wait long. The lock must be held.
func (l *OrchestrationLoop) watch() {
	if l.crew.watching {
		return
	}
	l.crew.watching, l.crew.seen = true, l.crew.taken
	time.AfterFunc(patience, func() {
		l.hub.mu.Lock()
		defer l.hub.mu.Unlock()
		l.crew.watching = false
		l.helpOut()
	})
}

// helpOut starts goroutines for those who wait, unless they get on: one at first, and twice as many
// every time that this did not help.
func (l *OrchestrationLoop) helpOut() {
	waiting := len(l.crew.begun) + len(l.crew.roused)
	if waiting == 0 {
		l.crew.help = 1
		return
	}
	if l.crew.taken-l.crew.seen < quickTurns {
		for range min(l.crew.help, waiting) {
			l.startAttending()
		}
		l.crew.help *= 2
	}
	l.watch()
}

// attend looks after one member after the other as long as somebody waits, and sleeps until the
// next time.
func (l *OrchestrationLoop) attend() {
	reserveStack(0)
	for {
		turn, ok, last := l.nextTurn()
		switch {
		case ok:
			turn.runner.attend(turn.ctx, turn.prompt)
		case last:
			return
		default:
			if _, woken := <-l.crew.wake; !woken {
				return
			}
		}
	}
}

// nextTurn takes a turn for a goroutine. Without one the goroutine may sleep, or is not needed any
// more.
func (l *OrchestrationLoop) nextTurn() (turn begunTurn, ok, last bool) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if turn, ok = l.crew.take(); ok {
		l.crew.taken++
		return turn, true, false
	}
	l.crew.awake--
	if l.hub.stopped || l.crew.idle == maxIdle {
		return turn, false, true
	}
	l.crew.idle++
	return turn, false, false
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

// beginSome begins the turns of the next members that were roused, as far as there is something for
// them.
func (c *crew) beginSome() {
	some := c.roused[:min(burst, len(c.roused))]
	c.roused = c.roused[len(some):]
	for _, r := range some {
		if r.interrupted {
			c.begun = append(c.begun, begunTurn{runner: r})
		} else if ctx, prompt := r.nextLocked(); ctx != nil {
			c.begun = append(c.begun, begunTurn{r, ctx, prompt})
		} else if h := r.loop.hub; h.running == 0 && r.member != h.state.lead {
			h.state.bus.wake(h.state.lead.name) // it may have waited for this one
		}
	}
}

// dismiss sends those home that sleep.
func (c *crew) dismiss() {
	c.idle = 0
	close(c.wake)
}

// reserveStack makes the goroutine's stack as large as a turn needs while there is nothing on it to
// be copied: growing it in the middle of a turn, several times, cost a quarter of everything.
//
//go:noinline
func reserveStack(i int) byte {
	var room [6 << 10]byte
	return room[i]
}
