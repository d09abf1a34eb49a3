package claudecode

import "github.com/fit-eval/fit/internal/agent"

// places returns where the program reads what a project brings it. Prompts of a skill or a
// sub-agent can hold hooks, tool servers and commands too, which run when they are used.
func places() agent.Places {
	front := []string{"hooks", "mcpServers"}
	return agent.Places{
		Instructions: []string{"CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", ".claude/rules"},
		Imports:      true,
		Skills:       []string{".claude/skills"},
		Agents:       []string{".claude/agents"},
		Commands:     []string{".claude/commands", ".claude/workflows"},
		Git:          true,
		Programs: []agent.ProjectProgram{
			{Glob: ".claude/settings.json", Keys: programKeys},
			{Glob: ".claude/settings.local.json", Keys: programKeys},
			{Glob: ".mcp.json"},
			{Glob: ".claude/skills/*/SKILL.md", Keys: front},
			{Glob: ".claude/agents/**/*.md", Keys: front},
			{Glob: ".claude/commands/**/*.md", Keys: front},
		},
	}
}

// programKeys are the settings that make the program run others. A status line is not among them:
// nobody sees it here. Nor are the helpers for credentials and telemetry, which fit switches off.
var programKeys = []string{"hooks", "enabledPlugins", "extraKnownMarketplaces"}

// managed are the administrator's files, on Linux and on macOS.
var managed = []string{
	"/etc/claude-code/managed-settings.json",
	"/etc/claude-code/managed-settings.d",
	"/etc/claude-code/managed-mcp.json",
	"/etc/claude-code/CLAUDE.md",
	"/etc/claude-code/.claude",
	"/Library/Application Support/ClaudeCode/managed-settings.json",
	"/Library/Application Support/ClaudeCode/managed-settings.d",
	"/Library/Application Support/ClaudeCode/managed-mcp.json",
	"/Library/Application Support/ClaudeCode/CLAUDE.md",
	"/Library/Application Support/ClaudeCode/.claude",
}

// tools are the program's own, by their names in lists. Agent is its present name for Task; it has
// Glob and Grep only where a list asks for them.
var tools = []string{
	"Agent", "Bash", "CronCreate", "CronDelete", "CronList", "Edit", "EnterWorktree", "ExitWorktree", "Glob", "Grep",
	"NotebookEdit", "Read", "ReportFindings", "ScheduleWakeup", "SendMessage", "Skill", "Task", "TaskCreate", "TaskGet",
	"TaskList", "TaskOutput", "TaskStop", "TaskUpdate", "WebFetch", "WebSearch", "Workflow", "Write",
}

// efforts are the levels that the program knows. It ignores others without a word.
var efforts = []string{"low", "medium", "high", "xhigh", "max"}
