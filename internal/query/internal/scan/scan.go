// Package scan reads traces line by line, on all cores and in flat memory.
//
//  1. A Blocks cuts a stream into blocks of about a mebibyte that end at newlines.
//  2. Parallel hands the blocks to all cores. A LineScanner checks that each line is a JSON object
//     and notes where the parts lie that a question may need: type, lane, message id, usage,
//     content blocks. Nothing is decoded.
//  3. One consumer receives the scanned blocks in the order of the stream.
package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/fit-eval/fit/trace"
)

// Batch is a block whose lines were scanned.
type Batch struct {
	Events   []Event
	Problems []Problem
	Lines    int64 // how many lines it has, blank ones included
	block
	buf   []byte
	parts []Part
	err   error
}

// Problem is a line that could not be used.
type Problem struct {
	Line   int64 // counted from 1
	Reason string
	Torn   bool // it has no end
}

// Filter inspects an event while it is scanned, on any core. It must not keep what it sees.
type Filter func(*Event) bool

// Parallel reads a stream on all cores and hands the scanned blocks to consume in the order of the
// stream. A Batch is reused after consume returns.
func Parallel(ctx context.Context, in *Blocks, keep Filter, consume func(*Batch) error) error {
	workers := runtime.GOMAXPROCS(0)
	ctx, cancel := context.WithCancel(ctx)
	pool := &batchPool{free: make(chan *Batch, 3*workers+2)}
	feed := &feeder{in: in, queue: make(chan chan *Batch, 2*workers)}
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for range workers {
		running.Go(func() {
			var scanner LineScanner
			for feed.one(ctx, pool, &scanner, keep) {
			}
		})
	}
	lines := in.lines
	for {
		var next chan *Batch
		var open bool
		select {
		case next, open = <-feed.queue:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !open {
			return nil
		}
		b := <-next
		if b.err != nil {
			return b.err
		}
		b.number(lines)
		lines += b.Lines
		if err := consume(b); err != nil {
			return err
		}
		pool.put(b)
	}
}

// feeder gives blocks out one after the other. Every block's place in the queue is taken under the
// same lock as its bytes, which keeps the order.
type feeder struct {
	mu    sync.Mutex
	in    *Blocks
	queue chan chan *Batch
	done  bool
}

// one reads and scans one block; false means that there is nothing left to do.
func (f *feeder) one(ctx context.Context, pool *batchPool, scanner *LineScanner, keep Filter) bool {
	f.mu.Lock()
	if f.done || ctx.Err() != nil {
		f.mu.Unlock()
		return false
	}
	b := pool.get()
	b.block, b.buf, b.err = f.in.next(b.buf)
	if errors.Is(b.err, io.EOF) {
		f.done = true
		close(f.queue)
		f.mu.Unlock()
		return false
	}
	failed := b.err != nil
	f.done = failed
	reply := make(chan *Batch, 1)
	select {
	case f.queue <- reply:
	case <-ctx.Done():
		f.mu.Unlock()
		return false
	}
	f.mu.Unlock()
	if !failed {
		b.scan(scanner, keep)
	}
	reply <- b // from here on the batch belongs to the consumer
	return !failed
}

type batchPool struct{ free chan *Batch }

func (p *batchPool) get() *Batch {
	select {
	case b := <-p.free:
		return b
	default:
		return &Batch{}
	}
}

func (p *batchPool) put(b *Batch) {
	select {
	case p.free <- b:
	default:
	}
}

// number turns line numbers of the block into line numbers of the stream.
func (b *Batch) number(before int64) {
	for i := range b.Events {
		b.Events[i].Line += before
	}
	for i := range b.Problems {
		b.Problems[i].Line += before
	}
}

// scan takes the lines of a block apart.
func (b *Batch) scan(s *LineScanner, keep Filter) {
	b.Events, b.parts, b.Problems, b.Lines = b.Events[:0], b.parts[:0], b.Problems[:0], 0
	if b.tooLong {
		b.Lines = 1
		b.problem(tooLong, false)
		return
	}
	for start := 0; start < len(b.data); {
		end, terminated := len(b.data), false
		if n := bytes.IndexByte(b.data[start:], '\n'); n >= 0 {
			end, terminated = start+n, true
		}
		b.Lines++
		b.line(s, start, end, terminated, keep)
		start = end + 1
	}
}

var tooLong = fmt.Sprintf("longer than %d bytes", trace.MaxLine)

func (b *Batch) problem(reason string, torn bool) {
	b.Problems = append(b.Problems, Problem{Line: b.Lines, Reason: reason, Torn: torn})
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func (b *Batch) line(s *LineScanner, start, end int, terminated bool, keep Filter) {
	if b.offset == 0 && start == 0 && bytes.HasPrefix(b.data, byteOrderMark) {
		start += len(byteOrderMark)
	}
	if end > start && b.data[end-1] == '\r' {
		end--
	}
	line := b.data[start:end:end]
	if len(line) > trace.MaxLine {
		b.problem(tooLong, false)
		return
	}
	b.Events = append(b.Events, Event{Line: b.Lines, Offset: b.offset + int64(start)})
	ev := &b.Events[len(b.Events)-1]
	if s.Scan(line, ev, &b.parts) {
		ev.Keep = keep == nil || keep(ev)
		return
	}
	b.Events = b.Events[:len(b.Events)-1]
	switch {
	case len(bytes.TrimSpace(line)) == 0:
	case terminated:
		b.problem("not a JSON object", false)
	default:
		b.problem("torn: the line has no end", true)
	}
}
