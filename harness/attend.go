package harness

// crew gives goroutines to the members that have something to do: a thousand that are idle cost nothing. Goroutines are started one after the other, each by the one
// before, and whoever is done with a member takes the next, so that members who are quick share a few, and nobody waits for one who is slow.
type crew struct {
	roused   []*runner // who waits for a goroutine
	starting bool      // one has been started and has not taken anybody yet; always so while somebody waits
}

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
	l.attending.Go(l.attend)
}

// attend looks after one member after the other until nobody waits any more.
func (l *OrchestrationLoop) attend() {
	reserveStack(0)
	for r := l.firstRoused(); r != nil; r = l.nextRoused() {
		r.attend()
	}
}

// firstRoused takes the first member that a new goroutine looks after. If others wait, there must be another goroutine for them: nobody knows how long this one is busy.
func (l *OrchestrationLoop) firstRoused() *runner {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.crew.starting = false
	r := l.crew.take()
	if len(l.crew.roused) > 0 {
		l.startAttending()
	}
	return r
}

func (l *OrchestrationLoop) nextRoused() *runner {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	return l.crew.take()
}

func (c *crew) take() *runner {
	if len(c.roused) == 0 {
		return nil
	}
	r := c.roused[0]
	c.roused = c.roused[1:]
	return r
}

// reserveStack makes the goroutine's stack as large as a turn needs while there is nothing on it to be copied: growing it in the middle of a turn, several times, cost a
// quarter of everything.
//
//go:noinline
func reserveStack(i int) byte {
	var room [6 << 10]byte
	return room[i]
}
