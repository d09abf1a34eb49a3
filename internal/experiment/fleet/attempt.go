package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/ledger"
)

// How often an attempt is given to another worker before it is an error, and how long an attempt
// that prefers another worker waits.
const (
	maxDeliveries = 10
	maxAvoided    = 5
	avoidDelay    = 300 * time.Millisecond
	problemDelay  = 2 * time.Second
	holdDelay     = 2 * capsEvery // by then every worker knows that the pool is on hold
)

// workPool is a pool as a worker sees it. Its executor is made with the first attempt.
type workPool struct {
	*worker
	info     poolInfo
	ctx      context.Context // ends when the pool is retired and idle, or the worker ends
	cancels  *nats.Subscription
	ready    sync.Mutex
	loaded   map[string]*loaded // by the hash of the experiment, which may grow
	users    sync.WaitGroup
	consumer jetstream.Consumer
	// notBefore is when attempts are pulled again.
	notBefore time.Time
}

func newWorkPool(ctx context.Context, w *worker, info poolInfo) *workPool {
	p := &workPool{
		worker: w,
		info:   info,
		ctx:    ctx,
		loaded: map[string]*loaded{},
	}
	// without it an attempt is not cancelled and runs to its end
	p.cancels, _ = w.cfg.Hub.nc.Subscribe(cancelSubject(info.Run), func(message *nats.Msg) {
		var asked cancellation
		if json.Unmarshal(message.Data, &asked) != nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		// only its own coordinator knows the ticket of an attempt
		if l := w.running[info.Run+"/"+asked.Name]; l != nil && asked.Proof == cancelProof(l.work.Ticket) {
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
	for spec, one := range p.loaded {
		if err := one.attempts.Close(); err != nil {
			p.cfg.Note(fmt.Sprintf("remove the workspaces of %s: %v", p.info.Title, err))
		}
		delete(p.loaded, spec)
	}
}

// announced is what the pool's coordinator last said about it.
func (p *workPool) announced() poolInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.info
}

// attempt makes one attempt and reports it.
func (p *workPool) attempt(ctx context.Context, message *pulled) {
	p.users.Add(1)
	defer p.users.Done()
	var w work
	meta, err := message.Metadata()
	if err == nil {
		err = json.Unmarshal(message.Data(), &w)
	}
	if err == nil {
		err = checkSigned(p.announced().By, message.Subject(), message.Headers(), message.Data())
	}
	if err != nil || w.Protocol != Protocol || w.Run != p.info.Run || w.subject() != message.Subject() {
		p.cfg.Note("a message that is not valid was dropped")
		_ = message.Term() // nobody could read it
		return
	}
	if slices.Contains(w.Refused, p.cfg.Hub.public) {
		p.mu.Lock()
		p.notBefore = time.Now().Add(2 * avoidDelay)
		p.mu.Unlock()
		_ = message.NakWithDelay(problemDelay)
		return
	}
	if p.onHold(ctx) {
		_ = message.NakWithDelay(holdDelay)
		return
	}
	if slices.Contains(w.Avoid, p.about.Name) && meta.NumDelivered <= maxAvoided && p.othersCanRun(ctx) {
		p.mu.Lock()
		p.notBefore = time.Now().Add(2 * avoidDelay) // so that another worker gets it
		p.mu.Unlock()
		_ = message.NakWithDelay(avoidDelay) // it comes again after the lease at the latest
		return
	}
	if p.again(w.Run+"/"+w.name(), message) {
		return
	}
	if meta.NumDelivered > 1 && p.madeByAnother(ctx, &w) {
		_ = message.NakWithDelay(workerLife / 2) // by then a dead one is forgotten, or soon
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

// onHold reports whether no attempt of the pool may begin. The list of pools may be older.
func (p *workPool) onHold(ctx context.Context) bool {
	entry, err := p.cfg.Hub.get(ctx, fleetBucket, p.info.key())
	var now poolInfo
	if err != nil || json.Unmarshal(entry.Value(), &now) != nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info.Hold = now.Hold
	return now.Hold
}

// othersCanRun reports whether another worker can make the attempts of the pool.
func (p *workPool) othersCanRun(ctx context.Context) bool {
	workers, err := p.cfg.Hub.Workers(ctx)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(workers, func(w Worker) bool {
		return w.Name != p.about.Name && !w.Draining && w.Trouble == "" && w.Lacks(p.info.Needs) == "" &&
			w.Refuses[p.info.key()] == ""
	})
}

// madeByAnother reports whether another worker proves that it is making an attempt: whoever takes
// attempts can make the hub deliver it again.
func (p *workPool) madeByAnother(ctx context.Context, w *work) bool {
	workers, err := p.cfg.Hub.Workers(ctx)
	return err == nil && slices.ContainsFunc(workers, func(other Worker) bool {
		proof, own := claimProof(w.Ticket, other.Key), other.Name == p.about.Name && other.Key == p.cfg.Hub.public
		return !own && !slices.Contains(w.Refused, other.Key) &&
			slices.ContainsFunc(other.Running, func(r Running) bool { return r.Run == w.Run && r.Proof == proof })
	})
}

// make makes an attempt on this machine.
func (p *workPool) make(l *leased) {
	here, err := p.load(l.ctx, l)
	switch {
	case errors.Is(err, errPolicy): // another worker may allow it
		p.refuse(err)
		_ = l.current().NakWithDelay(problemDelay)
		return
	case errors.Is(err, errContent), errors.Is(err, jetstream.ErrObjectNotFound): // its owner replaces it
		p.cfg.Note(fmt.Sprintf("%s: given back: %v", l.work.name(), err))
		p.complain(l, err)
		_ = l.current().NakWithDelay(problemDelay)
		return
	case err == nil && l.work.Probe:
		p.probe(l, here)
		return
	}
	var record ledger.Record
	sink := p.sinkDir(l.work.name())
	if err == nil {
		_ = scratch.RemoveAll(sink) // the same attempt may have been here before
		record, err = here.attempts.Execute(l.ctx, l.work.Cell, l.work.Attempt)
	}
	defer func() { _ = scratch.RemoveAll(sink) }() // the next start removes what stays
	switch {
	case l.held.Err() != nil:
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
		p.problem = record.ErrorMessage
		p.mu.Unlock()
		p.cfg.Note(l.work.name() + ": given back: " + record.ErrorMessage)
		_ = l.current().NakWithDelay(problemDelay)
		return
	}
	p.reports <- struct{}{}
	defer func() { <-p.reports }()
	l.given.free() // the next attempt begins while this one's result travels
	p.report(l, record, sink)
}

// complain tells the coordinator that an object on the hub is not what its name says.
func (p *workPool) complain(l *leased, err error) {
	broken, is := errors.AsType[*objectError](err)
	if !is {
		return
	}
	if content, err := json.Marshal(event{Worker: p.about.Name, Broken: objectName(broken.hash)}); err == nil {
		_ = p.cfg.Hub.nc.Publish(eventSubject(l.work.Run, p.cfg.Hub.public), content) // it is said again
	}
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
