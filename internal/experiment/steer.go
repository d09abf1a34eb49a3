package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment/control"
	"github.com/fit-eval/fit/ledger"
)

// errCancelled is the cause of a cancelled cell's context.
var errCancelled = errors.New("the cell was cancelled")

// errWithdrawn is the cause of the context of an attempt that no worker had begun when the
// experiment stopped.
var errWithdrawn = errors.New("the experiment stopped before the attempt began")

// errOver is the error of a request that arrives after the experiment has ended.
var errOver = errors.New("the experiment has ended")

// maxConcurrency limits what a person may ask for.
const maxConcurrency = 1000

// burnWindow is how far back the rate of spending looks.
const burnWindow = 10 * time.Minute

// steering is the part of an engine that other processes see and change.
type steering struct {
	requests  chan request
	over      chan struct{} // closed when no request is taken any more
	paused    bool
	limit     int // the limit on running cells that a person set; 0 is the executor's
	running   map[ledger.Cell]*flight
	cancelled map[ledger.Cell]Cell // held back until they are requeued
	payments  []payment            // of attempts that ended within the window
	times     moments              // how long cells take
}

// flight is an attempt in flight.
type flight struct {
	cell      Cell
	attempt   int
	startMs   int64
	began     time.Time
	cancel    context.CancelCauseFunc
	cancelled bool
	most      atomic.Int64 // attempts that ran at the same time, itself included
}

type payment struct {
	at  time.Time
	usd float64
}

// moments are the mean and the spread of a series, kept as it grows.
type moments struct {
	n        int
	mean, m2 float64
}

func (m *moments) add(x float64) {
	m.n++
	delta := x - m.mean
	m.mean += delta / float64(m.n)
	m.m2 += delta * (x - m.mean)
}

// request is a question of another process, answered by the goroutine that owns the engine.
type request struct {
	command control.Command
	reply   chan<- response
}

type response struct {
	status  control.Status
	message string
	err     error
}

func newSteering() steering {
	return steering{
		requests:  make(chan request),
		over:      make(chan struct{}),
		running:   map[ledger.Cell]*flight{},
		cancelled: map[ledger.Cell]Cell{},
	}
}

// Status implements control.Engine.
func (s *steering) Status(ctx context.Context) (control.Status, error) {
	r := s.send(ctx, control.Command{Action: control.Ping})
	return r.status, r.err
}

// Control implements control.Engine.
func (s *steering) Control(ctx context.Context, c control.Command) (string, error) {
	r := s.send(ctx, c)
	return r.message, r.err
}

func (s *steering) send(ctx context.Context, c control.Command) response {
	reply := make(chan response, 1)
	select {
	case s.requests <- request{command: c, reply: reply}:
		return <-reply
	case <-s.over:
		return response{err: errOver}
	case <-ctx.Done():
		return response{err: ctx.Err()}
	}
}

// listen lets other processes ask and steer. If no socket can be made in the directory, the
// experiment runs anyway. The function it returns stops listening.
func (e *engine) listen() (end func()) {
	if !e.cfg.Steered {
		return func() {}
	}
	server, err := control.Serve(e.dir.Path, &e.steering)
	if err != nil {
		e.dir.Notes = append(e.dir.Notes, fmt.Sprintf("the experiment cannot be steered while it runs: %v", err))
		return func() {}
	}
	return func() {
		close(e.over)
		_ = server.Close() // the next process replaces what it left
	}
}

// waits reports whether the only cells left are held back by a person.
func (e *engine) waits() bool { return e.paused && e.stopped == "" && len(e.queue) > 0 }

// answer does what a request asks for.
func (e *engine) answer(r request) {
	var out response
	if r.command.Action != control.Ping {
		out.message, out.err = e.apply(r.command)
	}
	out.status = e.statusNow()
	r.reply <- out
}

func (e *engine) apply(c control.Command) (string, error) {
	switch c.Action {
	case control.Pause:
		e.paused = true
		e.steer()
		return "paused; " + cells(len(e.statusNow().Running)) + " still running", nil
	case control.Resume:
		e.paused = false
		e.steer()
		return "resumed", nil
	case control.Cancel:
		return e.cancelCell(c)
	case control.Requeue:
		return e.requeue(c)
	case control.Concurrency:
		if c.N < 1 || c.N > maxConcurrency {
			return "", fmt.Errorf("concurrency %d: want a number from 1 to %d", c.N, maxConcurrency)
		}
		e.cfg.Concurrency, e.limit = c.N, c.N
		e.steer()
		return fmt.Sprintf("at most %s at a time", cells(c.N)), nil
	case control.BudgetUSD:
		return e.rebudget(c.USD)
	}
	return "", fmt.Errorf("%q is not an action; use one of %s", c.Action, strings.Join([]string{
		control.Pause, control.Resume, control.Cancel, control.Requeue, control.Concurrency, control.BudgetUSD,
	}, ", "))
}

// steer tells a remote executor which attempts may begin.
func (e *engine) steer() {
	if executor, ok := e.cfg.Executor.(remote); ok {
		executor.Steer(e.limit, e.paused || e.stopped != "")
	}
}

func cells(n int) string {
	if n == 1 {
		return "1 cell"
	}
	return fmt.Sprintf("%d cells", n)
}

func (e *engine) rebudget(amount *float64) (string, error) {
	if amount == nil {
		return "", errors.New("no budget was named; 0 is unlimited")
	}
	usd := *amount
	if usd < 0 || math.IsNaN(usd) || math.IsInf(usd, 0) {
		return "", errors.New("a budget is a number of dollars; 0 is unlimited")
	}
	e.cfg.Budgets.Experiment.USD = usd
	e.dir.spent.accounts.setBudgets(e.cfg.Budgets)
	if e.status == OverBudget { // it may be enough now
		e.status, e.stopped = "", ""
		e.steer()
	}
	if usd == 0 {
		return "no budget in dollars", nil
	}
	spent, _, _ := e.dir.spent.total()
	text := fmt.Sprintf("a budget of %s, of which %s are spent", display.Dollars(usd), display.Dollars(spent))
	if spent >= usd {
		text += ": no further cell starts"
	}
	return text, nil
}

// nameOf names a cell as commands do.
func nameOf(c Cell) string { return fmt.Sprintf("%s/%s/%d", c.TaskID, c.Arm, c.RunIndex) }

// planned finds the cell that a command names.
func (e *engine) planned(c control.Command) (Cell, error) {
	for _, cell := range e.dir.Plan.Cells() {
		if cell.TaskID == c.Task && cell.Arm == c.Arm && cell.RunIndex == c.Run {
			return cell, nil
		}
	}
	return Cell{}, fmt.Errorf("the experiment has no cell %s/%s/%d (task/arm/run)", c.Task, c.Arm, c.Run)
}

func (e *engine) cancelCell(c control.Command) (string, error) {
	cell, err := e.planned(c)
	if err != nil {
		return "", err
	}
	if under := e.running[cell.Key()]; under != nil {
		under.cancelled = true
		under.cancel(errCancelled)
		return fmt.Sprintf("%s is stopped; its attempt is recorded as interrupted", nameOf(cell)), nil
	}
	if at := slices.IndexFunc(e.queue, func(w waiting) bool { return w.cell == cell }); at >= 0 {
		e.queue = slices.Delete(slices.Clone(e.queue), at, at+1)
		e.cancelled[cell.Key()] = cell
		return fmt.Sprintf("%s is taken off the queue", nameOf(cell)), nil
	}
	if _, held := e.cancelled[cell.Key()]; held {
		return "", fmt.Errorf("%s is cancelled already", nameOf(cell))
	}
	return "", fmt.Errorf("%s is over: %s", nameOf(cell), e.dir.state(cell.Key()).verdict)
}

func (e *engine) requeue(c control.Command) (string, error) {
	cell, err := e.planned(c)
	if err != nil {
		return "", err
	}
	key := cell.Key()
	state := e.dir.state(key)
	switch _, held := e.cancelled[key]; {
	case e.running[key] != nil:
		return "", fmt.Errorf("%s is running; cancel it first", nameOf(cell))
	case held:
		delete(e.cancelled, key)
	case slices.ContainsFunc(e.queue, func(w waiting) bool { return w.cell == cell }):
		e.queue = slices.DeleteFunc(slices.Clone(e.queue), func(w waiting) bool { return w.cell == cell })
	case state.done && state.verdict != ledger.Error:
		return "", fmt.Errorf("%s has its verdict, %s; verdicts are never repeated", nameOf(cell), state.verdict)
	case state.done && e.watch != nil:
		return "", fmt.Errorf("%s was already counted for --stop-early, so it stays as it is", nameOf(cell))
	case state.done:
		state.done = false
		e.tally.done--
		e.tally.errors--
	}
	e.queue = append([]waiting{{cell: cell}}, e.queue...)
	return fmt.Sprintf("%s is next in the queue", nameOf(cell)), nil
}

// attemptEnded notes that an attempt is over, and reports whether its cell was cancelled.
func (e *engine) attemptEnded(done *finished) (cancelled bool) {
	key := done.cell.Key()
	under := e.running[key]
	if under == nil {
		return false
	}
	delete(e.running, key)
	now := e.cfg.Now()
	if done.record.Final {
		e.times.add(now.Sub(under.began).Seconds())
	}
	if usd := done.record.CostUSD; usd != nil {
		e.payments = append(e.payments, payment{now, *usd})
	}
	e.forget(now)
	return under.cancelled
}

// forget drops the payments before the window.
func (e *engine) forget(now time.Time) {
	old := slices.IndexFunc(e.payments, func(p payment) bool { return now.Sub(p.at) <= burnWindow })
	if old < 0 {
		old = len(e.payments)
	}
	e.payments = slices.Delete(e.payments, 0, old)
}

// statusNow returns the state of the experiment for other processes.
func (e *engine) statusNow() control.Status {
	now := e.cfg.Now()
	p := e.progress(nil)
	status := control.Status{
		State:       control.Running,
		Total:       p.Total,
		Done:        p.Done,
		Passed:      p.Passed,
		Failed:      p.Failed,
		Errors:      p.Errors,
		Retries:     p.Retries,
		Queued:      len(e.queue),
		Cancelled:   len(e.cancelled),
		Concurrency: e.places(),
		CostUSD:     p.CostUSD,
		Unpriced:    p.Unpriced,
		Tokens:      p.Tokens,
		ElapsedMs:   p.Elapsed.Milliseconds(),
		LeftMs:      e.left(),
		Held:        []control.Name{},
		Running:     []control.Cell{},
		Reason:      e.stopped,
		PID:         os.Getpid(),
	}
	switch {
	case e.stopped != "":
		status.State = control.Stopping
	case e.paused:
		status.State = control.Paused
	}
	if budget := e.cfg.Budgets.Experiment.USD; budget > 0 {
		status.BudgetUSD = &budget
	}
	e.forget(now)
	if window := min(p.Elapsed, burnWindow); len(e.payments) > 0 && window > 0 {
		sum := 0.0
		for _, one := range e.payments {
			sum += one.usd
		}
		rate := sum / window.Hours()
		status.BurnUSDPerHour = &rate
	}
	executor, elsewhere := e.cfg.Executor.(remote)
	for _, under := range e.running {
		where := ""
		if elsewhere {
			if where = executor.Where(under.cell, under.attempt); where == "" {
				status.Queued++
				continue
			}
		}
		status.Running = append(status.Running, control.Cell{
			Task:      under.cell.TaskID,
			Arm:       under.cell.Arm,
			Run:       under.cell.RunIndex,
			Attempt:   under.attempt,
			StartMs:   under.startMs,
			ElapsedMs: now.Sub(under.began).Milliseconds(),
			Where:     where,
		})
	}
	for _, cell := range e.cancelled {
		status.Held = append(status.Held, control.Name{Task: cell.TaskID, Arm: cell.Arm, Run: cell.RunIndex})
	}
	slices.SortFunc(status.Held, func(a, b control.Name) int {
		return cmp.Or(strings.Compare(a.Task, b.Task), strings.Compare(a.Arm, b.Arm), a.Run-b.Run)
	})
	slices.SortFunc(status.Running, func(a, b control.Cell) int { return int(a.StartMs - b.StartMs) })
	return status
}

// left returns the time that the remaining cells take at the pace of those that are over: the
// interval includes the spread of each cell, and the uncertainty of the mean. Nil with fewer than
// two, and while nothing is started.
func (e *engine) left() *control.Left {
	cells := float64(len(e.queue) + e.inFlight)
	if e.times.n < 2 || cells == 0 || e.paused || e.stopped != "" {
		return nil
	}
	n := float64(e.times.n)
	workers := math.Min(float64(e.places()), cells)
	spread := math.Sqrt(e.times.m2 / (n - 1) * cells * (1 + cells/n))
	ms := func(seconds float64) int64 { return int64(1000 * math.Max(0, seconds) / workers) }
	whole := cells * e.times.mean
	reach := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975) * spread // after a few cells little is known
	return &control.Left{Est: ms(whole), Lo: ms(whole - reach), Hi: ms(whole + reach)}
}
