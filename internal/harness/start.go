package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/trace"
)

// StartError says that the agent of a member could not be started at all.
type StartError struct {
	Member string
	Err    error
}

func (e *StartError) Error() string { return fmt.Sprintf("start %s: %v", e.Member, e.Err) }

func (e *StartError) Unwrap() error { return e.Err }

// agentOf returns the agent that plays a member, or the advisor.
func (l *loop) agentOf(config AgentConfig) (agent.Agent, error) {
	l.making.Lock()
	defer l.making.Unlock()
	played, err := l.cfg.newAgent(config)
	if err == nil && played == nil {
		err = errors.New("NewAgent returned no agent")
	}
	if err != nil {
		return nil, fmt.Errorf("agent of %s: %w", config.Name, err)
	}
	return played, nil
}

// watching holds the callbacks that observe a running agent.
type watching struct {
	events  func([]byte)
	started func(agent.Started)
}

// startAgent starts the agent of a member, or of the advisor.
func (l *loop) startAgent(
	ctx context.Context, played agent.Agent, config AgentConfig, resume string, watch watching,
) (agent.Session, error) {
	info := played.Info()
	settings := l.agentSettings(config)
	settings.Resume, settings.Events, settings.Started = resume, watch.events, watch.started
	settings.Redactor = l.hub.redactor
	settings.Called = func(call calls.Call) { l.hub.emitRedacted(gateway.NewCallEvent(call)) }
	note, err := adapt(&settings, played, l.hub.state.mode, config)
	if err != nil {
		return nil, &StartError{config.Name, err}
	}
	if note != "" {
		l.note(noteEvent{Type: typeWarning, Agent: config.Name, Text: note})
	}
	if l.connector != nil && l.hub.state.members[config.Name] != nil {
		servers, err := l.connector.Servers(config.Name, info)
		if err != nil {
			return nil, &StartError{config.Name, err}
		}
		settings.MCPServers = append(servers, settings.MCPServers...)
		settings.Spawner = l.connector.Spawner(config.Name, settings.Spawner)
	}
	conversation, err := agent.Start(ctx, played, settings)
	if err != nil {
		return nil, &StartError{config.Name, err}
	}
	return conversation, nil
}

// agentStart returns the line that opens the lane of an agent. The model is that of its config
// where the agent does not name one.
func agentStart(name, runtime, model string, info agent.Started) trace.AgentStart {
	return trace.AgentStart{
		Type:          trace.TypeAgentStart,
		Agent:         name,
		Runtime:       runtime,
		Version:       info.Version,
		Protocol:      info.Protocol,
		Model:         cmp.Or(info.Model, model),
		KeyVisible:    info.KeyVisible,
		Auth:          info.Auth,
		Gateway:       info.Gateway,
		GatewayReason: info.GatewayReason,

		ProjectPrograms: info.ProjectPrograms,
	}
}

// agentSettings turns the config of a member into that of its agent.
func (l *loop) agentSettings(config AgentConfig) agent.Config {
	settings := memberSettings(l.cfg.options.Base, config)
	settings.Home = cmp.Or(config.Home, filepath.Join(l.hub.state.settings.HomeDir, config.Name))
	settings.Isolation = l.withOwnHome(settings.Isolation, settings.Home)
	if config.AgentProfile != "" {
		settings.ExtraEnv = append(settings.ExtraEnv, profileVariable+config.AgentProfile)
	}
	onBehalfOf := cmp.Or(config.consultedBy, config.Name)
	settings.Account = l.accountOf(onBehalfOf)
	if skill := l.skills.of(onBehalfOf); skill != "" {
		settings.ExtraEnv = append(settings.ExtraEnv, skillVariable+skill)
	}
	return settings
}

// withOwnHome shows a member its own home and hides those of the others.
func (l *loop) withOwnHome(isolation sandbox.Isolation, home string) sandbox.Isolation {
	if isolation.Kind != sandbox.IsolationBwrap {
		return isolation
	}
	homes := l.hub.state.settings.HomeDir
	isHomes := func(path string) bool { return path == homes }
	isolation.ReadOnly = slices.DeleteFunc(slices.Clone(isolation.ReadOnly), isHomes)
	isolation.Writable = append(slices.DeleteFunc(slices.Clone(isolation.Writable), isHomes), home)
	isolation.Hidden = append(slices.Clone(isolation.Hidden), homes)
	return isolation
}

// memberSettings returns the settings of a member's agent, except those that only a running session
// knows.
func memberSettings(base agent.Config, config AgentConfig) agent.Config {
	settings := base
	settings.Name, settings.Dir, settings.Model, settings.Home = config.Name, config.Cwd, cmp.Or(config.Model,
		base.Model), config.Home
	settings.Context = cmp.Or(config.Context, base.Context)
	settings.MaxTurns = max(config.MaxTurns, 0)
	settings.SystemPrompt, settings.ReplaceSystemPrompt = config.System.Text, config.System.Replace
	settings.AllowedTools, settings.DisallowedTools = config.Tools, config.DisallowedTools
	settings.MCPServers = slices.Clone(config.MCPServers)
	settings.Settings, settings.Effort = cmp.Or(config.Settings, base.Settings), cmp.Or(config.Effort, base.Effort)
	settings.Temperature = cmp.Or(config.Temperature, base.Temperature)
	settings.ExtraEnv = slices.Clone(base.ExtraEnv)
	if len(config.ReadOnly) > 0 {
		settings.Isolation = sealed(base.Isolation, config)
	}
	return settings
}

// sealed returns a sandbox in which a member sees the same as otherwise, and its ReadOnly
// directories, but can change nothing except its home.
func sealed(base sandbox.Isolation, config AgentConfig) sandbox.Isolation {
	isolation := base
	if base.Kind != sandbox.IsolationBwrap {
		isolation = sandbox.Isolation{Kind: sandbox.IsolationBwrap, Network: true}
	}
	isolation.ReadOnly = slices.Concat(base.ReadOnly, base.Writable, config.ReadOnly)
	isolation.Writable = nil
	return isolation
}

// profileVariable is the environment variable that names an agent's profile to the programs it
// starts.
const profileVariable = "LIBHARNESS_AGENT_PROFILE="

// CheckMember finds out, before anything is started or written, whether an agent can play a member
// of a session. An agent.CapabilityError means that the agent cannot do what is asked; other errors
// mean that something is missing on this machine.
func CheckMember(played agent.Agent, mode Mode, member AgentConfig, options Options) error {
	settings := memberSettings(options.Base, member)
	settings.Home = cmp.Or(settings.Home, member.Cwd)
	settings.MCPServers = append(settings.MCPServers, agent.MCPServer{Name: ServerName})
	// whether there is a budget matters here, and not its size
	limits := Limits{
		CostUSD: max(options.Limits.CostUSD, member.Limits.CostUSD),
		Tokens:  max(options.Limits.Tokens, member.Limits.Tokens),
	}
	if member.Name != mode.traits().lead {
		limits.CostUSD = max(limits.CostUSD, options.ParticipantLimits.CostUSD)
		limits.Tokens = max(limits.Tokens, options.ParticipantLimits.Tokens)
	}
	settings.Account = openAccount(options.Base, member.Name, limits)
	if _, err := adapt(&settings, played, mode, member); err != nil {
		return err
	}
	return agent.CheckPrograms(played.Info(), settings)
}

// adapt relaxes demands that come only from a member's role, where the agent cannot meet them, and
// returns a note about it. An agent that cannot do without its own system prompt gets that of its
// role in addition. An agent that reads files by running commands, or whose tools cannot be denied,
// works in a sandbox where it can change nothing; without one it reads nothing, or is refused.
// Everything else that is denied to the member stays so. A requested list is honoured or refused,
// and so is every list of a judge.
func adapt(settings *agent.Config, played agent.Agent, mode Mode, member AgentConfig) (note string, err error) {
	info := played.Info()
	can := info.Capabilities
	if info.InstallHint == "" && can.MCP == agent.Unsupported {
		return "", nil // a function of the caller, which reaches the session without tools
	}
	if can.LongLived == agent.Unsupported && can.Resume == agent.Unsupported {
		return "", &agent.CapabilityError{Agent: info.ID, Missing: "several prompts in one session"}
	}
	if settings.ReplaceSystemPrompt && can.SystemPromptReplace == agent.Unsupported &&
		can.SystemPromptAppend != agent.Unsupported {
		settings.ReplaceSystemPrompt = false
		note = "it keeps its own system prompt, to which that of its role is added; "
	}
	err = agent.Check(played, *settings)
	var lacking *agent.CapabilityError
	if !errors.As(err, &lacking) || mode == ModeJudge || !member.ToolsByRole {
		return strings.TrimSuffix(note, "; "), err
	}
	isolated := settings.Isolation.Kind == sandbox.IsolationBwrap
	unlisted := *settings
	unlisted.AllowedTools = nil
	if can.DisallowedTools == agent.Unsupported && deniedByRole(member) {
		unlisted.DisallowedTools = nil
	}
	for _, way := range []struct {
		open     bool
		settings agent.Config
		note     string
	}{
		{
			isolated, readingByCommands(*settings),
			lacking.Error() + "; so it runs commands, in a sandbox where they can change nothing",
		},
		{
			len(settings.DisallowedTools) == 0 && can.AllowedTools == agent.Unsupported, unlisted,
			lacking.Error() + "; so it has all of its own tools",
		},
		{
			isolated && can.AllowedTools == agent.Unsupported, changingNothing(unlisted),
			lacking.Error() + "; so it has all of its own tools, in a sandbox where they can change nothing",
		},
		{
			can.AllowedTools != agent.Unsupported, unlisted,
			"some tools of its role are missing: " + lacking.Error() + "; with --isolation bwrap it could read",
		},
	} {
		if way.open && agent.Check(played, way.settings) == nil {
			*settings = way.settings
			return note + way.note, nil
		}
	}
	if can.AllowedTools == agent.Unsupported && !isolated {
		err = fmt.Errorf("%w; with --isolation bwrap it could play this role, where it can change nothing", err)
	}
	return "", err
}

// deniedByRole reports whether only the role denies tools to a member.
func deniedByRole(member AgentConfig) bool {
	return !slices.ContainsFunc(member.DisallowedTools, func(tool string) bool {
		return !slices.Contains(facilitatorDenied, tool)
	})
}

// readingByCommands allows commands, where they can change nothing.
func readingByCommands(settings agent.Config) agent.Config {
	const commands = "Bash"
	settings.AllowedTools = append(slices.Clone(settings.AllowedTools), commands)
	settings.DisallowedTools = slices.DeleteFunc(slices.Clone(settings.DisallowedTools),
		func(tool string) bool { return tool == commands })
	return changingNothing(settings)
}

// changingNothing makes everything but the agent's home read-only.
func changingNothing(settings agent.Config) agent.Config {
	isHome := func(path string) bool { return path == settings.Home }
	writable := settings.Isolation.Writable
	settings.Isolation.ReadOnly = slices.Concat(settings.Isolation.ReadOnly,
		slices.DeleteFunc(slices.Clone(writable), isHome), []string{settings.Dir})
	settings.Isolation.Writable = slices.DeleteFunc(slices.Clone(writable),
		func(path string) bool { return !isHome(path) })
	return settings
}
