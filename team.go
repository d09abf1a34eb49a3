package fit

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/redact"
)

// Team is a session of several agents that is ready to be held once.
type Team struct {
	wiring Wiring
	mode   harness.Mode
	parts  parts
	// ownAgents says that the caller creates the agents, not the registry.
	ownAgents bool
	// build creates the session. It is called twice: to check everything before anything is
	// written, and to start.
	build func(parts) (*harness.Session, error)
	// prepare, if set, prepares what only a session that is about to start needs. The function it
	// returns releases that.
	prepare func(context.Context, *parts) (release func(), err error)
}

// parts holds what the build function of every mode needs.
type parts struct {
	newAgent harness.AgentFunc
	output   io.Writer
	redactor *redact.Redactor
	options  Options
	sealed   bool                // a read-only sandbox is there for the lead
	room     string              // the neutral directory of a judge
	replies  harness.ReplySender // of a discussion
	inbox    harness.Inbox
	warning  string // for the caller, before the session starts
}

// newTeam completes the parts from the wiring and checks the config.
func (w Wiring) newTeam(config string, team Team) (*Team, error) {
	w = w.filled()
	team.wiring = w
	if err := w.checkTrace(config, team.parts.options.Trace, team.parts.output); err != nil {
		return nil, err
	}
	if err := w.fillBase(&team.parts.options.Base); err != nil {
		return nil, err
	}
	team.ownAgents = team.parts.newAgent != nil
	if !team.ownAgents {
		team.parts.newAgent = w.newAgent
	}
	if _, err := team.rehearse(team.parts); err != nil {
		return nil, err
	}
	return &team, nil
}

// NewSupervisor is the function of the same name, with this wiring.
func (w Wiring) NewSupervisor(cfg SupervisorConfig) (*Team, error) {
	team := Team{mode: harness.ModeSupervise}
	team.parts = parts{
		newAgent: cfg.NewAgent,
		output:   cfg.Output,
		redactor: cfg.Redactor,
		options:  cfg.Options,
		sealed:   cfg.ReadOnlySandbox,
	}
	team.build = func(p parts) (*harness.Session, error) {
		cfg.NewAgent, cfg.Output, cfg.Redactor, cfg.Options = p.newAgent, p.output, p.redactor, p.options
		cfg.ReadOnlySandbox = p.sealed
		return harness.NewSupervisor(cfg)
	}
	team.prepare = func(ctx context.Context, p *parts) (func(), error) {
		p.sealed = p.options.Base.Isolation.Kind == sandbox.IsolationBwrap
		if !p.sealed && len(cfg.Supervisor.Tools) == 0 {
			p.warning = "the supervisor runs no commands, because without isolation nothing would keep them from " +
				"changing files"
		}
		return func() {}, nil
	}
	return w.newTeam("SupervisorConfig", team)
}

// NewFacilitator is the function of the same name, with this wiring.
func (w Wiring) NewFacilitator(cfg FacilitatorConfig) (*Team, error) {
	team := Team{mode: harness.ModeFacilitate}
	team.parts = parts{
		newAgent: cfg.NewAgent,
		output:   cfg.Output,
		redactor: cfg.Redactor,
		options:  cfg.Options,
	}
	team.build = func(p parts) (*harness.Session, error) {
		cfg.NewAgent, cfg.Output, cfg.Redactor, cfg.Options = p.newAgent, p.output, p.redactor, p.options
		return harness.NewFacilitator(cfg)
	}
	if len(cfg.AgentConfigs) == 0 {
		return nil, &ConfigError{
			"FacilitatorConfig.AgentConfigs",
			errors.New("it is empty; a facilitated session needs at least one participant"),
		}
	}
	return w.newTeam("FacilitatorConfig", team)
}

// Members returns the lead and the participants as they will take part, the lead first. A member
// whose agent is not named has none yet.
func (t *Team) Members() []AgentConfig {
	planned, err := t.rehearse(t.parts)
	if err != nil {
		return nil // a profile has changed since; Run says so
	}
	return planned.Members()
}

// directories returns the directories that the members work in.
func directories(members []AgentConfig) []string {
	var dirs []string
	for _, m := range members {
		if !slices.Contains(dirs, m.Cwd) {
			dirs = append(dirs, m.Cwd)
		}
	}
	return dirs
}

// rehearse builds the session without starting it.
func (t *Team) rehearse(p parts) (*harness.Session, error) {
	p.output, p.redactor, p.options.Trace = io.Discard, redact.New(redact.Config{}), nil
	return t.build(p)
}

// Run holds the session. It makes sure first that every agent is installed and can do its part, so
// that a mistake costs nothing.
func (t *Team) Run(ctx context.Context, task string) (Result, error) {
	p := t.parts
	note, err := t.wiring.isolate(ctx, &p.options.Base, directories(t.Members())...)
	if err != nil {
		return Result{}, err
	}
	if t.prepare != nil {
		release, err := t.prepare(ctx, &p)
		if err != nil {
			return Result{}, err
		}
		defer release()
	}
	members, err := t.check(ctx, &p)
	if err != nil {
		return Result{}, err
	}
	thread := t.wiring.connect(&p.options, &p.redactor, members)
	if p.options.Trace, err = t.wiring.openTrace(p.options.Trace, p.output, p.redactor); err != nil {
		return Result{}, err
	}
	end, err := t.wiring.openGateway(&p.options.Base, p.redactor)
	if err != nil {
		return Result{}, err
	}
	defer end()
	if t.mode == harness.ModeDiscuss {
		thread.connect(&p.replies, &p.inbox, p.redactor)
	}
	session, err := t.build(p)
	if err != nil {
		thread.close(Result{})
		return Result{}, err
	}
	t.wiring.ready(p.options.Base, note, members...)
	if p.warning != "" {
		t.wiring.warnf("%s", p.warning)
	}
	result, err := session.Run(ctx, task)
	thread.close(result)
	return result, err
}

// check chooses the agents of members that name none, and makes sure that all agents are installed.
// It does not check agents that the caller creates.
func (t *Team) check(ctx context.Context, p *parts) ([]AgentConfig, error) {
	if !t.ownAgents {
		chosen, _, err := t.wiring.choose(ctx, p.options.DefaultAgent, p.options.Base)
		if err != nil {
			return nil, err
		}
		p.options.DefaultAgent = string(chosen.Info().ID)
	}
	planned, err := t.rehearse(*p)
	if err != nil {
		return nil, err
	}
	members := planned.Members()
	if t.ownAgents {
		return members, nil
	}
	if err := t.wiring.checkMembers(ctx, t.mode, p.options, members); err != nil {
		return nil, err
	}
	if t.mode == harness.ModeJudge && p.sealed {
		return members, t.wiring.isolateJudge(ctx, &p.options, members[0].Agent, p.room)
	}
	return members, nil
}
