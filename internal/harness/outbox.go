package harness

import (
	"context"
	"sync"
)

// ReplySender posts replies to the thread of a discussion. Send must not block: it queues the
// reply, and a goroutine of the sender posts it, in order and with retries. Flush waits until
// everything is posted or the context ends, and returns the seqs of the replies that were not.
type ReplySender interface {
	Send(Reply)
	Flush(ctx context.Context) (unsent []int64)
}

// outbox holds replies until their lines are in the trace, and hands them on in the order of their
// lines.
type outbox struct {
	sender ReplySender

	mu     sync.Mutex
	queued []Reply
	// sending is held while replies are handed on, so that two flushes do not overtake each other.
	sending sync.Mutex
}

func (o *outbox) put(r Reply) {
	if o.sender == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queued = append(o.queued, r)
}

// send flushes the trace and hands on the replies that were put before.
func (o *outbox) send(flush func() error) error {
	o.sending.Lock()
	defer o.sending.Unlock()
	o.mu.Lock()
	ready := o.queued
	o.queued = nil
	o.mu.Unlock()
	if err := flush(); err != nil {
		return err
	}
	for _, r := range ready {
		o.sender.Send(r)
	}
	return nil
}
