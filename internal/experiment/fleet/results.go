package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/ledger"
)

// The files of results that came after another one of the same attempt.
const (
	duplicatesFile = "duplicates.jsonl"
	duplicatesDir  = "duplicates"
)

// clockTolerance is how far a worker's clock may be off before its times are corrected.
const clockTolerance = 5 * time.Second

// readResults reads the stream of results from its beginning, for as long as the executor lives.
func (e *Executor) readResults(ctx context.Context) {
	for ctx.Err() == nil {
		e.readStream(ctx)
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// readStream reads until the stream cannot be read any more.
func (e *Executor) readStream(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.mu.Lock()
	from, stream := e.read, e.done
	e.reread = cancel
	e.mu.Unlock()
	cfg := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy, MaxResetAttempts: 2}
	if from > 0 {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, from+1
	}
	consumer, err := stream.OrderedConsumer(ctx, cfg)
	if err != nil {
		return
	}
	messages, err := consumer.Messages(jetstream.PullExpiry(5*time.Second), jetstream.PullHeartbeat(time.Second))
	if err != nil {
		return
	}
	defer messages.Stop()
	for {
		message, err := messages.Next(jetstream.NextContext(ctx))
		switch {
		case errors.Is(err, jetstream.ErrNoHeartbeat) && ctx.Err() == nil:
			continue
		case err != nil:
			return
		}
		e.take(ctx, message)
	}
}

// take handles one message of the stream of results.
func (e *Executor) take(ctx context.Context, message jetstream.Msg) {
	meta, err := message.Metadata()
	if err != nil {
		return
	}
	result, tok, err := e.readResult(message.Subject(), message.Headers(), message.Data(), meta.Timestamp)
	switch {
	case tok == markToken:
	case err != nil:
		e.noteOnce("garbage "+result.key, fmt.Sprintf("results of key %s are ignored: %v", result.key, err))
		e.mu.Lock()
		e.garbage[result.key]++
		e.mu.Unlock()
	case e.floods(result.key):
	default:
		e.sort(ctx, tok, arrival{done: result, sequence: meta.Sequence.Stream, stored: meta.Timestamp})
	}
	e.mu.Lock()
	e.read = meta.Sequence.Stream
	e.mu.Unlock()
}

// maxGarbage is how many messages of a key may be no results before nothing of it is kept any more.
const maxGarbage = 100

func (e *Executor) floods(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.garbage[key] > maxGarbage
}

// drop removes what keys that flood the hub have sent.
func (e *Executor) drop(ctx context.Context) error {
	e.mu.Lock()
	keys := slices.Collect(maps.Keys(e.garbage))
	results, files := e.done, e.files
	e.mu.Unlock()
	for _, key := range keys {
		if !e.floods(key) {
			continue
		}
		e.noteOnce("flood "+key, fmt.Sprintf("key %s floods the hub: nothing of it is kept; fit fleet key revoke ends "+
			"that", key))
		err := cmp.Or(results.Purge(ctx, jetstream.WithPurgeSubject(doneSubject(e.run, key, "*"))),
			files.Purge(ctx, jetstream.WithPurgeSubject(fileSubject(e.run, key, "*"))))
		if err != nil {
			return err
		}
	}
	return e.dropFiles(ctx, files)
}

// dropFiles removes files that no result names, once there are many: those that have not been
// written to for some time, as their worker has died, and all of a key that has too many, besides
// what the attempts may leave that the key has.
func (e *Executor) dropFiles(ctx context.Context, files jetstream.Stream) error {
	info, err := files.Info(ctx)
	if err != nil || info.State.Msgs <= e.maxFiles {
		return err
	}
	if info, err = files.Info(ctx, jetstream.WithSubjectFilter(fileSubject(e.run, "*", "*"))); err != nil {
		return err
	}
	unnamed := info.State.Subjects
	allowed := map[string]uint64{}
	e.mu.Lock()
	for _, result := range e.arrived {
		for _, f := range []*file{result.File, result.RecordFile} {
			if f != nil {
				delete(unnamed, fileSubject(e.run, result.key, f.Name))
			}
		}
	}
	for _, own := range e.waiting {
		for key := range own.held {
			allowed[key] += e.maxFiles / 8
		}
	}
	e.mu.Unlock()
	chunks := map[string]uint64{}
	for subject, n := range unnamed {
		last, err := files.GetLastMsgForSubject(ctx, subject)
		if err == nil && info.TimeStamp.Sub(last.Time) > 2*e.cfg.Lease {
			err = files.Purge(ctx, jetstream.WithPurgeSubject(subject))
		} else if err == nil {
			chunks[strings.Split(subject, ".")[3]] += n
		}
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, n := range chunks {
		if n > e.maxFiles+allowed[key] {
			e.garbage[key] += maxGarbage + 1 // it is dropped with the rest next time
		}
	}
	return nil
}

// readResult reads the message of a result: it must be signed by the worker whose subject it has,
// and that worker must have been given the attempt.
func (e *Executor) readResult(subject string, header nats.Header, content []byte, stored time.Time) (result done,
	tok string, err error,
) {
	parts := strings.Split(subject, ".") // fit.done.RUN.KEY.TOKEN
	if len(parts) != 5 {
		return result, "", errors.New("it has no sender")
	}
	key, tok := parts[3], parts[4]
	switch {
	case tok == markToken:
	case len(content) > maxMessage:
		err = errors.New("it is too large")
	case checkSigned(key, subject, header, content) != nil:
		err = errSignature
	case json.Unmarshal(content, &result) != nil || !result.valid(tok, e.secret):
		result, err = done{}, errors.New("it is not one of an attempt that was given to its sender")
	}
	result.key, result.bytes = key, len(content)
	result.compareClocks(stored)
	return result, tok, err
}

// maxHeld bounds what a coordinator keeps of results that it has read and not sealed. A coordinator
// that replaces another may find thousands.
const maxHeld = 16 << 20

// sort decides what a result is: the first of its attempt, the same one again, or a duplicate.
func (e *Executor) sort(ctx context.Context, tok string, result arrival) {
	e.mu.Lock()
	if e.refusedOf(tok, result.key) >= maxRefused { // else its results would replace those of others forever
		e.mu.Unlock()
		return
	}
	first, known := e.arrived[tok]
	before, sealed := e.sealed[result.Name]
	if !known && !sealed {
		kept := result
		if e.held+result.size() > e.maxHeld {
			kept.Record, kept.Tree, kept.Probes, kept.onHubOnly = nil, nil, nil, true
			kept.Error, kept.bytes = "", 0
		}
		e.held += kept.size()
		e.arrived[tok] = kept
		if own := e.waiting[tok]; own != nil && own.err == nil {
			close(own.over) // there is only one first
		}
	}
	e.mu.Unlock()
	switch {
	case known && first.Nonce != result.Nonce:
		e.keepDuplicate(ctx, tok, result.done, first.Worker)
	case !known && sealed && !e.isRecordOf(ctx, result.done, before):
		e.keepDuplicate(ctx, tok, result.done, before.Worker)
	}
}

// maxRefused is how many results of an attempt are looked at that have one key.
const maxRefused = 10

// refusedOf counts the results of an attempt with a key that were refused. The caller has the lock.
func (e *Executor) refusedOf(tok, key string) (n int) {
	for _, refused := range e.refused[tok] {
		if refused == key {
			n++
		}
	}
	return n
}

// size returns how much memory a result takes.
func (d *done) size() int { return d.bytes }

// fetchWhole returns a result with all of its parts, and when the hub got it.
func (e *Executor) fetchWhole(ctx context.Context, came arrival) (done, time.Time, error) {
	if !came.onHubOnly {
		return came.done, came.stored, nil
	}
	e.mu.Lock()
	stream := e.done
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	message, err := stream.GetMsg(ctx, came.sequence)
	var result done
	if err == nil {
		result, _, err = e.readResult(message.Subject, message.Header, message.Data, message.Time)
	}
	if err == nil && result.Nonce != came.Nonce { // the stream was recreated
		err = jetstream.ErrMsgNotFound
	}
	if err != nil {
		return done{}, time.Time{}, fmt.Errorf("its message: %w", err)
	}
	return result, message.Time, nil
}

// isRecordOf reports whether a result is the one that a record of the ledger was made from.
func (e *Executor) isRecordOf(ctx context.Context, result done, r ledger.Record) bool {
	record, err := e.recordOf(ctx, result)
	return err == nil && result.Worker == r.Worker && record.DurationMs == r.DurationMs && record.StartMs == r.StartMs
}

// compareClocks notes by how much the clock of the worker differs from the hub's.
func (d *done) compareClocks(stored time.Time) {
	if off := stored.Sub(time.UnixMilli(d.SentMs)); d.SentMs != 0 && off.Abs() >= clockTolerance {
		d.off = off
	}
}

// correct moves the times of a record to the hub's clock where the worker's is off.
func (d *done) correct(record *ledger.Record) {
	if d.off == 0 {
		return
	}
	times := []*int64{&record.StartMs, &record.EndMs}
	if record.Verify != nil {
		times = append(times, &record.Verify.StartMs, &record.Verify.EndMs)
	}
	for _, at := range times {
		if *at != 0 { // else nobody has noted it
			*at += d.off.Milliseconds()
		}
	}
	record.Notes = append(record.Notes, fmt.Sprintf("the clock of worker %s is off by %s; the record's times were "+
		"corrected", d.Worker, d.off.Round(time.Second)))
}

// duplicate is a line of duplicatesFile.
type duplicate struct {
	Name    string          `json:"name"` // of the attempt
	Worker  string          `json:"worker"`
	Counted string          `json:"counted"`       // the worker whose record counts
	Key     string          `json:"key,omitempty"` // that signed it
	AtMs    int64           `json:"atMs"`
	Dir     string          `json:"dir,omitempty"` // what it left, relative to the run directory
	Record  json.RawMessage `json:"record,omitempty"`
}

// maxDuplicates is how many results of an attempt are kept besides the one that counts.
const maxDuplicates = 3

// keepDuplicate keeps a result that came after the first one of its attempt, beside the ledger. Its
// name is one of the plan: only the coordinator can make the ticket of a name.
func (e *Executor) keepDuplicate(ctx context.Context, tok string, result done, counted string) {
	e.mu.Lock()
	e.duplicates[tok]++
	many := e.duplicates[tok] > maxDuplicates
	e.mu.Unlock()
	if many {
		e.noteOnce("duplicates "+result.key, fmt.Sprintf("key %s sends result after result of %s; they are not kept",
			result.key, result.Name))
		return
	}
	line := duplicate{
		Name:    result.Name,
		Worker:  result.Worker,
		Key:     result.key,
		Counted: counted,
		AtMs:    time.Now().UnixMilli(),
		Record:  result.Record,
	}
	dir := filepath.ToSlash(filepath.Join(duplicatesDir, filepath.FromSlash(result.Name)+"-"+result.Nonce))
	if !filepath.IsLocal(filepath.FromSlash(dir)) || !isNonce(result.Nonce) {
		return
	}
	if _, err := os.Stat(filepath.Join(e.cfg.Dir, filepath.FromSlash(dir))); err == nil {
		return // it was kept by an earlier process
	}
	err := e.unpackResult(ctx, result, dir)
	if err == nil && (result.File != nil || len(result.Tree) > 0) {
		line.Dir = dir
	}
	content, jsonErr := json.Marshal(line)
	if err = errors.Join(err, jsonErr); err == nil {
		err = appendLine(filepath.Join(e.cfg.Dir, duplicatesFile), content)
	}
	if err != nil {
		e.cfg.Note(fmt.Sprintf("a second result of %s, by worker %s, was not kept: %v", result.Name, result.Worker,
			err))
		return
	}
	e.cfg.Note(fmt.Sprintf("a second result of %s came from worker %s; the first one counts, and this one is in %s",
		result.Name, result.Worker, duplicatesFile))
}

func appendLine(name string, line []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// Sealed informs the executor that the ledger has a record: the hub need not keep its result.
func (e *Executor) Sealed(r *ledger.Record) {
	e.mu.Lock()
	tok := token(r.RunDir)
	result, known := e.arrived[tok]
	delete(e.since, tok)
	if known {
		e.held -= result.size()
		e.arrived[tok] = arrival{
			done:   done{Name: result.Name, Worker: result.Worker, Nonce: result.Nonce},
			stored: result.stored,
		}
	}
	files := e.files
	e.mu.Unlock()
	if !known || result.File == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	// it is removed with the experiment at the latest
	_ = files.Purge(ctx, jetstream.WithPurgeSubject(fileSubject(e.run, result.key, result.File.Name)))
}

// markToken names the messages that catchUp puts into the stream of results.
const markToken = "mark"

// catchUp waits until every result that the hub has by now is read, and looks at the hub's clock.
func (e *Executor) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	sent := time.Now()
	mark, err := e.cfg.Hub.js.Publish(ctx, doneSubject(e.run, markToken, markToken), nil)
	if err != nil {
		return err
	}
	e.mu.Lock()
	stream := e.done
	e.mu.Unlock()
	stored, err := stream.GetMsg(ctx, mark.Sequence)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.ahead = stored.Time.Sub(sent)
	e.mu.Unlock()
	for {
		e.mu.Lock()
		read := e.read
		e.mu.Unlock()
		if read >= mark.Sequence {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
