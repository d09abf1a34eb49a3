package pipes

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// drainBytes bounds what is still read from a pipe after the tree is gone: no pipe holds more, so
// more can only come from an escaped process that keeps it open.
const drainBytes = 1 << 20

// Copier copies the output pipes of one run to the caller's writers, within one
// common bound.
type Copier struct {
	left     atomic.Int64 // bytes that may still be delivered
	unbound  bool
	Exceeded chan struct{} // closed once, when the bound is passed
	Failed   chan struct{} // closed once, when a writer failed
	once     sync.Once
	failOnce sync.Once
	err      error // why failed was closed
	copying  sync.WaitGroup
	ended    atomic.Bool
	delay    time.Duration
	readers  []*os.File
}

// NewCopier returns a copier that delivers up to a number of bytes; a negative one is no bound.
func NewCopier(bound int64, delay time.Duration) *Copier {
	m := &Copier{
		unbound:  bound < 0,
		Exceeded: make(chan struct{}),
		Failed:   make(chan struct{}),
		delay:    delay,
	}
	m.left.Store(bound)
	return m
}

// Copy starts delivering what comes from r to w and counts it. It closes r.
func (m *Copier) Copy(r *os.File, w io.Writer, count *int64) {
	m.readers = append(m.readers, r)
	m.copying.Go(func() {
		defer r.Close()
		buffer := make([]byte, 64<<10)
		drained := 0
		for drained < drainBytes {
			n, err := r.Read(buffer)
			if n > 0 {
				*count += m.deliver(w, buffer[:n])
			}
			if err != nil {
				return
			}
			if m.ended.Load() {
				drained += n
				m.extendDeadline(r)
			}
		}
	})
}

// deliver writes the part of chunk that is within the bound and returns its length.
// What is beyond is thrown away, so that the program can still end by itself.
func (m *Copier) deliver(w io.Writer, chunk []byte) int64 {
	select {
	case <-m.Failed:
		return 0
	default:
	}
	if !m.unbound {
		before := m.left.Add(-int64(len(chunk))) + int64(len(chunk))
		if before < int64(len(chunk)) {
			m.once.Do(func() { close(m.Exceeded) })
			chunk = chunk[:max(before, 0)]
		}
	}
	if len(chunk) == 0 {
		return 0
	}
	n, err := w.Write(chunk)
	if err == nil && n < len(chunk) {
		err = io.ErrShortWrite
	}
	if err != nil {
		m.failOnce.Do(func() { m.err = err; close(m.Failed) })
	}
	return int64(n)
}

// Finish is called when the tree is gone: it waits until what is still in the pipes
// is delivered. A pipe that an escaped process keeps open is given up after a delay.
func (m *Copier) Finish() error {
	m.ended.Store(true)
	for _, r := range m.readers {
		m.extendDeadline(r)
	}
	m.copying.Wait()
	select {
	case <-m.Failed:
		return m.err
	default:
		return nil
	}
}

// Abandon is for a program that never started.
func (m *Copier) Abandon() {
	for _, r := range m.readers {
		_ = r.SetReadDeadline(time.Now())
	}
	m.copying.Wait()
}

func (m *Copier) extendDeadline(r *os.File) {
	// It can only fail for a closed file, which nobody reads.
	_ = r.SetReadDeadline(time.Now().Add(m.delay))
}

// Feed copies a reader into the program's standard input.
type Feed struct {
	source io.Reader
	pipe   *os.File
	done   chan struct{}
}

// StartFeed returns the file to give to the program as stdin, and the feed that
// fills it, which is nil if the program reads the file by itself.
func StartFeed(source io.Reader) (*os.File, *Feed, error) {
	switch in := source.(type) {
	case nil:
		file, err := os.Open(os.DevNull)
		return file, nil, err
	case *os.File:
		return in, nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	f := &Feed{source: source, pipe: w, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		// A program need not read to the end.
		_, _ = io.Copy(w, source)
		_ = w.Close()
	}()
	return r, f, nil
}

// Stop ends the feed after the program is gone. A reader that cannot be closed and
// blocks is left to itself after the delay: nothing in Go can interrupt it.
func (f *Feed) Stop(delay time.Duration) {
	if f == nil {
		return
	}
	_ = f.pipe.SetWriteDeadline(time.Now())
	if closer, ok := f.source.(io.Closer); ok {
		_ = closer.Close() // what matters is that it no longer blocks
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-f.done:
	case <-timer.C:
	}
}
