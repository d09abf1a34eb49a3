package gateway

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// RateControl bounds the calls that run at the same time, for each provider, key and model: the
// limits of one arm's model do not hold back another's. A model has no limit until its provider
// first says that it is busy: then half of the calls in flight are allowed, and half again each
// time it says so later, but never fewer than one. As many successful calls as the limit raise it
// by one. While the provider asks to wait, no call to the model starts. All cells of a process
// share one RateControl. A nil RateControl bounds nothing.
type RateControl struct {
	mu    sync.Mutex
	lanes map[laneKey]*rateLane
}

type laneKey struct{ provider, key, model string }

// rateLane is the state of one model of a provider and key.
type rateLane struct {
	limit    int // calls at a time; 0 is no bound yet
	running  int
	good     int       // good calls since the bound has changed
	halvings int       // how often the bound was halved
	until    time.Time // the provider asked to wait until then
	queue    []*rateWaiter
	changed  chan struct{} // closed and replaced when a waiter should look again
}

// rateWaiter is not empty, because pointers to zero-size values may be equal.
type rateWaiter struct{ _ byte }

// statusOverloaded is the status of a provider without capacity.
const statusOverloaded = 529

// longestPause bounds how long a provider can make all cells wait.
const longestPause = 10 * time.Minute

// NewRateControl returns a control that knows no bounds yet.
func NewRateControl() *RateControl { return &RateControl{lanes: map[laneKey]*rateLane{}} }

// Acquire waits until a call may start. The caller must call release once when the call is over,
// with the status that the provider answered (statusOverloaded also where it says so in the middle
// of a stream; 0 where it did not answer) and with the time that it asked to wait.
func (c *RateControl) Acquire(ctx context.Context, provider, key, model string) (
	release func(status int, retryAfter time.Duration), err error,
) {
	if c == nil {
		return func(int, time.Duration) {}, nil
	}
	me := new(rateWaiter)
	c.mu.Lock()
	lane := c.lane(laneKey{provider, key, model})
	lane.queue = append(lane.queue, me)
	for lane.queue[0] != me || !lane.free() {
		changed, pause := lane.changed, time.Until(lane.until)
		c.mu.Unlock()
		err := wait(ctx, changed, pause)
		c.mu.Lock()
		if err != nil {
			lane.leave(me)
			c.mu.Unlock()
			return nil, err
		}
	}
	lane.leave(me)
	lane.running++
	era := lane.halvings
	c.mu.Unlock()
	var once sync.Once
	return func(status int, retryAfter time.Duration) {
		once.Do(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			lane.ended(era, status, retryAfter)
		})
	}, nil
}

// wait returns when something has changed or a pause is over.
func wait(ctx context.Context, changed <-chan struct{}, pause time.Duration) error {
	var over <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-changed:
	case <-over:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (c *RateControl) lane(at laneKey) *rateLane {
	lane := c.lanes[at]
	if lane == nil {
		lane = &rateLane{changed: make(chan struct{})}
		c.lanes[at] = lane
	}
	return lane
}

func (l *rateLane) free() bool {
	return (l.limit == 0 || l.running < l.limit) && !time.Now().Before(l.until)
}

// leave removes a waiter from the queue and wakes the next one.
func (l *rateLane) leave(w *rateWaiter) {
	l.queue = slices.DeleteFunc(l.queue, func(other *rateWaiter) bool { return other == w })
	l.wake()
}

func (l *rateLane) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// ended records how a call ended. Calls that began before the bound was last halved say nothing new
// when they fail: one burst halves once.
func (l *rateLane) ended(era, status int, retryAfter time.Duration) {
	busy := status == http.StatusTooManyRequests || status == statusOverloaded
	switch {
	case busy && era == l.halvings:
		l.limit = max(1, cmp.Or(l.limit, l.running)/2)
		l.halvings, l.good = l.halvings+1, 0
	case status >= 200 && status < 300 && l.limit > 0:
		if l.good++; l.good >= l.limit {
			l.limit, l.good = l.limit+1, 0
		}
	}
	if until := time.Now().Add(min(retryAfter, longestPause)); busy && until.After(l.until) {
		l.until = until
	}
	l.running--
	l.wake()
}

// RateStatus is the current use of one model.
type RateStatus struct {
	Provider string
	Model    string
	Running  int
	Waiting  int
	Limit    int           // calls at a time; 0 is no bound
	Pause    time.Duration // that the provider has asked for and that is left
}

// Status returns how the models are used, by provider and name.
func (c *RateControl) Status() []RateStatus {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []RateStatus
	for at, lane := range c.lanes {
		all = append(all, RateStatus{
			Provider: at.provider,
			Model:    at.model,
			Running:  lane.running,
			Waiting:  len(lane.queue),
			Limit:    lane.limit,
			Pause:    max(0, time.Until(lane.until)),
		})
	}
	slices.SortFunc(all, func(a, b RateStatus) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Model, b.Model))
	})
	return all
}
