package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/trace"
)

// ResumeConfig holds what a resumed session cannot learn from its trace.
type ResumeConfig struct {
	NewAgent AgentFunc
	Redactor *redact.Redactor // nil is the one the environment asks for
	// Options: only Base and Connect are used; everything else is as it was when the session
	// started.
	Options Options
	// OnLine, if set, sees every line that is added to the trace.
	OnLine func(trace.Envelope)
	// Replies and Inbox are those of a discussion. Replies that were sent before are sent again:
	// the receiver recognises them by their seq.
	Replies ReplySender
	Inbox   Inbox
}

// Resume continues a session whose process was killed. Its state is rebuilt from the trace:
// conversations, open asks, budgets. A member that was in the middle of a round continues it
// (continuer), or gets the messages of that round again, marked as such. A trace that is still
// being written is refused with trace.ErrLocked.
func Resume(ctx context.Context, tracePath string, cfg ResumeConfig) (Result, error) {
	if cfg.NewAgent == nil {
		return Result{}, errNoAgentFunc
	}
	cfg.Redactor = redactorOr(cfg.Redactor, cfg.Options)
	if _, err := os.Stat(tracePath); err != nil {
		return Result{}, fmt.Errorf("resume: %w", err)
	}
	writer, err := trace.Open(tracePath, trace.Config{Redactor: cfg.Redactor, OnLine: cfg.OnLine})
	if err != nil {
		return Result{}, fmt.Errorf("resume: %w", err)
	}
	result, err := resume(ctx, tracePath, writer, cfg)
	return result, errors.Join(err, writer.Close())
}

func resume(ctx context.Context, path string, writer *trace.Writer, cfg ResumeConfig) (Result, error) {
	past, err := readPast(path)
	if err != nil {
		return Result{}, fmt.Errorf("resume %s: %w", path, err)
	}
	l, err := past.rebuild(path, cfg, writer)
	if err != nil {
		return Result{}, fmt.Errorf("resume %s: %w", path, err)
	}
	if err := l.prepare(); err != nil {
		return Result{}, err
	}
	l.takeOver()
	return l.drive(ctx)
}

// rebuild returns a loop in the state of the past one.
func (p *pastSession) rebuild(path string, cfg ResumeConfig, writer *trace.Writer) (*loop, error) {
	options := cfg.Options
	options.ProfilesDir, options.Advisor = p.start.Settings.ProfilesDir, p.start.Settings.Advisor
	sc := sessionConfig{
		mode:         p.start.Mode,
		lead:         p.start.Members[0],
		participants: p.start.Members[1:],
		newAgent:     cfg.NewAgent,
		redactor:     cfg.Redactor,
		options:      options,
	}
	if sc.mode == ModeDiscuss {
		sc.discuss = &discussConfig{sender: cfg.Replies, inbox: cfg.Inbox}
	}
	lead, participants, err := sc.members()
	if err != nil {
		return nil, err
	}
	s := newState(sc.mode, append([]AgentConfig{lead}, participants...), p.start.Lead)
	for _, e := range p.events {
		e.apply(s)
	}
	if s.lead == nil || s.summarized {
		return nil, ErrEnded
	}
	l := newLoop(sc, s, writer)
	l.before = p.elapsed
	cut, err := cutRounds(path, s, cfg)
	for _, r := range l.runners {
		r.cut, r.recall = cut[r.member], r.member.turns > 0
		r.cut.charge(r.account)
	}
	return l, err
}

// takeOver records that the session continues, and starts what a trace cannot hold: timers, and the
// replies on their way.
func (l *loop) takeOver() {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	e := resumedEvent{Type: trace.TypeResumed, OpenAsks: len(h.state.asks)}
	for _, m := range h.state.order {
		if m.round != nil {
			e.Interrupted = append(e.Interrupted, m.name)
			h.running++
		}
	}
	h.commit(e)
	h.refused = h.state.refusal
	h.restoreReply()
	for _, id := range h.state.openAsks() {
		h.arm(h.state.asks[id])
	}
	for _, r := range h.state.replies[h.state.inherited:] {
		h.outbox.put(r)
	}
}

// restoreReply writes the reply line of an answer that was the last thing to reach the trace: every
// answer to the lead of a discussion has one, right after it.
func (h *hub) restoreReply() {
	a := h.state.lastAnswer
	if h.state.mode == ModeDiscuss && a != nil && a.To == h.state.lead.name && a.From != OrchestratorName {
		h.commit(&replyEvent{
			Type:    typeReply,
			Kind:    ReplyReply,
			Agent:   a.From,
			Message: a.ID,
		})
	}
}

// elapsedBetween returns the time that the session was at work between two lines; it was not at
// work before a line that says it was resumed.
func elapsedBetween(before, after int64, kind string) time.Duration {
	if before == 0 || kind == trace.TypeResumed || kind == trace.TypeRecovered {
		return 0
	}
	return time.Duration(max(0, after-before)) * time.Millisecond
}
