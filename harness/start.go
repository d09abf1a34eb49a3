package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/session"
)

// StartError says that the agent of a member could not be started at all.
type StartError struct {
	Member string
	Err    error
}

func (e *StartError) Error() string { return fmt.Sprintf("start %s: %v", e.Member, e.Err) }

func (e *StartError) Unwrap() error { return e.Err }

// startAgent makes and starts the agent of a member, or of the advisor.
func (l *OrchestrationLoop) startAgent(
	ctx context.Context, config AgentConfig, resume string, events func([]byte), started func(agent.Started),
) (agent.Session, session.AgentID, error) {
	l.querying.Lock()
	played, err := l.cfg.query(config)
	l.querying.Unlock()
	if err != nil {
		return nil, "", fmt.Errorf("agent of %s: %w", config.Name, err)
	}
	info := played.Info()
	settings := l.agentSettings(config)
	settings.Resume, settings.Events, settings.Started = resume, events, started
	if err := l.restrict(&settings, info, config); err != nil {
		return nil, info.ID, &StartError{config.Name, err}
	}
	if l.connector != nil && l.hub.state.members[config.Name] != nil {
		servers, err := l.connector.Servers(config.Name, info)
		if err != nil {
			return nil, info.ID, &StartError{config.Name, err}
		}
		settings.MCPServers = append(servers, settings.MCPServers...)
	}
	conversation, err := played.Start(ctx, settings)
	if err != nil {
		return nil, info.ID, &StartError{config.Name, err}
	}
	return conversation, info.ID, nil
}

// agentSettings turns the config of a member into that of its agent.
func (l *OrchestrationLoop) agentSettings(config AgentConfig) agent.Config {
	settings := l.cfg.options.Base
	settings.Name, settings.Dir, settings.Model = config.Name, config.Cwd, or(config.Model, settings.Model)
	settings.Home = or(config.Home, filepath.Join(l.hub.state.settings.HomeDir, config.Name))
	settings.MaxTurns = max(config.MaxTurns, 0)
	settings.SystemPrompt, settings.ReplaceSystemPrompt = config.System.Text, config.System.Replace
	settings.AllowedTools, settings.DisallowedTools = config.Tools, config.DisallowedTools
	settings.MCPServers = slices.Clone(config.MCPServers)
	settings.ExtraEnv = slices.Clone(settings.ExtraEnv)
	if config.AgentProfile != "" {
		settings.ExtraEnv = append(settings.ExtraEnv, profileVariable+config.AgentProfile)
	}
	if skill := l.skills.of(or(config.consultedBy, config.Name)); skill != "" {
		settings.ExtraEnv = append(settings.ExtraEnv, skillVariable+skill)
	}
	return settings
}

// profileVariable tells the programs that an agent starts which profile it plays.
const profileVariable = "LIBHARNESS_AGENT_PROFILE="

// restrict takes back lists of tools that an agent cannot honour, and says so in the trace. A judge that cannot be kept from writing is not started.
func (l *OrchestrationLoop) restrict(settings *agent.Config, info agent.Info, config AgentConfig) error {
	can := info.Capabilities
	if can.MCP == agent.Unsupported { // it lives in this process and has no tools of its own
		return nil
	}
	var lost []string
	if can.AllowedTools == agent.Unsupported && len(settings.AllowedTools) > 0 {
		settings.AllowedTools = nil
		lost = append(lost, "all of its own tools are allowed")
	}
	if can.DisallowedTools == agent.Unsupported && len(settings.DisallowedTools) > 0 {
		if l.hub.state.mode == ModeJudge && slices.Contains(settings.DisallowedTools, "Bash") {
			return fmt.Errorf("%s cannot be kept from writing: its tools cannot be taken away one by one, and there is no read-only sandbox here", info.ID)
		}
		lost = append(lost, "these cannot be taken away: "+strings.Join(settings.DisallowedTools, ", "))
		settings.DisallowedTools = nil
	}
	if len(lost) > 0 {
		l.note(noteEvent{Type: typeWarning, Agent: config.Name, Text: fmt.Sprintf("%s has no lists of tools: %s", info.ID, strings.Join(lost, "; "))})
	}
	return nil
}
