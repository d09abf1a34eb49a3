package local

import (
	"sync"
	"time"
)

// pauseAfter is how late a clock has to be before this process was stopped, and not merely busy.
const pauseAfter = 3 * time.Second

// pauses notices that this process did not run for a while: it was stopped, or the machine paused.
// The time limit of an agent does not know that.
type pauses struct {
	mu   sync.Mutex
	last time.Time
	long time.Duration // of all pauses
	end  chan struct{}
}

// watchPauses starts to look; close ends it.
func watchPauses(every time.Duration) *pauses {
	p := &pauses{last: time.Now(), end: make(chan struct{})}
	ticks := time.NewTicker(every)
	go func() {
		defer ticks.Stop()
		for {
			select {
			case <-p.end:
				return
			case <-ticks.C:
				p.look(time.Now())
			}
		}
	}()
	return p
}

// look notes a pause, and returns how long all were.
func (p *pauses) look(now time.Time) time.Duration {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if late := now.Sub(p.last); late > pauseAfter {
		p.long += late
	}
	p.last = now
	return p.long
}

func (p *pauses) close() { close(p.end) }
