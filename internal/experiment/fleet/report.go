package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/ledger"
)

// inlineRecord is the size up to which a record is a part of the message.
const inlineRecord = 256 << 10

// inlineTree is the size up to which the files of an attempt are a part of the message.
const inlineTree = 32 << 10

func (p *workPool) result(l *leased) done {
	return done{
		Protocol: Protocol,
		Name:     l.work.name(),
		Ticket:   l.work.Ticket,
		Worker:   p.about.Name,
		Nonce:    l.nonce,
		Host:     p.about.Host,
		SentMs:   p.cfg.Now().UnixMilli(),
	}
}

// report sends the record of an attempt and what it left.
func (p *workPool) report(l *leased, record ledger.Record, dir string) {
	result := p.result(l)
	err := l.retry(func(ctx context.Context) error {
		if _, there := os.Stat(dir); dir != "" && there == nil {
			if err := l.putFiles(ctx, &result, dir); err != nil {
				return err
			}
		}
		content, err := json.Marshal(record)
		switch {
		case err != nil:
			return err
		case len(content) > maxRecord:
			return errTooLarge
		case len(content) <= inlineRecord:
			result.Record = content
			return nil
		}
		result.RecordFile, err = l.putFile(ctx, bytes.NewReader(content))
		return err
	})
	switch {
	case err == nil:
		p.send(l, result)
	case isFull(err), errors.Is(err, errTooLarge):
		result.File, result.Tree, result.SHA256, result.RecordFile = nil, nil, "", nil
		if result.Record, err = json.Marshal(withoutFiles(&record, err)); err == nil {
			p.send(l, result)
		}
	}
}

// isFull reports whether a hub has no room: its account, memory or disk is used up.
func isFull(err error) bool {
	refused, ok := errors.AsType[*jetstream.APIError](err)
	return ok && slices.Contains([]jetstream.ErrorCode{10002, 10023, 10028, 10047}, refused.ErrorCode)
}

// cannotWrite reports whether a hub could not store something, which passes once its disk has
// space: it says so, or it does not answer.
func cannotWrite(err error) bool {
	refused, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (refused.ErrorCode == 10077 || strings.Contains(refused.Description, "no space")) ||
		isAny(err, context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse)
}

// withoutFiles returns the record of an attempt whose files the hub did not accept: its verdict has
// no evidence, but its cost is known.
func withoutFiles(r *ledger.Record, err error) ledger.Record {
	return ledger.Record{
		Verdict:       ledger.Error,
		ErrorClass:    ledger.ErrorResources,
		ErrorMessage:  fmt.Sprintf("the hub did not accept the attempt's files: %v", err),
		CostUSD:       r.CostUSD,
		CostBreakdown: r.CostBreakdown,
		CostSource:    r.CostSource,
		Tokens:        r.Tokens,
		Turns:         r.Turns,
		Model:         r.Model,
		Agent:         r.Agent,
		AgentVersion:  r.AgentVersion,
		Isolation:     r.Isolation,
		StartMs:       r.StartMs,
		EndMs:         r.EndMs,
		DurationMs:    r.DurationMs,
	}
}

// putFiles puts what an attempt left into its result, or into a file where it is large.
func (l *leased) putFiles(ctx context.Context, result *done, dir string) error {
	inline := &bounded{left: inlineTree}
	hash, plain, err := packTree(inline, dir, nil)
	if err == nil {
		result.Tree, result.SHA256 = inline.Bytes(), hash
		return checkResult(int64(inline.Len()), plain)
	}
	if !errors.Is(err, errTooLarge) {
		return err
	}
	reader, writer := io.Pipe()
	var packing sync.WaitGroup
	packing.Go(func() {
		var err error
		result.SHA256, plain, err = packTree(writer, dir, nil)
		_ = writer.CloseWithError(err) // nil is the end of the file
	})
	result.File, err = l.putFile(ctx, reader)
	_ = reader.Close() // packing ends if the hub did not take everything
	packing.Wait()
	if err != nil {
		return err
	}
	return checkResult(result.File.Size, plain)
}

// checkResult makes sure that a coordinator accepts what an attempt left.
func checkResult(packed, plain int64) error {
	if plain > resultLimit(packed) {
		return errTooLarge
	}
	return nil
}

// putFile sends something that is too large for a message.
func (l *leased) putFile(ctx context.Context, from io.Reader) (*file, error) {
	sent := &file{Name: newNonce()}
	var err error
	hub := l.pool.cfg.Hub
	sent.Size, err = hub.putChunks(ctx, fileSubject(l.work.Run, hub.public, sent.Name), from)
	return sent, err
}

// ackTries is how often a worker tries to remove an attempt from the queue.
const ackTries = 3

// send puts a result into the stream of results and then removes the attempt from the queue.
func (p *workPool) send(l *leased, result done) {
	result.SentMs = p.cfg.Now().UnixMilli()
	var message *nats.Msg
	content, err := json.Marshal(result)
	if err == nil {
		message, err = p.cfg.Hub.signed(doneSubject(l.work.Run, p.cfg.Hub.public, l.work.token()), content)
	}
	if err != nil {
		p.cfg.Note(fmt.Sprintf("%s: %v", result.Name, err))
		return
	}
	err = l.retry(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, min(5*time.Second, l.lease()/2))
		defer cancel()
		_, err := p.cfg.Hub.js.PublishMsg(ctx, message, jetstream.WithMsgID(l.nonce))
		return err
	})
	if err != nil {
		p.cfg.Note(fmt.Sprintf("%s: its result was not reported: %v", result.Name, err))
		return
	}
	for try := 0; try < ackTries && l.held.Err() == nil; try++ { // else the next worker does it
		ctx, cancel := context.WithTimeout(l.held, min(5*time.Second, l.lease()/2))
		err := l.current().DoubleAck(ctx)
		cancel()
		if err == nil {
			return
		}
		pause(l.held)
	}
}
