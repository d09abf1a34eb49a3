package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/report/failure"
	"github.com/fit-eval/fit/ledger"
)

// The states in which an experiment can end.
const (
	Complete    = "complete"    // every cell has its final record
	Incomplete  = "incomplete"  // some cells ended in errors
	OverBudget  = "budget"      // stopped by a budget; a larger budget continues it
	Interrupted = "interrupted" // stopped by a signal; the same command continues
	Broken      = "broken"      // stopped because all attempts failed with the same cause
	Decided     = "decided"     // stopped by the rule of the plan: the evidence suffices
)

// The defaults of a Config, and of how often every task is run with every arm.
const (
	DefaultAttempts   = 3
	DefaultBreakAfter = 5
	DefaultRuns       = 5
)

const interruptedReason = "interrupted; rerun the same command to continue"

// Config says how an experiment is run.
type Config struct {
	Executor    Executor
	Concurrency int // 0 is 1
	// Places, if set, returns how many attempts may be in flight now; a Concurrency that is not 0
	// limits it. Changed receives when it may have changed.
	Places  func() int
	Changed <-chan struct{}
	// Attempts bounds the tries at a cell that end in infrastructure errors. Verdicts are never
	// tried again, and interruptions do not count.
	Attempts int
	// BreakAfter is the number of equal infrastructure errors in a row that stops the experiment;
	// negative is never.
	BreakAfter int
	Budgets    Budgets
	// RetryErrors retries cells that ended in errors in an earlier process.
	RetryErrors bool
	// Drain is how long attempts may run after the context has ended; then they are cancelled and
	// recorded as interrupted.
	Drain time.Duration
	// Interrupted, if set, is called once when the context has ended, with the number of attempts
	// in flight. StopNow, if set, ends this time.
	Interrupted func(inFlight int)
	StopNow     <-chan struct{}
	// Backoff is the pause before an attempt after so many failures; nil is one that grows from a
	// second to half a minute after failures of the model's service.
	Backoff func(class string, failures int) time.Duration
	// Claimable, if set, reports whether what the ledger holds may be claimed. A stop rule does not
	// stop on evidence that may not: the tasks that are left could not be used any more.
	Claimable func() (bool, error)
	// Progress, if set, is called after every attempt, never by two goroutines at a time.
	Progress func(Progress)
	// NoProbe is recorded: nobody asked the models for a reply before.
	NoProbe bool
	// Steered lets other processes ask and steer the experiment, through package control.
	Steered bool
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Outcome says how an experiment ended in this process.
type Outcome struct {
	Process
	Progress Progress
	// Causes are the reasons why cells have no verdict, the most frequent one first.
	Causes []failure.Cause
}

// Run makes the attempts that are missing in a run directory. It returns when every cell has its
// final record, or when a budget, a signal or the breaker ends it; running again continues. The
// error is for attempts that cannot be recorded.
func Run(ctx context.Context, dir *Directory, cfg Config) (Outcome, error) {
	if cfg.Executor == nil {
		return Outcome{}, errors.New("an experiment needs an executor")
	}
	e := newEngine(dir, cfg)
	dir.spent.accounts.setBudgets(cfg.Budgets)
	e.steer()
	if err := e.resume(ctx); err != nil {
		return Outcome{}, err
	}
	if err := dir.RecordProcess(Process{Budgets: cfg.Budgets, NoProbe: cfg.NoProbe}, e.cfg.Now()); err != nil {
		return Outcome{}, err
	}
	e.report(nil)
	defer e.listen()()
	if err := e.loop(ctx); err != nil {
		return Outcome{}, err
	}
	o := e.outcome(ctx)
	o.Budgets, o.NoProbe = e.cfg.Budgets, cfg.NoProbe
	return o, dir.RecordProcess(o.Process, e.cfg.Now())
}

// Estimate forecasts what is left to do in a run directory.
func (d *Directory) Estimate(budgets Budgets) Estimate {
	left := map[string]int{}
	watch := newWatch(d.Plan)
	for _, cell := range d.Plan.Cells() {
		if s := d.cells[cell.Key()]; s == nil || !s.done {
			left[cell.Arm]++
		} else {
			watch.record(cell, s.verdict)
		}
	}
	if watch != nil {
		if _, decided, err := watch.decided(); err == nil && decided {
			return Estimate{Known: true}
		}
	}
	return d.spent.estimate(left, d.Plan.Cell, budgets)
}

// Key names the cell as the ledger does.
func (c Cell) Key() ledger.Cell {
	return ledger.Cell{Arm: c.Arm, TaskID: c.TaskID, RunIndex: c.RunIndex}
}

// engine is one call of Run. One goroutine, the caller's, owns it; attempts run in their own
// goroutines and report through a channel.
type engine struct {
	dir      *Directory
	cfg      Config
	began    time.Time
	queue    []waiting
	tally    tally
	breaker  breaker
	inFlight int
	alone    bool // the attempt in flight lets no other begin
	results  chan *finished
	stopped  string // why no further attempt is started
	status   string // that goes with it
	spentArm map[string]string
	arms     map[string]*PlannedArm
	tasks    map[string]*PlannedTask
	watch    *watch // nil where the plan has no rule for stopping
	steering
}

// waiting is a cell that wants an attempt, not before a time.
type waiting struct {
	cell      Cell
	notBefore time.Time
	adopted   int // the attempt that continues; 0 is a new one
	alone     bool
}

type finished struct {
	cell   Cell
	record ledger.Record
	err    error // the record could not be written
}

func newEngine(dir *Directory, cfg Config) *engine {
	limit := 0
	if cfg.Places != nil {
		limit = max(cfg.Concurrency, 0)
	}
	cfg.Concurrency = max(cfg.Concurrency, 1)
	if cfg.Attempts < 1 {
		cfg.Attempts = DefaultAttempts
	}
	cfg.BreakAfter = cmp.Or(cfg.BreakAfter, DefaultBreakAfter)
	if cfg.Backoff == nil {
		cfg.Backoff = backoff
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	e := &engine{
		dir:      dir,
		cfg:      cfg,
		began:    cfg.Now(),
		tally:    tally{outcomes: map[string][]float64{}},
		breaker:  breaker{after: cfg.BreakAfter},
		results:  make(chan *finished),
		spentArm: map[string]string{},
		arms:     map[string]*PlannedArm{},
		tasks:    map[string]*PlannedTask{},
		steering: newSteering(),
	}
	if executor, elsewhere := cfg.Executor.(remote); elsewhere {
		e.breaker.others = executor.Others
	}
	e.limit = limit
	for i := range dir.Plan.Arms {
		e.arms[dir.Plan.Arms[i].Name] = &dir.Plan.Arms[i]
	}
	e.watch = newWatch(dir.Plan)
	for i := range dir.Plan.Tasks {
		e.tasks[dir.Plan.Tasks[i].ID] = &dir.Plan.Tasks[i]
	}
	return e
}

func backoff(class string, failures int) time.Duration {
	if class != ledger.ErrorProvider {
		return 0
	}
	return min(time.Second<<min(failures-1, 10), 30*time.Second)
}

// loop starts attempts while there are free places and handles their results.
func (e *engine) loop(ctx context.Context) error {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	ended := ctx.Done()
	var drained <-chan time.Time
	var stopNow <-chan struct{}
	for {
		wake, err := e.start(work)
		if err != nil {
			return e.abort(err, cancel)
		}
		if e.inFlight == 0 && wake == nil && !e.waits() {
			return nil
		}
		select {
		case done := <-e.results:
			if err := e.finish(done); err != nil {
				return e.abort(err, cancel)
			}
		case <-wake:
		case asked := <-e.requests:
			e.answer(asked)
		case <-e.cfg.Changed:
		case <-ended:
			ended = nil
			e.stop(Interrupted, interruptedReason)
			if e.cfg.Interrupted != nil {
				e.cfg.Interrupted(e.inFlight)
			}
			stopNow = e.cfg.StopNow
			timer := time.NewTimer(e.cfg.Drain)
			defer timer.Stop()
			drained = timer.C
		case <-drained:
			drained = nil
			cancel(context.Cause(ctx))
		case <-stopNow:
			stopNow, drained = nil, nil
			cancel(context.Cause(ctx))
		}
	}
}

// abort ends the experiment because of an error. It waits for the attempts in flight and drops
// their results: the code that starts a goroutine waits for it.
func (e *engine) abort(err error, cancel context.CancelCauseFunc) error {
	e.stop(Broken, err.Error())
	cancel(err)
	for e.inFlight > 0 {
		<-e.results
		e.inFlight--
	}
	return err
}

// stop lets no further attempt begin. Attempts that no worker has begun are withdrawn.
func (e *engine) stop(status, reason string) {
	if e.stopped != "" {
		return
	}
	e.status, e.stopped = status, reason
	e.steer()
	if executor, ok := e.cfg.Executor.(remote); ok {
		for _, under := range e.running {
			if executor.Where(under.cell, under.attempt) == "" {
				under.cancel(errWithdrawn)
			}
		}
	}
}

// start fills the free places. If waiting is all that is left, it returns a channel that receives
// when the next cell may start.
func (e *engine) start(ctx context.Context) (<-chan time.Time, error) {
	var earliest time.Time
	places := e.places()
	for at := 0; at < len(e.queue) && e.inFlight < places && !e.alone && e.stopped == "" && !e.paused; {
		next := e.queue[at]
		if next.alone && e.inFlight > 0 || e.meetsItself(next.cell) {
			at++
			continue
		}
		if now := e.cfg.Now(); next.notBefore.After(now) {
			if earliest.IsZero() || next.notBefore.Before(earliest) {
				earliest = next.notBefore
			}
			at++
			continue
		}
		if e.spentArm[next.cell.Arm] != "" || e.watch.tooFarAhead(next.cell, places) {
			at++
			continue
		}
		verdict, reason := e.dir.spent.allow(next.cell.Arm, e.cfg.Budgets, e.dir.Plan.Cell, e.cfg.Now().Sub(e.began))
		switch verdict {
		case launchStopped:
			e.stop(OverBudget, reason)
			continue
		case launchNever:
			e.spentArm[next.cell.Arm] = reason
			continue
		case launchWait:
			at++
			continue
		case launchYes:
		}
		if at == 0 { // the usual case, without moving the rest
			e.queue = e.queue[1:]
		} else {
			e.queue = slices.Delete(e.queue, at, at+1)
		}
		if err := e.launch(ctx, next); err != nil {
			return nil, err
		}
	}
	if !earliest.IsZero() && e.stopped == "" && !e.paused && e.inFlight < places {
		return time.After(max(0, earliest.Sub(e.cfg.Now()))), nil
	}
	return nil, nil
}

// meetsItself reports whether a cell would share a loopback with another of its task, which is on
// the same ports and may be of the other arm.
func (e *engine) meetsItself(cell Cell) bool {
	executor, ok := e.cfg.Executor.(neighbours)
	if !ok || !executor.ShareLoopback(cell.TaskID) {
		return false
	}
	for _, under := range e.running {
		if under.cell.TaskID == cell.TaskID {
			return true
		}
	}
	return false
}

// places returns how many attempts may be in flight.
func (e *engine) places() int {
	switch {
	case e.cfg.Places == nil:
		return e.cfg.Concurrency
	case e.limit > 0:
		return max(1, min(e.limit, e.cfg.Places()))
	}
	return max(1, e.cfg.Places())
}

func (e *engine) outcome(ctx context.Context) Outcome {
	e.report(nil)
	o := Outcome{
		Process:  Process{Status: e.status, Reason: e.stopped},
		Progress: e.progress(nil),
		Causes:   e.dir.causes(),
	}
	switch {
	case e.status == Decided:
	case len(e.queue) == 0 && len(e.cancelled) > 0 && o.Status == "":
		o.Status = Incomplete
		o.Reason = cells(len(e.cancelled)) + " cancelled; rerun the same command to run the rest"
	case len(e.queue) == 0 && len(e.cancelled) == 0 && e.tally.errors == 0:
		o.Status, o.Reason = Complete, ""
	case len(e.queue) == 0 && len(e.cancelled) == 0:
		o.Status = Incomplete
		o.Reason = fmt.Sprintf("%d of %d cells ended in errors; rerun with --retry-errors to retry them",
			e.tally.errors, e.tally.total)
		switch {
		case !slices.ContainsFunc(o.Causes, func(c failure.Cause) bool { return c.Cause != ledger.CauseUnknown }):
			o.Reason = fmt.Sprintf("%d of %d cells have no answer, which running them again does not change",
				e.tally.errors, e.tally.total)
		case failure.OnlyGraders(o.Causes):
			o.Reason += ", or, once their grader is repaired, " + failure.GradeAgain
		}
	case o.Status != "":
	case len(e.spentArm) > 0:
		o.Status = OverBudget
		for _, arm := range e.dir.Plan.Arms {
			if reason := e.spentArm[arm.Name]; reason != "" {
				o.Reason = reason
				break
			}
		}
	case ctx.Err() != nil:
		o.Status, o.Reason = Interrupted, interruptedReason
	default:
		o.Status, o.Reason = Incomplete, "some cells could not be started"
	}
	return o
}
