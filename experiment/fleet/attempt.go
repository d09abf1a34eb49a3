package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/experiment/local"
	"github.com/fit-eval/fit/ledger"
)

// How often an attempt is given to another worker before it is an error, and how long one waits
// that prefers another worker.
const (
	maxDeliveries = 10
	maxAvoided    = 5
	avoidDelay    = 300 * time.Millisecond
	troubleDelay  = 2 * time.Second
	holdDelay     = 2 * capsEvery // by then every worker knows that the pool is on hold
)

// inlineRecord is the size up to which a record is a part of the message.
const inlineRecord = 256 << 10

// inlineTree is the size up to which the files of an attempt are a part of the message.
const inlineTree = 32 << 10

// workPool is a pool as a worker sees it. Its executor is made with the first attempt.
type workPool struct {
	*worker
	info     poolInfo
	ctx      context.Context // ends when the pool is retired and idle, or the worker ends
	cancels  *nats.Subscription
	ready    sync.Mutex
	loaded   *loaded
	users    sync.WaitGroup
	consumer jetstream.Consumer
	results  jetstream.Stream // looked up with the first attempt
	// notBefore is when attempts are pulled again.
	notBefore time.Time
}

// loaded is an experiment on this machine.
type loaded struct {
	attempts Attempts
	files    jetstream.ObjectStore
	trees    jetstream.ObjectStore
	spec     *portable
	warm     bool
}

func newWorkPool(ctx context.Context, w *worker, info poolInfo) *workPool {
	p := &workPool{worker: w, info: info, ctx: ctx}
	// without it an attempt is not cancelled and runs to its end
	p.cancels, _ = w.cfg.Hub.nc.Subscribe(cancelSubject(info.Run), func(message *nats.Msg) {
		var asked cancellation
		if json.Unmarshal(message.Data, &asked) != nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if l := w.running[info.Run+"/"+asked.Name]; l != nil {
			l.cancel(errCancelled)
		}
	})
	return p
}

// Why an attempt is ended before its time.
var (
	errCancelled = errors.New("the coordinator cancelled the attempt")
	errFenced    = errors.New("the hub confirmed no progress for the time of the lease")
)

// retire closes the pool when its attempts are over.
func (p *workPool) retire() {
	p.tasks.Go(func() {
		p.users.Wait()
		p.close()
	})
}

func (p *workPool) close() {
	p.ready.Lock()
	defer p.ready.Unlock()
	if p.cancels != nil {
		_ = p.cancels.Unsubscribe() // the connection may be closed
	}
	if p.loaded != nil && p.loaded.attempts != nil {
		if err := p.loaded.attempts.Close(); err != nil {
			p.cfg.Note(fmt.Sprintf("remove the workspaces of %s: %v", p.info.Title, err))
		}
		p.loaded = nil
	}
}

// fetch waits for an attempt; 0 only looks.
func (p *workPool) fetch(ctx context.Context, wait time.Duration) jetstream.Msg {
	if p.consumer == nil {
		consumer, err := p.cfg.Hub.js.Consumer(ctx, p.info.stream(), consumerName)
		if err != nil {
			pause(ctx)
			return nil
		}
		p.consumer = consumer
	}
	var batch jetstream.MessageBatch
	var err error
	if wait == 0 {
		batch, err = p.consumer.FetchNoWait(1)
	} else {
		waiting, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		batch, err = p.consumer.Fetch(1, jetstream.FetchContext(waiting))
	}
	if err != nil {
		pause(ctx)
		return nil
	}
	began := time.Now()
	message := <-batch.Messages() // it is closed when the context ends
	if message == nil && batch.Error() != nil && time.Since(began) < waitIdle {
		pause(ctx) // a stream that is gone answers at once
	}
	return message
}

// pause waits a moment before something is tried again.
func pause(ctx context.Context) {
	select {
	case <-time.After(waitIdle):
	case <-ctx.Done():
	}
}

// attempt makes one attempt and reports it.
func (p *workPool) attempt(ctx context.Context, message jetstream.Msg) {
	p.users.Add(1)
	defer p.users.Done()
	var w work
	meta, err := message.Metadata()
	if err == nil {
		err = json.Unmarshal(message.Data(), &w)
	}
	if err != nil || w.Protocol != Protocol || w.Run != p.info.Run {
		p.cfg.Note("a message that is not valid was dropped")
		_ = message.Term() // nobody could read it
		return
	}
	if p.hasResult(ctx, &w) {
		_ = message.Ack() // its worker could not
		return
	}
	if p.onHold(ctx) {
		_ = message.NakWithDelay(holdDelay)
		return
	}
	if slices.Contains(w.Avoid, p.about.Name) && meta.NumDelivered <= maxAvoided && p.othersCan(ctx) {
		p.mu.Lock()
		p.notBefore = time.Now().Add(2 * avoidDelay) // so that another worker gets it
		p.mu.Unlock()
		_ = message.NakWithDelay(avoidDelay) // it comes again after the lease at the latest
		return
	}
	l := p.lease(ctx, &w, message)
	defer l.end()
	if meta.NumDelivered > maxDeliveries {
		p.report(l, ledger.Record{
			Verdict:      ledger.Error,
			ErrorClass:   ledger.ErrorInternal,
			ErrorMessage: fmt.Sprintf("%d workers began this attempt and none finished it", meta.NumDelivered-1),
		}, "")
		return
	}
	p.make(l)
}

// hasResult reports whether an attempt has a result: the worker that made it could not take it out
// of the queue.
func (p *workPool) hasResult(ctx context.Context, w *work) bool {
	p.ready.Lock()
	if p.results == nil {
		p.results, _ = p.cfg.Hub.js.Stream(ctx, doneStream(w.Run)) // tried again
	}
	stream := p.results
	p.ready.Unlock()
	if stream == nil {
		return false
	}
	message, err := stream.GetLastMsgForSubject(ctx, doneSubject(w.Run, w.token()))
	var result done
	return err == nil && json.Unmarshal(message.Data, &result) == nil && result.valid(w.token())
}

// onHold reports whether no attempt of the pool may begin. The list of pools may be older.
func (p *workPool) onHold(ctx context.Context) bool {
	kv, err := p.cfg.Hub.bucket(ctx, fleetBucket)
	if err != nil {
		return true
	}
	entry, err := kv.Get(ctx, p.info.key())
	var now poolInfo
	if err != nil || json.Unmarshal(entry.Value(), &now) != nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info.Hold = now.Hold
	return now.Hold
}

// othersCan reports whether another worker can make the attempts of the pool.
func (p *workPool) othersCan(ctx context.Context) bool {
	workers, err := p.cfg.Hub.Workers(ctx)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(workers, func(w Worker) bool {
		return w.Name != p.about.Name && !w.Draining && w.Trouble == "" && w.Lacks(p.info.Needs) == ""
	})
}

// make makes an attempt on this machine.
func (p *workPool) make(l *leased) {
	here, err := p.load(l.ctx, l)
	if err == nil && l.work.Probe {
		p.probe(l, here)
		return
	}
	var record ledger.Record
	sink := p.sinkDir(l.work.name())
	if err == nil {
		_ = local.RemoveAll(sink) // the same attempt may have been here before
		record, err = here.attempts.Execute(l.ctx, l.work.Cell, l.work.Attempt)
	}
	defer func() { _ = local.RemoveAll(sink) }() // the next start removes what stays
	switch {
	case errors.Is(context.Cause(l.ctx), errFenced):
		p.cfg.Note(fmt.Sprintf("%s: gave up: %v", l.work.name(), errFenced))
		return
	case err != nil:
		record = ledger.Record{
			Verdict:      ledger.Error,
			ErrorClass:   ledger.ErrorInternal,
			ErrorMessage: fmt.Sprintf("worker %s: %v", p.about.Name, err),
		}
	case record.ErrorClass == ledger.ErrorResources:
		// this machine's lack is nothing about the cell
		p.mu.Lock()
		p.trouble = record.ErrorMessage
		p.mu.Unlock()
		p.cfg.Note(l.work.name() + ": given back: " + record.ErrorMessage)
		_ = l.message.NakWithDelay(troubleDelay)
		return
	}
	p.report(l, record, sink)
}

// probe asks every arm's model for one reply.
func (p *workPool) probe(l *leased, here *loaded) {
	result := p.result(l)
	err := here.attempts.Check(l.ctx)
	if err == nil {
		err = here.attempts.Probe(l.ctx, func(probe experiment.Probe) error {
			result.Probes = append(result.Probes, probe)
			return nil
		})
	}
	if err != nil {
		result.Error = err.Error()
	}
	p.send(l, result)
}

func (p *workPool) sinkDir(name string) string {
	return filepath.Join(p.dir, "attempts", p.info.Run, filepath.FromSlash(name))
}

// AttemptDir implements experiment.Sink. Everything that the worker keeps is hidden from agents.
func (p *workPool) AttemptDir(runDir string) string {
	if runDir == "" {
		return p.cfg.Dir
	}
	return p.sinkDir(runDir)
}

// Keep implements experiment.Sink: what attempts leave is sent with their record.
func (p *workPool) Keep(string) error { return nil }

func (p *workPool) result(l *leased) done {
	return done{
		Protocol: Protocol,
		Name:     l.work.name(),
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
		here, err := p.load(ctx, l)
		if err != nil {
			return err
		}
		if _, there := os.Stat(dir); dir != "" && there == nil {
			if err := l.putFiles(ctx, here, &result, dir); err != nil {
				return err
			}
		}
		content, err := json.Marshal(record)
		if err != nil {
			return err
		}
		if len(content) <= inlineRecord {
			result.Record = content
			return nil
		}
		result.RecordObject = l.work.token() + "-" + l.nonce + "-record"
		_, err = here.files.PutBytes(ctx, result.RecordObject, content)
		return err
	})
	switch {
	case err == nil:
		p.send(l, result)
	case isFull(err):
		result.Object, result.SHA256, result.RecordObject = "", "", ""
		if result.Record, err = json.Marshal(withoutFiles(&record, err)); err == nil {
			p.send(l, result)
		}
	}
}

// isFull reports whether a hub has no room: its account, memory or disk is used up, or it cannot
// write.
func isFull(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) &&
		slices.Contains([]jetstream.ErrorCode{10002, 10023, 10028, 10047, 10077}, refused.ErrorCode)
}

// withoutFiles is the record of an attempt whose files the hub did not take: its verdict has no
// evidence, but what it cost is known.
func withoutFiles(r *ledger.Record, err error) ledger.Record {
	return ledger.Record{
		Verdict:       ledger.Error,
		ErrorClass:    ledger.ErrorResources,
		ErrorMessage:  fmt.Sprintf("the hub did not take what the attempt left: %v", err),
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

// putFiles puts what an attempt left into its result, or into an object where it is large.
func (l *leased) putFiles(ctx context.Context, here *loaded, result *done, dir string) error {
	packed := &bounded{left: inlineTree}
	hash, err := packTree(packed, dir, nil)
	if err == nil {
		result.Tree, result.SHA256 = packed.Bytes(), hash
		return nil
	}
	if !errors.Is(err, errTooLarge) {
		return err
	}
	result.Object = l.work.token() + "-" + l.nonce
	result.SHA256, err = putTree(ctx, here.files, result.Object, dir, nil)
	return err
}

// send puts a result into the stream of results and takes the attempt out of the queue, in this
// order.
func (p *workPool) send(l *leased, result done) {
	result.SentMs = p.cfg.Now().UnixMilli()
	content, err := json.Marshal(result)
	if err != nil {
		p.cfg.Note(fmt.Sprintf("%s: %v", result.Name, err))
		return
	}
	err = l.retry(func(ctx context.Context) error {
		_, err := p.cfg.Hub.js.Publish(ctx, doneSubject(l.work.Run, l.work.token()), content,
			jetstream.WithMsgID(l.nonce))
		return err
	})
	if err != nil {
		p.cfg.Note(fmt.Sprintf("%s: its result was not reported: %v", result.Name, err))
		return
	}
	_ = l.retry(func(ctx context.Context) error { return l.message.DoubleAck(ctx) }) // else the next worker does it
}

// load makes the executor of the pool, once, and fetches the files that an attempt needs.
func (p *workPool) load(ctx context.Context, l *leased) (*loaded, error) {
	p.ready.Lock()
	defer p.ready.Unlock()
	if p.loaded == nil {
		here, err := p.open(ctx)
		if err != nil {
			return nil, fmt.Errorf("load the experiment: %w", err)
		}
		p.loaded = here
	}
	return p.loaded, p.fetchTrees(ctx, p.loaded, &l.work)
}

func (p *workPool) open(ctx context.Context) (*loaded, error) {
	files, err := p.cfg.Hub.js.ObjectStore(ctx, filesBucket(p.info.Run))
	if err != nil {
		return nil, err
	}
	content, err := files.GetBytes(ctx, p.info.Spec)
	if err != nil {
		return nil, err
	}
	spec := &portable{}
	if err := json.Unmarshal(content, spec); err != nil {
		return nil, err
	}
	if err := spec.unpack(p.trees.dir, filepath.Join(p.dir, "empty"), p.environ); err != nil {
		return nil, err
	}
	spec.only(p.info.Arms)
	if spec.Prepared.Isolation == "" {
		spec.Prepared.Isolation = p.info.Needs.Isolation
	}
	trees, err := p.cfg.Hub.js.ObjectStore(ctx, treesBucket)
	if err != nil {
		return nil, err
	}
	here := &loaded{files: files, trees: trees, spec: spec}
	here.attempts, err = p.cfg.Executor(p.ctx, Job{
		Prepared: spec.Prepared,
		Sink:     p,
		Faults:   spec.Faults,
		Dir:      filepath.Join(p.dir, "jobs", strconv.FormatInt(p.jobs.Add(1), 10)),
	})
	return here, err
}

// fetchTrees makes sure that the files of a cell are here. Where tasks want warm build caches,
// those of all tasks are fetched, once.
func (p *workPool) fetchTrees(ctx context.Context, here *loaded, w *work) error {
	wanted := slices.Clone(here.spec.Shared)
	arms := []string{w.Cell.Arm}
	tasks := []string{w.Cell.TaskID}
	family := here.spec.Prepared.Family
	if w.Probe {
		arms, tasks = p.info.Arms, []string{family.Tasks[0].ID}
	}
	for i := range family.Tasks {
		if !here.warm && len(family.Tasks[i].Settings.Cache) > 0 {
			tasks = append(tasks, family.Tasks[i].ID)
		}
	}
	for _, arm := range arms {
		wanted = append(wanted, here.spec.Arms[arm]...)
	}
	for _, id := range tasks {
		wanted = append(wanted, here.spec.Tasks[id]...)
	}
	for _, hash := range wanted {
		if _, err := p.trees.fetch(ctx, here.trees, hash); err != nil {
			return err
		}
	}
	if !here.warm {
		if err := here.attempts.Warm(ctx); err != nil {
			return err
		}
		here.warm = true
	}
	return nil
}
