package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrBusClosed is what waiting on a closed bus ends with.
var ErrBusClosed = errors.New("the bus is closed")

// Bus holds one queue per participant. Appending never blocks; whoever waits for a queue sleeps
// until something is appended, without polling.
type Bus struct {
	mu     sync.Mutex
	boxes  map[string]*mailbox
	order  []*mailbox
	queued int
	closed chan struct{}
}

type mailbox struct {
	name  string
	queue []*Message
	// wake holds a token while there is something new to look at. Whoever takes the token looks at
	// the queue.
	wake chan struct{}
	// notify, if set, is called instead of leaving a token. Whoever sets it sees to it that nothing
	// is posted meanwhile.
	notify func()
	shut   bool // its participant is gone: nothing is accepted any more
}

// NewBus returns a bus for the named participants.
func NewBus(names ...string) (*Bus, error) {
	b := &Bus{boxes: make(map[string]*mailbox, len(names)), closed: make(chan struct{})}
	for _, name := range names {
		if name == "" {
			return nil, errors.New("a participant has no name")
		}
		if b.boxes[name] != nil {
			return nil, fmt.Errorf("two participants are called %q", name)
		}
		box := &mailbox{name: name, wake: make(chan struct{}, 1)}
		b.boxes[name] = box
		b.order = append(b.order, box)
	}
	return b, nil
}

// Post appends a message to its receiver's queue; one without receiver goes to everybody but its
// sender, in the order of the participants. It returns how many queues it reached.
func (b *Bus) Post(m *Message) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.To != "" {
		box := b.boxes[m.To]
		if box == nil {
			return 0, fmt.Errorf("no participant is called %q", m.To)
		}
		return b.put(box, m), nil
	}
	reached := 0
	for _, box := range b.order {
		if box.name != m.From {
			reached += b.put(box, m)
		}
	}
	return reached, nil
}

func (b *Bus) put(box *mailbox, m *Message) int {
	if box.shut {
		return 0
	}
	box.queue = append(box.queue, m)
	b.queued++
	box.signal()
	return 1
}

func (box *mailbox) signal() {
	if box.notify != nil {
		box.notify()
		return
	}
	select {
	case box.wake <- struct{}{}:
	default: // a token is waiting already
	}
}

// wake makes a participant look at its queue again.
func (b *Bus) wake(name string) {
	if box := b.boxes[name]; box != nil {
		box.signal()
	}
}

// Take empties a queue and returns what was in it, oldest first.
func (b *Bus) Take(name string) []*Message {
	if box := b.boxes[name]; box != nil { // the set of boxes never changes
		return b.take(box)
	}
	return nil
}

func (b *Bus) take(box *mailbox) []*Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(box.queue) == 0 {
		return nil
	}
	batch := box.queue
	box.queue = nil
	b.queued -= len(batch)
	return batch
}

// Peek returns what is queued for a participant and leaves it there.
func (b *Bus) Peek(name string) []*Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if box := b.boxes[name]; box != nil {
		return slices.Clone(box.queue)
	}
	return nil
}

// putBack returns a message to a queue it was taken from.
func (b *Bus) putBack(name string, m *Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if box := b.boxes[name]; box != nil {
		b.put(box, m)
	}
}

// Drop removes one message from one queue and reports whether it was there.
func (b *Bus) Drop(name string, id int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	box := b.boxes[name]
	if box == nil {
		return false
	}
	i := slices.IndexFunc(box.queue, func(m *Message) bool { return m.ID == id })
	if i < 0 {
		return false
	}
	box.queue = slices.Delete(box.queue, i, i+1)
	b.queued--
	return true
}

// Shut empties a queue for good: what is posted to it from now on goes nowhere. It returns what was
// left.
func (b *Bus) Shut(name string) []*Message {
	left := b.Take(name)
	b.mu.Lock()
	defer b.mu.Unlock()
	if box := b.boxes[name]; box != nil {
		box.shut = true
	}
	return left
}

// Pending returns how many messages are queued for a participant.
func (b *Bus) Pending(name string) int {
	if box := b.boxes[name]; box != nil {
		return b.pending(box)
	}
	return 0
}

func (b *Bus) pending(box *mailbox) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(box.queue)
}

// Queued returns how many messages are queued for all participants together.
func (b *Bus) Queued() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queued
}

// Wait sleeps until something was posted to the participant since the last Wait, the context ends,
// or the bus is closed.
func (b *Bus) Wait(ctx context.Context, name string) error {
	box := b.boxes[name] // the set of boxes never changes
	if box == nil {
		return fmt.Errorf("no participant is called %q", name)
	}
	select {
	case <-box.wake:
		return nil
	default:
	}
	select {
	case <-box.wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-b.closed:
		return ErrBusClosed
	}
}

// Close wakes everybody who waits, for good.
func (b *Bus) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
}
