package harness

import (
	"errors"
	"fmt"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/profile"
)

// runAdvisor is the advisor of a run: the same as in a session, without a team around it.
type runAdvisor struct {
	loop    *loop // never started; it holds the advisor
	servers []agent.MCPServer
}

func openRunAdvisor(cfg RunConfig) (*runAdvisor, error) {
	if cfg.NewAgent == nil || cfg.Connect == nil {
		return nil, errors.New("a run with an advisor needs NewAgent and Connect")
	}
	member := AgentConfig{
		Name:   runLane,
		Role:   runLane,
		Agent:  string(cfg.Agent.Info().ID),
		Cwd:    cfg.Session.Dir,
		System: profile.SystemPrompt{Text: cfg.Session.SystemPrompt, Replace: cfg.Session.ReplaceSystemPrompt},
	}
	s := newState(modeRun, []AgentConfig{member}, "")
	base := cfg.Session
	base.MCPServers, base.Events, base.Started, base.Resume, base.Model = nil, nil, nil, "", ""
	options := Options{Advisor: cfg.Advisor, Base: base, Connect: cfg.Connect}
	s.settings = options.settings()
	loop := newLoop(sessionConfig{
		mode:     modeRun,
		newAgent: cfg.NewAgent,
		options:  options,
		redactor: redactorOr(cfg.Redactor, options),
	}, s, cfg.Trace)
	if err := loop.prepare(); err != nil {
		return nil, err
	}
	a := &runAdvisor{loop: loop}
	var err error
	if a.servers, err = loop.connector.Servers(runLane, cfg.Agent.Info()); err != nil {
		a.close()
		return nil, fmt.Errorf("tools of the run: %w", err)
	}
	loop.runners[0].record.prompt(cfg.Task)
	return a, nil
}

func (a *runAdvisor) line(event []byte) {
	if a != nil {
		a.loop.skills.watch(runLane, event)
		a.loop.runners[0].record.line(event)
	}
}

// close ends running consultations. Nothing is written after it.
func (a *runAdvisor) close() {
	l := a.loop
	l.hub.advisor.stop(l.hub.state.settings.StopGrace)
	_ = l.connector.Close() // every client has ended
	l.cancel()
	l.hub.lanes.Lock()
	l.hub.closed = true
	l.hub.lanes.Unlock()
	l.hub.mu.Lock()
	l.hub.ended = true
	l.hub.mu.Unlock()
	l.removeTempHome()
}
