package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/trace"
)

// loop runs the rounds of a session: it hands queued messages to the members' agents, checks what
// they owe when a round ends, notices when nothing happens any more, and ends the session. It is
// the same for all modes. Every member that has something to do has a goroutine.
type loop struct {
	cfg        sessionConfig
	hub        *hub
	dispatcher *Dispatcher
	runners    []*runner
	connector  Connector
	skills     skillNotes
	account    *gateway.Account // pays for the members

	// ctx is that of the agents' sessions; it outlives the caller's, so that agents can be stopped
	// in order.
	ctx    context.Context
	cancel context.CancelFunc

	// working are the members' goroutines.
	working sync.WaitGroup
	// making guarantees that calls of the caller's NewAgent never overlap.
	making sync.Mutex

	// Guarded by the hub's lock.
	ran     bool // Run was called
	reason  string
	limit   string // the last limit that was reached, in words
	err     error
	stopped chan struct{}
	before  time.Duration // what the session had taken before it was resumed
}

func newLoop(cfg sessionConfig, s *state, writer *trace.Writer) *loop {
	l := &loop{cfg: cfg, stopped: make(chan struct{})}
	l.hub = &hub{state: s, redactor: cfg.redactor, trace: writer}
	l.hub.onConclude = l.concluded
	l.hub.onTraceError = func(err error) { l.stop(ReasonTrace, err) }
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if cfg.discuss != nil {
		l.hub.outbox.sender = cfg.discuss.sender
	}
	if advisor := s.settings.Advisor; advisor.Model != "" {
		l.hub.advisor = l.newAdvisor(advisor)
	}
	l.dispatcher = newDispatcher(l.hub)
	for _, m := range s.order {
		r := &runner{loop: l, member: m}
		if l.hub.advisor != nil && m != s.lead {
			r.record = newRecorder(cfg.redactor, m.config.System)
			l.hub.advisor.records[m.name] = r.record
			l.hub.advisor.configs[m.name] = m.config
		}
		l.runners = append(l.runners, r)
	}
	l.openAccounts()
	return l
}

// run gives the lead a task and returns when the session has ended, which it always does: by a
// terminal call, by a limit, because nothing happens any more, or because the context ended. The
// result says how; the error is for sessions in which an agent could not do its part or the trace
// could not be written.
func (l *loop) run(ctx context.Context, task string) (Result, error) {
	l.hub.mu.Lock()
	again := l.ran
	l.ran = true
	l.hub.mu.Unlock()
	if again {
		return Result{}, errRanBefore
	}
	if err := l.prepare(); err != nil {
		return Result{}, err
	}
	l.hub.mu.Lock()
	s := l.hub.state
	start := startedEvent{
		Type:      trace.TypeSessionStart,
		Mode:      s.mode,
		Format:    trace.FormatVersion,
		Lead:      s.lead.name,
		Started:   time.Now().UnixMilli(),
		Isolation: l.cfg.options.Base.Isolation.String(),
		Network:   l.cfg.options.Base.NetworkKind(),
		Settings:  s.settings,
		Task:      l.hub.clean(joinTask(task, l.cfg.options.TaskAmend)),

		ProjectPrograms: l.cfg.options.Base.RunsProjectPrograms(),
	}
	for _, m := range s.order {
		start.Members = append(start.Members, m.config)
	}
	if d := l.cfg.discuss; d != nil {
		start.Resumed = d.resume.cleaned(l.hub.clean)
		if d.id != "" {
			l.hub.commit(metaEvent{Type: trace.TypeMeta, DiscussionID: l.hub.clean(d.id)})
		}
	}
	l.hub.commit(start)
	l.hub.injectHistory(start.Resumed)
	l.hub.mu.Unlock()
	return l.drive(ctx)
}

// errRanBefore is returned by a second Run of the same value.
var errRanBefore = errors.New("this session has already run; create a new one for each Run")

// joinTask appends an amendment to a task.
func joinTask(task, amend string) string {
	switch {
	case amend == "":
		return task
	case task == "":
		return amend
	default:
		return task + "\n\n" + amend
	}
}

// prepare creates what the agents need before the first of them starts.
func (l *loop) prepare() error {
	if l.cfg.options.Connect != nil {
		connector, err := l.cfg.options.Connect(l.dispatcher)
		if err != nil {
			return fmt.Errorf("connect the tools: %w", err)
		}
		l.connector = connector
	}
	settings := &l.hub.state.settings
	if settings.HomeDir == "" {
		dir, err := os.MkdirTemp("", "fit-harness-")
		if err != nil {
			return errors.Join(fmt.Errorf("directory for the agents: %w", err), l.disconnect())
		}
		settings.HomeDir, settings.TempHome = dir, true
	}
	return nil
}

// disconnect closes the agents' connection to the tools.
func (l *loop) disconnect() error {
	if l.connector == nil {
		return nil
	}
	return l.connector.Close()
}

// drive runs the session from its current state to its end.
func (l *loop) drive(ctx context.Context) (Result, error) {
	defer l.cancel()
	defer context.AfterFunc(ctx, func() { l.stop(ReasonInterrupted, context.Cause(ctx)) })()
	defer l.startClock()()

	l.hub.mu.Lock()
	l.wakeAll()
	l.hub.mu.Unlock()
	var helpers sync.WaitGroup
	if l.cfg.discuss != nil && l.cfg.discuss.inbox != nil {
		helpers.Go(l.receive)
	}
	<-l.stopped
	l.awaitMembers()
	l.cancel()
	if l.hub.advisor != nil {
		l.hub.advisor.stop(l.hub.state.settings.StopGrace)
	}
	helpers.Wait()
	return l.finish(ctx)
}

// wakeAll starts the members that have something to do, and looks at what the others owe: in a new
// session nothing, in a resumed one perhaps something. The lock must be held.
func (l *loop) wakeAll() {
	for _, r := range l.runners {
		r.member.wake, r.member.active = r.wake, r.active
		r.interrupted = r.member.round != nil
		r.wake()
	}
	if l.hub.state.conclusion != nil {
		l.stopLocked(ReasonConcluded, nil)
		return
	}
	for _, m := range l.hub.state.order {
		if m.round == nil {
			l.checkOwed(m, false)
		}
	}
	l.checkQuiet()
}

// wakeLead makes the lead look at its queue. The lock must be held.
func (l *loop) wakeLead() {
	if lead := l.hub.state.lead; lead.wake != nil {
		lead.wake()
	}
}

// startClock starts the session's time limit and returns a function that stops it.
func (l *loop) startClock() func() bool {
	limit := l.hub.state.settings.Limits.Timeout
	if limit <= 0 {
		return func() bool { return true }
	}
	return time.AfterFunc(max(0, limit-l.before), func() {
		l.hub.mu.Lock()
		defer l.hub.mu.Unlock()
		if !l.hub.stopped {
			l.reached("timeout", limit.Seconds(), ReasonTimeout)
		}
	}).Stop
}

// The causes that the contexts of rounds are cancelled with.
var (
	errSessionConcluded = errors.New("the session was concluded")
	errSessionStopped   = errors.New("the session was stopped")
)

func (l *loop) stop(reason string, err error) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.stopLocked(reason, err)
}

// stopLocked ends the session: nothing is accepted, no new round begins, and running rounds are
// interrupted.
func (l *loop) stopLocked(reason string, err error) {
	if l.hub.stopped {
		if reason == ReasonInterrupted { // a lead that is still talking does not finish
			l.interruptAll(context.Canceled)
		}
		return
	}
	l.hub.stopped = true
	l.reason, l.err = reason, err
	if resumable(reason) {
		l.hub.commit(interruptedEvent{Type: typeInterrupted})
	} else if l.hub.state.conclusion == nil {
		l.hub.cancelAll(cancelStopped, l.endedText()) // so that agents that still run learn why
	}
	settings := l.hub.state.settings
	for _, r := range l.runners {
		switch {
		case r.interrupt == nil:
		case reason == ReasonConcluded && r.member == l.hub.state.lead: // it may finish what it is saying
			r.interruptAfter(settings.LeadGrace)
		case reason == ReasonConcluded && !r.prompted.Load(): // an earlier message is on its way
			r.interruptAfter(settings.FinalTurnGrace)
		default:
			r.interrupt(errSessionStopped)
		}
	}
	close(l.stopped)
}

// resumable reports whether a session that ended for this reason is kept as it is.
func resumable(reason string) bool { return reason == ReasonInterrupted || reason == ReasonDisk }

func (l *loop) interruptAll(cause error) {
	for _, r := range l.runners {
		if r.interrupt != nil {
			r.interrupt(cause)
		}
	}
}

// concluded is called when a terminal call was accepted. A participant that was about to receive an
// earlier message still receives it.
func (l *loop) concluded(lastMessage int64) {
	for _, r := range l.runners {
		if r.member == l.hub.state.lead || r.interrupt != nil || r.busy {
			continue
		}
		r.final = slices.ContainsFunc(r.member.queue, func(m *Message) bool { return m.ID <= lastMessage })
	}
	l.stopLocked(ReasonConcluded, nil)
}

// awaitMembers waits until every member's agent has stopped. An agent that does not stop is closed
// and finally abandoned.
func (l *loop) awaitMembers() {
	done := make(chan struct{})
	go func() {
		l.working.Wait()
		var closing sync.WaitGroup
		for _, r := range l.runners {
			closing.Go(r.closeSession)
		}
		closing.Wait()
		close(done)
	}()
	s := l.hub.state.settings
	grace := s.StopGrace
	if l.reason == ReasonConcluded {
		grace += max(s.LeadGrace, s.FinalTurnGrace)
	}
	if within(done, grace) {
		return
	}
	for _, r := range l.runners {
		go r.closeSession() // it may hang just as the round does
	}
	within(done, s.StopGrace)
}

// within waits until done is closed, but no longer than limit, and reports whether it was.
func within(done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
