package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/profile"
	"github.com/fit-eval/fit/trace"
)

// AdvisorConfig gives participants a stronger model to ask. Without a Model there is no advisor.
type AdvisorConfig struct {
	Model string `json:"model,omitempty"`
	// Agent is the registered agent that plays the advisor; empty is the caller's own.
	Agent    string        `json:"agent,omitempty"`
	MaxUses  int           `json:"maxUses,omitempty"`   // by all participants together; 0 is 3
	Timeout  time.Duration `json:"timeoutNs,omitempty"` // of one consultation; 0 is five minutes
	MaxTurns int           `json:"maxTurns,omitempty"`  // model turns of one consultation; 0 is 5
}

// DefaultAdvisorUses is how often all participants together may ask.
const DefaultAdvisorUses = 3

const (
	defaultAdvisorTimeout = 5 * time.Minute
	defaultAdvisorTurns   = 5
	// advisorName is the lane of the advisor.
	advisorName = "advisor"
)

var (
	advisorTools           = []string{"Read", "Glob", "Grep"}
	advisorDisallowedTools = []string{
		"Bash", "Write", "Edit", "NotebookEdit", "Agent", "Task", "TaskOutput", "TaskStop", "TodoWrite", "WebFetch",
		"WebSearch",
	}
)

// advisor answers consultations: each is a new, one-shot, read-only session.
type advisor struct {
	cfg     AdvisorConfig
	hub     *hub
	start   func(ctx context.Context, cfg AgentConfig, events func([]byte)) (agent.Session, error)
	records map[string]*recorder // by caller
	configs map[string]AgentConfig

	// ctx ends with the session, and with it every consultation.
	ctx    context.Context
	cancel context.CancelFunc
	active sync.WaitGroup
}

func (l *loop) newAdvisor(cfg AdvisorConfig) *advisor {
	a := &advisor{
		cfg:     cfg,
		hub:     l.hub,
		records: map[string]*recorder{},
		configs: map[string]AgentConfig{},
	}
	a.ctx, a.cancel = context.WithCancel(l.ctx)
	a.start = func(ctx context.Context, cfg AgentConfig, events func([]byte)) (agent.Session, error) {
		started := func(info agent.Started) {
			l.hub.emitRedacted(agentStart(advisorName, cfg.Agent, cfg.Model, info))
		}
		played, err := l.agentOf(cfg)
		if err != nil {
			return nil, err
		}
		return l.startAgent(ctx, played, cfg, "", watching{events: events, started: started})
	}
	return a
}

func (c *call) consult() ToolResult {
	var args struct {
		Question string `json:"question"`
	}
	if err := c.decode(&args); err != nil {
		return failure(err)
	}
	question, err := c.text("question", args.Question)
	if err != nil {
		return failure(err)
	}
	advisor := c.hub.advisor
	used := 0
	if refusal := c.locked(func(s *state) ToolResult {
		if s.advisorUsed >= advisor.cfg.MaxUses {
			return ToolResult{Text: fmt.Sprintf("The advisor has been used %d of %d times; decide by your own "+
				"judgment.", s.advisorUsed, advisor.cfg.MaxUses)}
		}
		used = s.advisorUsed + 1
		c.hub.commit(advisorStartEvent{Type: typeAdvisorStart, Caller: c.member.name, Used: used})
		advisor.active.Add(1)
		return ToolResult{}
	}); used == 0 {
		return refusal
	}
	defer advisor.active.Done()
	if err := c.hub.flush(); err != nil {
		return failure(err)
	}
	began := time.Now()
	advice, result, err := advisor.ask(c.ctx, c.member.name, question)
	remaining := advisor.cfg.MaxUses - used
	event := advisorConsultEvent{
		Type:       trace.TypeAdvisorConsult,
		Caller:     c.member.name,
		Question:   question,
		Model:      advisor.cfg.Model,
		DurationMs: time.Since(began).Milliseconds(),
		Remaining:  remaining,
		OK:         err == nil,
		Steps:      result.Turns,
		Tokens:     result.Usage.TotalTokens,
		CostUSD:    result.Usage.CostUSD,
	}
	text := fmt.Sprintf("%s\n\n(%d of %d uses of the advisor remain.)", advice, remaining, advisor.cfg.MaxUses)
	if err != nil {
		event.Reason = c.hub.clean(err.Error())
		text = fmt.Sprintf("The advisor is unavailable (%s); continue by your own judgment. %d of %d uses remain.",
			event.Reason, remaining, advisor.cfg.MaxUses)
	}
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	c.hub.commit(event)
	return ToolResult{Text: text}
}

var errAdvisorStopped = errors.New("the consultation was stopped or took too long")

// ask runs one consultation. It ends with the caller's call, the session, or its own time limit.
func (a *advisor) ask(ctx context.Context, caller, question string) (advice string, result agent.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	if broken := guard(func() { result, err = a.converse(ctx, caller, question) }); broken != nil {
		err = broken
	}
	switch {
	case ctx.Err() != nil:
		return "", result, errAdvisorStopped
	case err != nil:
		return "", result, err
	case !result.Success && result.Err != nil:
		return "", result, result.Err
	case !result.Success:
		return "", result, errors.New("the consultation failed")
	default:
		return a.hub.clean(result.Text), result, nil
	}
}

// converse starts the advisor and asks it.
func (a *advisor) converse(ctx context.Context, caller, question string) (agent.Result, error) {
	conversation, err := a.start(ctx, a.config(caller), func(event []byte) { a.hub.emitLane(advisorName, event) })
	if err != nil {
		return agent.Result{}, err
	}
	defer conversation.Close()
	record := ""
	if r := a.records[caller]; r != nil {
		record = r.render() + "\n\n"
	}
	return conversation.Prompt(ctx, record+"<consult_question>\n"+question+"\n</consult_question>")
}

// config returns the advisor as an agent: the caller's vendor and directory, another model, and
// tools that only read.
func (a *advisor) config(caller string) AgentConfig {
	of := a.configs[caller]
	return AgentConfig{
		consultedBy:     caller,
		Name:            advisorName,
		Role:            advisorName,
		Agent:           cmp.Or(a.cfg.Agent, of.Agent),
		Model:           a.cfg.Model,
		Cwd:             of.Cwd,
		Context:         of.Context,
		Tools:           advisorTools,
		ToolsByRole:     true,
		DisallowedTools: advisorDisallowedTools,
		MaxTurns:        cmp.Or(a.cfg.MaxTurns, defaultAdvisorTurns),
		System:          profile.Compose(profile.Profile{}, profile.Text("advisor"), ""),
	}
}

// stop ends the running consultations and waits for them a while.
func (a *advisor) stop(grace time.Duration) {
	a.cancel()
	done := make(chan struct{})
	go func() {
		a.active.Wait()
		close(done)
	}()
	within(done, grace)
}

// advisorGuidance returns the part of a participant's prompt that describes the advisor.
func advisorGuidance(cfg AdvisorConfig) string {
	uses := "once"
	if cfg.MaxUses != 1 {
		uses = fmt.Sprintf("%d times", cfg.MaxUses)
	}
	return fmt.Sprintf(profile.Text("advisor-guidance"), uses)
}
