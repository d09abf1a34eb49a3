package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/task"
)

// begun notes that a worker has begun an attempt, or that it found an object that is not what its
// name says.
func (e *Executor) begun(message *nats.Msg) {
	var begun event
	if len(message.Data) > maxText || json.Unmarshal(message.Data, &begun) != nil || !validName(begun.Worker) {
		return
	}
	key := message.Subject[strings.LastIndexByte(message.Subject, '.')+1:]
	e.mu.Lock()
	defer e.mu.Unlock()
	own := e.waiting[token(begun.Name)]
	switch {
	case begun.Broken != "" && e.falseReports[key] < maxFalseReports:
		e.broken, e.brokenBy = begun.Broken, key
	case own != nil && begun.Proof == claimProof(own.work.Ticket, key):
		own.worker = begun.Worker
	}
}

// repairEvery is how often objects that workers complain about are looked at.
const repairEvery = 5 * time.Second

// maxFalseReports is how often a key may report objects that are what their names say: looking at
// them costs the coordinator time.
const maxFalseReports = 3

// repair replaces objects of the experiment that are not what their names say.
func (e *Executor) repair(ctx context.Context) {
	e.mu.Lock()
	name, key := e.broken, e.brokenBy
	wait := time.Since(e.repaired) < repairEvery
	if name != "" && !wait {
		e.broken, e.repaired = "", time.Now()
	}
	e.mu.Unlock()
	if name == "" || wait {
		return
	}
	e.replaced = false
	var err error
	if slices.Contains(e.trees, name) {
		_, err = e.publishExperiment(ctx)
	}
	e.mu.Lock()
	if !e.replaced && err == nil {
		e.falseReports[key]++
	}
	many := e.falseReports[key] >= maxFalseReports
	e.mu.Unlock()
	if many {
		e.noteOnce("false reports "+key, fmt.Sprintf("key %s reports broken objects that are not: it is ignored", key))
	}
	if err != nil {
		e.cfg.Note(fmt.Sprintf("an object on the hub is not what its name says, and could not be replaced: %v", err))
	}
}

// overdue is an attempt that a key has held for longer than its task allows.
type overdue struct {
	own    *waiting
	worker string
	key    string
}

// follow notes which attempts workers are making, and returns those that take too long. A worker
// proves that it was given what it says, so nobody speaks for others.
func (e *Executor) follow(workers []Worker) []overdue {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.claimed = map[string]bool{}
	var late []overdue
	for i := range workers {
		w := &workers[i]
		for _, r := range w.Running {
			tok := token(r.Attempt)
			own := e.waiting[tok]
			if r.Run != e.run || own == nil || r.Proof != claimProof(own.work.Ticket, w.Key) ||
				e.refusedOf(tok, w.Key) >= maxRefused {
				continue
			}
			e.claimed[tok], own.worker = true, w.Name
			if own.held == nil {
				own.held = map[string]time.Time{}
			}
			if own.held[w.Key].IsZero() {
				own.held[w.Key] = time.Now()
			}
			if !own.stopped && time.Since(own.held[w.Key]) > e.allowed(own.work.Cell.TaskID) {
				late = append(late, overdue{own, w.Name, w.Key})
			}
		}
	}
	return late
}

// heldSlack is how long an attempt may take besides what the timeouts of its task allow: images are
// pulled, and caches are filled.
const heldSlack = time.Hour

// allowed returns how long a worker may hold an attempt at a task.
func (e *Executor) allowed(id string) time.Duration {
	if e.longest > 0 {
		return e.longest
	}
	tasks := e.cfg.Prepared.Family.Tasks
	at := slices.IndexFunc(tasks, func(t task.Task) bool { return t.ID == id })
	if at < 0 { // a probe
		return heldSlack
	}
	t := &tasks[at]
	limits := t.Settings.Timeouts
	sum := limits.Agent + limits.Preflight + limits.Invariants + limits.Test +
		limits.Judge*time.Duration(max(1, t.Settings.JudgeVotes))
	for i := range t.Steps {
		sum += t.Steps[i].Timeout + limits.Test
	}
	if env := t.Settings.Environment; env != nil {
		sum += env.BuildTimeout
	}
	return heldSlack + 2*sum // a machine may be busy, and a phase has parts
}

// endOverdue takes attempts from workers that hold them too long: a result of their key does not
// count any more, and the attempts are given to others.
func (e *Executor) endOverdue(ctx context.Context, late []overdue) {
	for _, o := range late {
		e.mu.Lock()
		tok := o.own.work.token()
		e.refused[tok] = append(e.refused[tok], slices.Repeat([]string{o.key}, maxRefused)...)
		o.own.work.Refused = e.refused[tok]
		delete(e.claimed, tok)
		work := o.own.work
		e.mu.Unlock()
		e.cfg.Note(fmt.Sprintf("%s: worker %s with key %s has held it for longer than %s: it is given to others",
			work.name(), o.worker, o.key, e.allowed(work.Cell.TaskID)))
		_ = o.own.pool.stream.Purge(ctx, jetstream.WithPurgeSubject(work.subject())) // else the note is the end of it
		_ = e.cancelAttempt(&work)
		e.publishFailed.Store(true) // it is published again
	}
}

// lookAtLeases reports attempts that somebody holds and no worker says that it is making, and gives
// them to others.
func (e *Executor) lookAtLeases(ctx context.Context, workers []Worker) {
	e.endOverdue(ctx, e.follow(workers))
	for _, p := range e.pools {
		silent := e.silent(p)
		if len(silent) == 0 {
			continue
		}
		consumer, err := e.cfg.Hub.js.Consumer(ctx, p.poolInfo.stream(), consumerName)
		if err != nil {
			continue // tried again
		}
		held := 0
		for _, own := range silent {
			message, err := p.stream.GetLastMsgForSubject(ctx, own.work.subject())
			if err != nil || message.Sequence > consumer.CachedInfo().Delivered.Stream {
				continue // it still waits at the hub
			}
			held++
			_ = p.stream.Purge(ctx, jetstream.WithPurgeSubject(own.work.subject())) // tried again
		}
		if held > 0 {
			e.cfg.Note(fmt.Sprintf("%d attempts of %s are held, and no worker says that it is making them: they are "+
				"given to others; fit fleet status shows who is there", held, strings.Join(p.Arms, ", ")))
			e.publishFailed.Store(true) // they are published again
		}
	}
}

// silent returns the attempts of a pool that no worker has said for a while that it is making.
func (e *Executor) silent(p *pool) []*waiting {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []*waiting
	for tok, own := range e.waiting {
		_, arrived := e.arrived[tok]
		switch {
		case own.pool != p || own.stopped || arrived:
			continue
		case e.claimed[tok] || own.silentSince.IsZero():
		case time.Since(own.silentSince) > e.patience:
			list = append(list, own)
		default:
			continue
		}
		own.silentSince = time.Now()
	}
	return list
}
