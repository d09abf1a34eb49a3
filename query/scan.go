package query

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

// batch is a block whose lines were scanned.
type batch struct {
	block
	buf      []byte
	events   []event
	parts    []part
	lines    int32
	problems []lineProblem
	err      error
}

// lineProblem is a line that could not be used, counted from the start of its block.
type lineProblem struct {
	line   int32
	reason string
	torn   bool
}

// filter looks at an event while it is scanned, on whichever core that happens. It must not keep
// what it sees.
type filter func(ev *event, data []byte) bool

// parallelScan reads a stream on all cores and hands the scanned blocks to consume in the order of
// the stream. A batch is reused after consume returns.
func parallelScan(ctx context.Context, in *blockReader, keep filter, consume func(*batch) error) error {
	workers := runtime.GOMAXPROCS(0)
	ctx, cancel := context.WithCancel(ctx)
	pool := &batchPool{free: make(chan *batch, 3*workers+2)}
	feed := &feeder{in: in, queue: make(chan chan *batch, 2*workers)}
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for range workers {
		running.Go(func() {
			scanner := newLineScanner()
			for feed.one(ctx, pool, scanner, keep) {
			}
		})
	}
	for {
		var next chan *batch
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
	in    *blockReader
	queue chan chan *batch
	done  bool
}

// one reads and scans one block; false means that there is nothing left to do.
func (f *feeder) one(ctx context.Context, pool *batchPool, scanner *lineScanner, keep filter) bool {
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
	reply := make(chan *batch, 1)
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

type batchPool struct{ free chan *batch }

func (p *batchPool) get() *batch {
	select {
	case b := <-p.free:
		return b
	default:
		return &batch{}
	}
}

func (p *batchPool) put(b *batch) {
	select {
	case p.free <- b:
	default:
	}
}

// scan takes the lines of a block apart.
func (b *batch) scan(s *lineScanner, keep filter) {
	b.events, b.parts, b.problems, b.lines = b.events[:0], b.parts[:0], b.problems[:0], 0
	if b.tooLong > 0 {
		b.lines = 1
		b.problems = append(b.problems, lineProblem{reason: fmt.Sprintf("longer than %d bytes", trace.MaxLine)})
		return
	}
	for start := 0; start < len(b.data); b.lines++ {
		end, terminated := len(b.data), false
		if n := bytes.IndexByte(b.data[start:], '\n'); n >= 0 {
			end, terminated = start+n, true
		}
		b.line(s, start, end, terminated, keep)
		start = end + 1
	}
}

func (b *batch) line(s *lineScanner, start, end int, terminated bool, keep filter) {
	if b.offset == 0 && start == 0 && bytes.HasPrefix(b.data, byteOrderMark) {
		start += len(byteOrderMark)
	}
	if end-start > trace.MaxLine {
		b.problems = append(b.problems,
			lineProblem{line: b.lines, reason: fmt.Sprintf("longer than %d bytes", trace.MaxLine)})
		return
	}
	b.events = append(b.events, event{line: b.lines})
	ev := &b.events[len(b.events)-1]
	if s.scan(b.data, start, end, ev, &b.parts) {
		ev.keep = keep == nil || keep(ev, b.data)
		return
	}
	b.events = b.events[:len(b.events)-1]
	if blank(b.data[start:end]) {
		return
	}
	problem := lineProblem{line: b.lines, reason: "not a JSON object", torn: !terminated}
	if !terminated {
		problem.reason = "torn: the line has no end"
	}
	b.problems = append(b.problems, problem)
}
