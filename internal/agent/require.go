package agent

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/session"
)

// Checker is an agent that knows, without starting anything, whether it can do what a config asks
// for, and what it lacks to do it.
type Checker interface {
	// Check is called with a config that has passed Require. A CapabilityError means that the agent
	// cannot do what is asked; other errors mean that something is missing on this machine, such as
	// credentials.
	Check(cfg Config) error
}

// Check finds out whether an agent can do what is asked of it, before anything is started or
// written: what its capabilities say, and what the agent itself knows.
func Check(a Agent, cfg Config) error {
	if err := Require(a.Info(), cfg); err != nil {
		return err
	}
	if err := checkLimits(a, cfg); err != nil {
		return err
	}
	if checker, ok := a.(Checker); ok {
		return checker.Check(cfg)
	}
	return nil
}

// Require checks that an agent can do what is asked of it, before anything is started.
func Require(info Info, cfg Config) error {
	c := info.Capabilities
	for _, need := range []struct {
		asked   bool
		have    Support
		missing string
	}{
		{cfg.Resume != "", c.Resume, "resuming a conversation"},
		{cfg.SystemPrompt != "" && !cfg.ReplaceSystemPrompt, c.SystemPromptAppend, "appending to the system prompt"},
		{cfg.SystemPrompt != "" && cfg.ReplaceSystemPrompt, c.SystemPromptReplace, "replacing the system prompt"},
		{len(cfg.AllowedTools) > 0, c.AllowedTools, "a list of allowed tools"},
		{len(cfg.DisallowedTools) > 0, c.DisallowedTools, "a list of disallowed tools"},
		{len(cfg.MCPServers) > 0, c.MCP, "MCP servers"},
		{cfg.Settings != "", c.Settings, "a settings file"},
		{cfg.Effort != "", c.Effort, "an effort"},
		{cfg.Temperature != nil, c.Sampling, "a temperature"},
		{cfg.Auth == AuthSubscription, c.Subscription, "running on a subscription"},
	} {
		if need.asked && need.have == Unsupported {
			return &CapabilityError{Agent: info.ID, Missing: need.missing}
		}
	}
	switch {
	case cfg.Dir == "":
		return errors.New("start agent: no working directory given")
	case cfg.Home == "" && info.InstallHint != "":
		return errors.New("start agent: no home directory given")
	}
	return nil
}

// RequirePrice refuses a budget in dollars for an agent that does not report its cost, where the
// price of its model is not known either.
func RequirePrice(id session.AgentID, cfg Config, model string) error {
	if cfg.Account.Budget().USD <= 0 {
		return nil
	}
	if cfg.Prices != nil {
		usage := session.TokenUsage{InputTokens: 1, TotalTokens: 1}
		if _, known := cfg.Prices(model, usage, time.Now().UnixMilli()); known {
			return nil
		}
	}
	if model == "" {
		return Refuse(id, "a dollar budget needs a price, and no model is named; name one, or drop the budget")
	}
	return Refuse(id, "a dollar budget needs a price, and model %q has none; name it in a price file (FIT_PRICES) or "+
		"drop the budget", model)
}

// RequireTools refuses a list of allowed tools that means nothing to an agent with these tools: a
// list with an unknown name, or one that leaves the agent no tool at all. Lists are written for
// several agents, so a list may name the usual tools of others beside the agent's own.
func RequireTools(id session.AgentID, own, allowed []string) error {
	left := len(allowed) == 0
	for _, name := range allowed {
		switch {
		case slices.Contains(own, name), strings.HasPrefix(name, "mcp__"):
			left = true
		case session.CanonicalTool(name) == session.ToolOther:
			return Refuse(id, "agent %s has no tool %q; it has %s", id, name, strings.Join(own, ", "))
		}
	}
	if !left {
		return Refuse(id, "agent %s has none of the tools %s; it has %s", id, strings.Join(allowed, ", "),
			strings.Join(own, ", "))
	}
	return nil
}

// RequireEffort refuses an effort that an agent does not have.
func RequireEffort(id session.AgentID, efforts []string, asked string) error {
	if asked == "" || slices.Contains(efforts, asked) {
		return nil
	}
	return Refuse(id, "agent %s has no effort %q; it has %s", id, asked, strings.Join(efforts, ", "))
}

// The ways to be logged in.
const (
	AuthSubscription = "subscription"
	AuthAPIKey       = "apikey"
)
