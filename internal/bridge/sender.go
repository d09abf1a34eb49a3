package bridge

import (
	"context"
	"sync"

	"github.com/fit-eval/fit/internal/harness"
)

// Sender posts the replies of a discussion to its thread: in order, one at a time, from its own
// goroutine, with retries. A reply that the bridge refuses for good is given up and reported; the
// next ones are still posted.
type Sender struct {
	client   Client
	ctx      context.Context
	cancel   context.CancelFunc
	done     chan struct{}
	wake     chan struct{} // has room for one
	noPauses chan struct{} // closed by Flush: no more long pauses

	mu       sync.Mutex
	queue    []harness.Reply
	busy     bool
	failed   []int64
	err      error
	idle     chan struct{} // closed when nothing is queued and nothing is on its way
	flushing bool
}

var _ harness.ReplySender = (*Sender)(nil)

// NewSender starts a sender. It ends with Close.
func NewSender(client Client) *Sender {
	s := &Sender{
		client:   client,
		done:     make(chan struct{}),
		wake:     make(chan struct{}, 1),
		noPauses: make(chan struct{}),
		idle:     make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	close(s.idle)
	go s.deliver()
	return s
}

// Send implements harness.ReplySender. It never waits.
func (s *Sender) Send(r harness.Reply) {
	s.mu.Lock()
	if len(s.queue) == 0 && !s.busy {
		s.idle = make(chan struct{})
	}
	s.queue = append(s.queue, r)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // it is awake already
	}
}

// Flush implements harness.ReplySender: it waits until everything is posted or given up, or the
// context ends, and returns what was not posted.
func (s *Sender) Flush(ctx context.Context) []int64 {
	s.mu.Lock()
	idle := s.idle
	if !s.flushing {
		s.flushing = true
		close(s.noPauses)
	}
	s.mu.Unlock()
	select {
	case <-idle:
	case <-s.done:
	case <-ctx.Done():
		s.cancel()
		<-s.done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	unsent := append([]int64(nil), s.failed...)
	for _, r := range s.queue {
		unsent = append(unsent, r.Seq)
	}
	return unsent
}

// Err returns the last reason why a reply could not be posted.
func (s *Sender) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close gives up what is not posted yet and ends the goroutine.
func (s *Sender) Close() {
	s.cancel()
	<-s.done
}

func (s *Sender) deliver() {
	defer close(s.done)
	for {
		r, ok := s.next()
		if ok {
			s.finish(r, s.client.post(s.ctx, replyCallback(s.client.CorrelationID, r), s.noPauses))
			continue
		}
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Sender) next() (harness.Reply, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 || s.ctx.Err() != nil {
		return harness.Reply{}, false
	}
	r := s.queue[0]
	s.queue = s.queue[1:]
	s.busy = true
	return r, true
}

func (s *Sender) finish(r harness.Reply, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	if err != nil {
		s.failed, s.err = append(s.failed, r.Seq), err
	}
	if len(s.queue) == 0 {
		close(s.idle)
	}
}
