package agent

import "errors"

// Require checks that an agent can do what is asked of it, before anything is started.
func Require(info Info, cfg Config) error {
	c := info.Capabilities
	for _, need := range []struct {
		asked   bool
		have    Support
		missing string
	}{
		{cfg.Resume != "", c.Resume, "resuming a conversation"},
		{cfg.MaxTurns > 0, c.MaxTurns, "a turn limit"},
		{cfg.MaxCostUSD > 0, c.BudgetUSD, "a budget"},
		{cfg.SystemPrompt != "" && !cfg.ReplaceSystemPrompt, c.SystemPromptAppend, "appending to the system prompt"},
		{cfg.SystemPrompt != "" && cfg.ReplaceSystemPrompt, c.SystemPromptReplace, "replacing the system prompt"},
		{len(cfg.AllowedTools) > 0, c.AllowedTools, "a list of allowed tools"},
		{len(cfg.DisallowedTools) > 0, c.DisallowedTools, "a list of disallowed tools"},
		{len(cfg.MCPServers) > 0, c.MCP, "MCP servers"},
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

// The ways to be logged in.
const (
	AuthSubscription = "subscription"
	AuthAPIKey       = "apikey"
)
