package agent

// Check reports what a configuration asks of an agent that the agent cannot do, before anything starts.
func Check(info Info, cfg Config) error {
	has := info.Capabilities
	for _, want := range []struct {
		asked   bool
		support Support
		what    string
	}{
		{cfg.Resume != "", has.Resume, "resuming a conversation"},
		{len(cfg.MCPServers) > 0, has.MCP, "tools over MCP"},
		{cfg.MaxTurns > 0, has.MaxTurns, "a limit of turns"},
		{cfg.MaxCostUSD > 0, has.BudgetUSD, "a dollar budget"},
		{cfg.SystemPrompt != "" && !cfg.ReplaceSystemPrompt, has.SystemPromptAppend, "appending to its system prompt"},
		{cfg.SystemPrompt != "" && cfg.ReplaceSystemPrompt, has.SystemPromptReplace, "replacing its system prompt"},
		{len(cfg.AllowedTools) > 0, has.AllowedTools, "a list of allowed tools"},
		{len(cfg.DisallowedTools) > 0, has.DisallowedTools, "a list of disallowed tools"},
		{cfg.Auth == "subscription", has.Subscription, "running on a subscription"},
	} {
		if want.asked && want.support == Unsupported {
			return &CapabilityError{Agent: info.ID, Missing: want.what}
		}
	}
	return nil
}
