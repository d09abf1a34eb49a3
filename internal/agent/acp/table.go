package acp

import (
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/session"
)

// startedBySettings are the keys of Gemini's settings, and of those of its relatives, that start
// programs.
var startedBySettings = []string{"hooks", "mcpServers", "discoveryCommand", "serverCommand"}

// table lists every agent that fit knows to speak the protocol. A new agent needs only a new entry
// here. The entries were checked with the versions that test/acp pins.
var table = []Entry{
	openCode("opencode", "OpenCode", "OPENCODE", Entry{
		Title:   "opencode",
		Command: "opencode",
		Install: "npm install -g opencode-ai",
		Oldest:  [2]int{1, 18},
		Places: agent.Places{
			Instructions: []string{"AGENTS.md", "CLAUDE.md"},
			OneOf:        true,
			Skills:       []string{".agents/skills", ".claude/skills", ".opencode/skills", ".opencode/skill"},
			Agents:       []string{".opencode/agents", ".opencode/agent"},
			Commands:     []string{".opencode/commands", ".opencode/command"},
			Programs: append(openCodePlugins[:len(openCodePlugins):len(openCodePlugins)],
				agent.ProjectProgram{Glob: ".opencode/tool/*"}, agent.ProjectProgram{Glob: ".opencode/tools/*"}),
		},
		Insists: agent.Places{Programs: openCodePlugins},
		Above:   openCodePlugins,
	}),
	{
		ID:      "qwen-code",
		Title:   "Qwen Code",
		Command: "qwen",
		Args: []string{
			"--acp", "{{if not .Restricted}}--approval-mode=yolo{{end}}",
			"{{if not .Project}}--safe-mode{{end}}", // without its own instructions, too
			"{{if and .SystemPrompt (not .Project)}}--append-system-prompt={{.SystemPrompt}}{{end}}",
		},
		Install:   "npm install -g @qwen-code/qwen-code",
		Login:     "set OPENAI_API_KEY, or ANTHROPIC_API_KEY for models of that vendor",
		Oldest:    [2]int{0, 24},
		Keys:      []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"},
		Protocols: []string{agent.ProtocolChat, agent.ProtocolAnthropic},
		Env: map[string]string{
			"OPENAI_BASE_URL":    `{{if ne .Protocol "anthropic"}}{{or .URL "https://api.openai.com"}}/v1{{end}}`,
			"OPENAI_API_KEY":     `{{if and .URL (ne .Protocol "anthropic")}}{{.Key}}{{end}}`,
			"OPENAI_MODEL":       `{{if ne .Protocol "anthropic"}}{{.Model}}{{end}}`,
			"ANTHROPIC_BASE_URL": `{{if eq .Protocol "anthropic"}}{{or .URL "https://api.anthropic.com"}}{{end}}`,
			"ANTHROPIC_API_KEY":  `{{if and .URL (eq .Protocol "anthropic")}}{{.Key}}{{end}}`,
			"ANTHROPIC_MODEL":    `{{if eq .Protocol "anthropic"}}{{.Model}}{{end}}`,
			// Otherwise the tools of servers arrive some time after the first prompt.
			"QWEN_CODE_LEGACY_MCP_BLOCKING": "1",
			"QWEN_CODE_NO_RELAUNCH":         "true", // or it starts twice, for a larger heap
			// A .env of the project would win over the usual variables of keys.
			"FIT_MODEL_KEY": "{{.Key}}",
			// Its settings win over those of the project.
			"QWEN_CODE_SYSTEM_SETTINGS_PATH": "{{.Home}}/settings.json",
			"QWEN_CODE_SYSTEM_DEFAULTS_PATH": "{{.Home}}/none.json",
		},
		StartsAtHome: true,
		Files: map[string]string{
			".env": "# This ends the search.\n",
			// Its defaults call the model for a classifier before every command, and for memory and
			// suggestions after every turn.
			"settings.json": `{
				"security": {"auth": {"selectedType":
					{{if eq .Protocol "anthropic"}}"anthropic"{{else}}"openai"{{end}}}},
				"general": {"enableAutoUpdate": false},
				"privacy": {"usageStatisticsEnabled": false},
				"telemetry": {"enabled": false, "otlpEndpoint": "", "outfile": ""}, "proxy": {{json .Proxy}},
				"model": {"name": {{json .Model}}, "baseUrl": ""},
				"modelProviders": { {{if .Model}}{{if eq .Protocol "anthropic"}}"anthropic": [{
					"id": {{json .Model}}, "baseUrl": {{json (or .URL "https://api.anthropic.com")}},
					"envKey": "FIT_MODEL_KEY"}]
					{{else}}"openai": [{
					"id": {{json .Model}}, "baseUrl": {{json (print (or .URL "https://api.openai.com") "/v1")}},
					"envKey": "FIT_MODEL_KEY"}]{{end}}{{end}} },
				"tools": {
					{{if not .Programs}}"discoveryCommand": "", "callCommand": "",{{end}}
					"approvalMode": {{if .Restricted}}"default"{{else}}"yolo"{{end}}
				},
				{{if not .Programs}}"mcp": {"serverCommand": ""},{{end}}
				"memory": {"enableManagedAutoMemory": false, "enableManagedAutoDream": false},
				"ui": {"enableFollowupSuggestions": false},
				"disableAllHooks": {{not .Programs}},
				"context": {
					"fileName": [{{json (.FromAnywhere (print .Home "/system.md"))}},
						{{json (.FromAnywhere (print .Dir "/QWEN.md"))}}, {{json (.FromAnywhere (print .Dir "/AGENTS.md"))}}]
				}
			}`,
			"system.md": "{{if .Project}}{{.SystemPrompt}}{{end}}",
		},
		Places: agent.Places{
			Git:          true,
			Instructions: []string{"AGENTS.md", "QWEN.md", ".qwen/rules"},
			Skills:       []string{".agents/skills", ".qwen/skills"},
			Agents:       []string{".qwen/agents"},
			Commands:     []string{".qwen/commands"},
			Programs: []agent.ProjectProgram{
				{Glob: ".qwen/settings.json", Keys: startedBySettings},
				{Glob: ".mcp.json"},
			},
		},
		KeepsOut: true,
		Insists: agent.Places{Programs: []agent.ProjectProgram{
			{Glob: ".qwen/settings.json", Keys: []string{"mcpServers"}}, {Glob: ".mcp.json"},
		}},
		// An empty variable counts as none here.
		Pins:   map[string]string{"QWEN_TELEMETRY_ENABLED": "false", "QWEN_USAGE_STATISTICS_ENABLED": "false"},
		Above:  []agent.ProjectProgram{{Glob: ".qwen/rules/*"}, {Glob: ".qwen/QWEN.local.md"}},
		Resume: byLoad,
		Usage:  usagePerCall,
		Names:  []string{"qwen-code"},
	},
	{
		ID:      "copilot",
		Title:   "GitHub Copilot CLI",
		Command: "copilot",
		Args: []string{
			"--acp", "{{if not .Restricted}}--allow-all{{end}}",
			"{{if .MCPServers}}--additional-mcp-config=@{{.Home}}/mcp.json{{end}}",
		},
		Install:   "npm install -g @github/copilot",
		Login:     "set OPENAI_API_KEY, or ANTHROPIC_API_KEY for models of that vendor",
		Oldest:    [2]int{1, 0},
		Keys:      []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"},
		Protocols: []string{agent.ProtocolChat, agent.ProtocolResponses, agent.ProtocolAnthropic},
		Env: map[string]string{
			"COPILOT_OFFLINE":     "true",
			"COPILOT_AUTO_UPDATE": "false",
			"COPILOT_HOME":        "{{.Home}}/.copilot",
			"COPILOT_PROVIDER_BASE_URL": `{{if eq .Protocol "anthropic"}}{{or .URL "https://api.anthropic.com"}}` +
				`{{else}}{{or .URL "https://api.openai.com"}}/v1{{end}}`,
			"COPILOT_PROVIDER_API_KEY":  "{{.Key}}",
			"COPILOT_PROVIDER_TYPE":     `{{if eq .Protocol "anthropic"}}anthropic{{end}}`,
			"COPILOT_PROVIDER_WIRE_API": `{{if eq .Protocol "responses"}}responses{{end}}`,
			"COPILOT_MODEL":             "{{.Model}}",
			"GIT_CEILING_DIRECTORIES":   "{{.Parent}}", // or it reads the instructions of the repository above
		},
		Files: map[string]string{
			"mcp.json":                         `{{.MCPServers.File "http"}}`, // servers of session/new are dropped
			".copilot/copilot-instructions.md": "{{.SystemPrompt}}",
			".copilot/settings.json":           `{"disableAllHooks": {{not .Programs}}}`,
		},
		Resume:  byLoad,
		Usage:   usageSession,
		Errors:  []string{"Error: "},
		Notices: []string{"Info: "},
		Names:   []string{"Copilot"},
		Places:  copilotPlaces,
		Insists: copilotPlaces,
		Above: []agent.ProjectProgram{
			{Glob: ".agents/skills/*"},
			{Glob: ".claude/skills/*"},
			{Glob: ".github/skills/*"},
			{Glob: ".claude/agents/*"},
			{Glob: ".github/agents/*"},
			{Glob: ".claude/commands/*"},
			{Glob: ".github/hooks/*"},
		},
	},
	{
		ID:        "cline",
		Title:     "Cline",
		Command:   "cline",
		Args:      []string{"--acp", "--auto-approve", "{{not .Restricted}}"},
		Install:   "npm install -g cline",
		Login:     "set OPENAI_API_KEY, or ANTHROPIC_API_KEY for models of that vendor",
		Oldest:    [2]int{3, 0},
		Keys:      []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"},
		Protocols: []string{agent.ProtocolChat, agent.ProtocolAnthropic},
		Env: map[string]string{
			"CLINE_API_KEY":              "{{.Key}}",
			"CLINE_PROVIDER":             clineProvider,
			"CLINE_MODEL":                "{{.Model}}",
			"CLINE_SESSION_BACKEND_MODE": "local", // or a daemon is left behind
			"CLINE_MCP_SETTINGS_PATH":    "{{.Home}}/mcp.json",
			"GIT_CEILING_DIRECTORIES":    "{{.Parent}}", // or it takes the skills of the repository above
		},
		StartsAtHome: true,
		Files: map[string]string{
			".env": "# This ends the search.\n",
			".cline/data/settings/global-settings.json": `{
				"telemetryOptOut": true, "autoUpdateEnabled": false,
				{{range .Denied}}{{if eq . "web_search"}}"tools": {"web_search": {"enabled": false}},{{end}}{{end}}
				"disabledTools": [{{range .Denied}}{{json .}}, {{end}}{{if .Project}}"-"{{else}}"skills"{{end}}]
			}`,
			".cline/data/settings/providers.json": `{{if .URL}}{
				"version": 1, "lastUsedProvider": "` + clineProvider + `",
				"modes": {}, "providers": {"` + clineProvider + `": {"settings": {
					"provider": "` + clineProvider + `", "apiKey": {{json .Key}}, "model": {{json .Model}},
					"baseUrl": {{json (print .URL "/v1")}}
				}, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}}}{{end}}`,
			".cline/rules/fit.md": "{{.SystemPrompt}}",
			"mcp.json":            `{{.MCPServers.File "streamableHttp"}}`, // servers of session/new are ignored
		},
		Places: agent.Places{
			Git:          true,
			Instructions: []string{"AGENTS.md", ".clinerules", ".cline/rules"},
			Skills:       []string{".agents/skills", ".cline/skills", ".clinerules/skills"},
			Commands:     []string{".clinerules/workflows", ".cline/workflows"},
			Programs: []agent.ProjectProgram{
				{Glob: ".clinerules/hooks/*"}, {Glob: ".cline/hooks/*"}, {Glob: ".cline/plugins/*"},
			},
		},
		Insists: agent.Places{
			Instructions: []string{"AGENTS.md", ".clinerules", ".cline/rules"},
			Commands:     []string{".clinerules/workflows", ".cline/workflows"},
			Programs: []agent.ProjectProgram{
				{Glob: ".clinerules/hooks/*"}, {Glob: ".cline/hooks/*"}, {Glob: ".cline/plugins/*"},
			},
		},
		Tools: map[string]string{
			"skills":            session.ToolOther,
			"read_files":        session.ToolRead,
			"search_codebase":   session.ToolSearch,
			"run_commands":      session.ToolBash,
			"fetch_web_content": session.ToolWeb,
			"web_search":        session.ToolWeb, // with some models, at the vendor
			"editor":            session.ToolEdit,
			"apply_patch":       session.ToolEdit, // instead of the editor, for some models
			"spawn_agent":       session.ToolTask,
		},
		SetModel:   setByOption, // the variable is ignored for names that it does not know
		Resume:     byLoad,
		AsksForAll: true,
		ToolName:   nameStartsTitle,
		Names:      []string{"cline"},
	},
	{
		ID:      "gemini",
		Title:   "Gemini CLI",
		Command: "gemini",
		Args: []string{
			"--acp", "{{if not (or .Restricted .Distrusted)}}--approval-mode=yolo{{end}}",
			"{{if .Model}}--model={{.Model}}{{end}}",
		},
		Install:   "npm install -g @google/gemini-cli",
		Login:     "set GEMINI_API_KEY",
		Oldest:    [2]int{0, 61},
		Keys:      []string{"GEMINI_API_KEY"},
		Protocols: []string{string(model.Gemini)},
		Env: map[string]string{
			"GOOGLE_GEMINI_BASE_URL":     "{{.URL}}",
			"GEMINI_API_KEY":             "{{.Key}}",
			"GEMINI_CLI_TRUST_WORKSPACE": "{{not .Distrusted}}",
			"GEMINI_CLI_NO_RELAUNCH":     "true", // or it starts twice, for a larger heap
		},
		Pins: map[string]string{
			"GOOGLE_GEMINI_BASE_URL":              "",
			"GEMINI_MODEL":                        "",
			"GEMINI_SYSTEM_MD":                    "",
			"GEMINI_WRITE_SYSTEM_MD":              "",
			"GEMINI_SANDBOX":                      "",
			"GEMINI_SANDBOX_PROXY_COMMAND":        "",
			"GEMINI_CLI_CUSTOM_HEADERS":           "",
			"GEMINI_CLI_HOME":                     "",
			"GEMINI_API_KEY_AUTH_MECHANISM":       "",
			"GEMINI_CLI_TRUSTED_FOLDERS_PATH":     "",
			"GEMINI_CLI_ACTIVITY_LOG_TARGET":      "",
			"GEMINI_CLI_IDE_SERVER_PORT":          "",
			"GEMINI_CLI_IDE_SERVER_STDIO_COMMAND": "",
			"GEMINI_DEBUG_LOG_FILE":               "",
			"GEMINI_TELEMETRY_ENABLED":            "false",
			"GEMINI_TELEMETRY_TARGET":             "local",
			"GEMINI_TELEMETRY_OTLP_ENDPOINT":      "",
			"GEMINI_TELEMETRY_OUTFILE":            "/dev/null",
			"OTEL_EXPORTER_OTLP_ENDPOINT":         "",
			"OTEL_EXPORTER_OTLP_HEADERS":          "",
			"GOOGLE_API_KEY":                      "",
			"GOOGLE_GENAI_USE_VERTEXAI":           "",
			"GOOGLE_GENAI_USE_GCA":                "",
			"GOOGLE_VERTEX_BASE_URL":              "",
			"GOOGLE_CLOUD_PROJECT":                "",
			"GOOGLE_CLOUD_ACCESS_TOKEN":           "",
			"GOOGLE_APPLICATION_CREDENTIALS":      "",
			"GOOGLE_GENAI_API_VERSION":            "",
			"CODE_ASSIST_ENDPOINT":                "",
			"CLOUD_SHELL":                         "",
			"SANDBOX":                             "",
			"HTTP_PROXY":                          "",
			"HTTPS_PROXY":                         "",
			"http_proxy":                          "",
			"https_proxy":                         "",
			"NO_PROXY":                            "",
			"no_proxy":                            "",
			"ALL_PROXY":                           "",
			"all_proxy":                           "",
			"NODE_TLS_REJECT_UNAUTHORIZED":        "",
		},
		StartsAtHome: true,
		Files: map[string]string{
			".env": "# This ends the search.\n",
			".gemini/settings.json": `{
				"security": {"auth": {"selectedType": "gemini-api-key"}},
				"general": {"enableAutoUpdate": false},
				"privacy": {"usageStatisticsEnabled": false},
				"telemetry": {"enabled": false},
				"skills": {"enabled": {{.Project}}},
				"context": {"memoryBoundaryMarkers": []},
				"advanced": {"ignoreLocalEnv": true}
			}`,
			".gemini/GEMINI.md": "{{.SystemPrompt}}",
		},
		Places: agent.Places{
			Git:          true,
			Instructions: []string{"GEMINI.md"},
			Skills:       []string{".agents/skills", ".gemini/skills"},
			Programs: []agent.ProjectProgram{
				{Glob: ".gemini/settings.json", Keys: startedBySettings},
				{Glob: ".gemini/.env"}, // variables of the shell, some of which run programs
			},
		},
		Insists: agent.Places{
			Instructions: []string{"GEMINI.md"},
			Programs: []agent.ProjectProgram{
				{Glob: ".gemini/settings.json", Keys: startedBySettings},
			},
		},
		Decides: []agent.ProjectProgram{{Glob: ".gemini/settings.json", Keys: []string{
			"telemetry", "selectedType", "enforcedType", "useExternal", "modelConfigs", "memoryBoundaryMarkers",
			"sandbox",
		}}},
		Distrusts: true,
		Usage:     usageQuota,
		ToolName:  nameStartsID,
		Names:     []string{"gemini-cli"},
	},
	{
		ID:        "codex-acp",
		Title:     "codex-acp",
		Command:   "codex-acp",
		Install:   "npm install -g @agentclientprotocol/codex-acp",
		Login:     "set OPENAI_API_KEY",
		Oldest:    [2]int{2, 6},
		Places:    agent.Places{Git: true},
		Keys:      []string{"OPENAI_API_KEY"},
		Protocols: []string{agent.ProtocolResponses},
		Env: map[string]string{
			"OPENAI_API_KEY": "{{.Key}}",
			"NO_BROWSER":     "1",
		},
		Files: map[string]string{
			".codex/config.toml": `{{if .Model}}model = {{json .Model}}{{end}}
				model_provider = "fit"
				check_for_update_on_startup = false
				[model_providers.fit]
				name = "fit"
				base_url = {{json (print (or .URL "https://api.openai.com") "/v1")}}
				env_key = "OPENAI_API_KEY"
				wire_api = "responses"
				request_max_retries = 0
				stream_max_retries = {{.Retries}}
				[analytics]
				enabled = false
				[features]
				plugins = false
				apps = false
			`,
			".codex/AGENTS.md": "{{.SystemPrompt}}",
		},
		Mode:   "agent-full-access", // or it leaves empty folders in the workspace
		Resume: byLoad,
		Usage:  usageTurn,
		Errors: []string{
			"exceeded retry limit", "unexpected status ", "stream disconnected", "stream error", `{"error"`,
			"We’re currently experiencing high demand",
		},
		Notices: []string{"Warning: "},
		Names:   []string{"@agentclientprotocol/codex-acp"},
	},
	openCode("kilo", "Kilo", "KILO", Entry{
		Title:   "Kilo Code",
		Command: "kilo",
		Install: "npm install -g @kilocode/cli, with the package of your platform, such as @kilocode/cli-linux-x64",
		Oldest:  [2]int{7, 7},
	}),
}

// openCodePlugins are loaded by opencode whatever it is told.
var openCodePlugins = []agent.ProjectProgram{
	{Glob: ".opencode/plugin/*"},
	{Glob: ".opencode/plugins/*"},
	{Glob: "opencode.json*", Keys: []string{"plugin", "plugins"}},
	{Glob: ".opencode/opencode.json*", Keys: []string{"plugin", "plugins"}},
}

// copilotPlaces are read by Copilot whatever it is told.
var copilotPlaces = agent.Places{
	Git: true,
	Instructions: []string{
		"AGENTS.md", "CLAUDE.md", "GEMINI.md", ".claude/rules",
		".github/copilot-instructions.md", ".github/instructions",
	},
	Skills:   []string{".agents/skills", ".claude/skills", ".github/skills"},
	Agents:   []string{".github/agents", ".claude/agents"},
	Commands: []string{".claude/commands"},
	Programs: []agent.ProjectProgram{
		{Glob: ".github/hooks/*"},
		{Glob: ".github/copilot/settings*.json", Keys: []string{"hooks"}},
		{Glob: ".claude/settings*.json", Keys: []string{"hooks"}},
	},
}

// clineProvider is the provider's name in Cline's settings.
const clineProvider = `{{if eq .Protocol "anthropic"}}anthropic{{else}}openai-compatible{{end}}`

// openCode fills in the entry of opencode or of a program made from it. All of its configuration is
// a variable.
func openCode(id, name, prefix string, e Entry) Entry {
	e.ID, e.Names = id, []string{name}
	e.Places.Git = true
	e.Args = []string{"acp"}
	e.Login = "set OPENAI_API_KEY, or ANTHROPIC_API_KEY for models of that vendor, and name the model as provider/model"
	e.Keys = []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
	e.Protocols = []string{agent.ProtocolChat, agent.ProtocolResponses, agent.ProtocolAnthropic}
	e.Env = map[string]string{
		prefix + "_DISABLE_AUTOUPDATE":      "1",
		prefix + "_DISABLE_MODELS_FETCH":    "1",
		prefix + "_DISABLE_LSP_DOWNLOAD":    "1",
		prefix + "_DISABLE_DEFAULT_PLUGINS": "1",
		// It would read the settings of its project, and all of this in the directories above it,
		// too. It is told where the project's texts are instead.
		prefix + "_DISABLE_PROJECT_CONFIG":  "1",
		prefix + "_DISABLE_EXTERNAL_SKILLS": "1",
		prefix + "_PURE":                    "{{if not .Programs}}1{{end}}", // no plugins
		// Otherwise it reads a list of every vendor's models, and uses none of them.
		prefix + "_MODELS_PATH": "{{if .URL}}{{.Home}}/models.json{{end}}",
		prefix + "_CONFIG_CONTENT": `{
			"autoupdate": false, "share": "disabled",
			"permission": {"*": {{if .Restricted}}"ask"{{else}}"allow"{{end}}
				{{range .Denied}}, {{json .}}: "deny"{{end}}}
			{{if .Project}}, "skills": {"paths": [{{json (print .Dir "/.agents/skills")}},
				{{json (print .Dir "/.claude/skills")}}, {{json (print .Dir "/.opencode/skills")}},
				{{json (print .Dir "/.opencode/skill")}}]}{{end}}
			, "instructions": [{{json (print .Home "/instructions.md")}}
				{{if .Project}}, {{json (.First "AGENTS.md" "CLAUDE.md")}}{{end}}]
			{{if .URL}}, "model": {{json (print "fit/" .Model)}}, "small_model": {{json (print "fit/" .Model)}},
			"enabled_providers": ["fit"],
			"provider": {"fit": {
				"npm": {{if eq .Protocol "anthropic"}}"@ai-sdk/anthropic"
					{{else if eq .Protocol "responses"}}"@ai-sdk/openai"
					{{else}}"@ai-sdk/openai-compatible"{{end}},
				"options": {"baseURL": {{json (print .URL "/v1")}}, "apiKey": {{json .Key}}},
				"models": { {{json .Model}}: {"limit": {"context": 200000, "output": 32000}} }
			}}
			{{else if .Model}}, "model": {{json .Model}}, "small_model": {{json .Model}}{{end}}
		}`,
	}
	e.Files = map[string]string{
		"instructions.md": "{{.SystemPrompt}}",
		"models.json":     "{{if .URL}}{}{{end}}",
	}
	for _, name := range []string{"agent", "agents", "command", "commands"} {
		e.Links = append(e.Links, link{Home: ".config/" + id + "/" + name, Project: "." + id + "/" + name})
	}
	for _, name := range []string{"plugin", "plugins", "tool", "tools"} {
		e.Links = append(e.Links, link{
			Home:    ".config/" + id + "/" + name,
			Project: "." + id + "/" + name,
			Program: true,
		})
	}
	e.Together = []string{"edit", "write", "apply_patch"} // one permission
	e.Tools = map[string]string{
		"bash":        session.ToolBash,
		"edit":        session.ToolEdit,
		"write":       session.ToolWrite,
		"apply_patch": session.ToolEdit,
		"glob":        session.ToolSearch,
		"grep":        session.ToolSearch,
		"read":        session.ToolRead,
		"skill":       session.ToolOther,
		"task":        session.ToolTask,
		"todowrite":   session.ToolPlan,
		"webfetch":    session.ToolWeb,
		"websearch":   session.ToolWeb,
	}
	e.Resume, e.Usage, e.ToolName, e.AsksForAll = byLoad, usageLastCall, nameIsTitle, true
	return e
}
