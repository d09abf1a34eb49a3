package fit

import (
	"cmp"
	"context"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/bridge"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/redact"
)

// NewDiscusser is the function of the same name, with this wiring. A discussion without Replies and
// Inbox takes them from CALLBACK_URL, INBOX_URL and CORRELATION_ID, where they are set.
func (w Wiring) NewDiscusser(cfg DiscusserConfig) (*Team, error) {
	team := Team{mode: harness.ModeDiscuss}
	team.parts = parts{
		newAgent: cfg.NewAgent,
		output:   cfg.Output,
		redactor: cfg.Redactor,
		options:  cfg.Options,
		replies:  cfg.Replies,
		inbox:    cfg.Inbox,
	}
	team.build = func(p parts) (*harness.Session, error) {
		cfg.NewAgent, cfg.Output, cfg.Redactor, cfg.Options = p.newAgent, p.output, p.redactor, p.options
		cfg.Replies, cfg.Inbox = p.replies, p.inbox
		return harness.NewDiscusser(cfg)
	}
	return w.newTeam("DiscusserConfig", team)
}

// thread is the way to the thread of a discussion and back.
type thread struct {
	wiring                       Wiring
	callback, inbox, correlation string
	sender                       *bridge.Sender
}

// threadOf returns the thread that an environment names.
func (w Wiring) threadOf(environ []string) *thread {
	return &thread{
		wiring:      w,
		callback:    agent.Getenv(environ, "CALLBACK_URL"),
		inbox:       agent.Getenv(environ, "INBOX_URL"),
		correlation: agent.Getenv(environ, "CORRELATION_ID"),
	}
}

// secrets returns the addresses: anyone who has one can post to the thread.
func (t *thread) secrets() map[string]string {
	return map[string]string{"CALLBACK_URL": t.callback, "INBOX_URL": t.inbox}
}

// connect starts the sender and the poller where there are addresses and the caller has none.
func (t *thread) connect(replies *harness.ReplySender, inbox *harness.Inbox, redactor *redact.Redactor) {
	if *replies == nil && t.callback != "" {
		t.sender = bridge.NewSender(bridge.Client{URL: t.callback, CorrelationID: t.correlation, Redactor: redactor})
		*replies = t.sender
	}
	if *inbox == nil && t.inbox != "" {
		*inbox = &bridge.Poller{URL: t.inbox}
	}
}

// close warns about replies that did not reach the thread.
func (t *thread) close(result Result) {
	if t.sender == nil {
		return
	}
	if n := len(result.Unsent); n > 0 {
		t.wiring.warnf("%d of %d replies could not be posted to the thread: %v; they are in the trace, and "+
			"fit-harness callback posts them", n, len(result.Replies), t.sender.Err())
	}
	t.sender.Close()
}

// ResumeConfig holds what a resumed session cannot learn from its trace.
type ResumeConfig = harness.ResumeConfig

// Resume continues a session of a team whose process was killed or interrupted, from its trace.
func Resume(ctx context.Context, tracePath string, cfg ResumeConfig) (Result, error) {
	return Wiring{}.Resume(ctx, tracePath, cfg)
}

// Resume is the function of the same name, with this wiring.
func (w Wiring) Resume(ctx context.Context, tracePath string, cfg ResumeConfig) (Result, error) {
	w = w.filled()
	past, err := harness.Inspect(tracePath)
	if err != nil {
		return Result{}, &ConfigError{tracePath, err}
	}
	if err := w.fillBase(&cfg.Options.Base); err != nil {
		return Result{}, err
	}
	cfg.Options.Base.ProjectPrograms = past.ProjectPrograms && past.Isolation == sandbox.IsolationNone
	w.Isolation, w.Network = cmp.Or(w.Isolation, past.Isolation), cmp.Or(w.Network, past.Network)
	if past.ToolTransport != "" { // as it was started
		w.ToolServer.HTTP = past.ToolTransport == transportHTTP
	}
	note, err := w.isolate(ctx, &cfg.Options.Base, directories(past.Members)...)
	if err != nil {
		return Result{}, err
	}
	if cfg.NewAgent == nil {
		cfg.NewAgent = w.newAgent
		if err := w.checkMembers(ctx, past.Mode, cfg.Options, past.Members); err != nil {
			return Result{}, err
		}
	}
	if past.Mode == harness.ModeJudge {
		release, err := w.reopenRoom(ctx, past.Members[0], &cfg.Options)
		if err != nil {
			return Result{}, err
		}
		defer release()
	}
	thread := w.connect(&cfg.Options, &cfg.Redactor, past.Members)
	end, err := w.openGateway(&cfg.Options.Base, cfg.Redactor)
	if err != nil {
		return Result{}, err
	}
	defer end()
	if past.Mode == harness.ModeDiscuss {
		thread.connect(&cfg.Replies, &cfg.Inbox, cfg.Redactor)
	}
	w.ready(cfg.Options.Base, note, past.Members...)
	result, err := harness.Resume(ctx, tracePath, cfg)
	thread.close(result)
	return result, err
}
