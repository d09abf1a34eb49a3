package claudecode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/sandbox"
)

// hostVariable tells the program that its caller decides about provider, credentials, models and
// proxies: it then takes no such variable from any settings. It has no other effect on sessions
// with the vendor's protocol.
const hostVariable = "CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST"

// socketVariable is the one variable for the endpoint that settings of the command line do not win
// over: as soon as a project has set it, the program takes it from nowhere else.
const socketVariable = "ANTHROPIC_UNIX_SOCKET"

// settingsFiles are those of a project.
var settingsFiles = []string{".claude/settings.json", ".claude/settings.local.json"}

// projectSettings is what we must know of a project's settings.
type projectSettings struct {
	Env             map[string]json.RawMessage `json:"env"`
	AvailableModels json.RawMessage            `json:"availableModels"`
}

// readSettings reads the settings of a project, the second file over the first. The program ignores
// files that are not JSON, and so do we.
func readSettings(dir string) (projectSettings, error) {
	all := projectSettings{Env: map[string]json.RawMessage{}}
	for _, name := range settingsFiles {
		data, err := agent.ReadProject(dir, name)
		if err != nil {
			return all, err
		}
		var top map[string]json.RawMessage // with a struct, Go would accept keys in any case
		if json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &top) != nil {
			continue
		}
		var env map[string]json.RawMessage
		if json.Unmarshal(top["env"], &env) == nil {
			maps.Copy(all.Env, env)
		}
		if models := top["availableModels"]; models != nil {
			all.AvailableModels = models
		}
	}
	if _, set := all.Env[socketVariable]; set {
		return all, agent.Refuse(agentID,
			"the project's settings in .claude set %s, with which a project would choose "+
				"the model's endpoint; remove it, or use --context none", socketVariable)
	}
	return all, nil
}

// pinned returns what the variables of a project's settings must be: those that fit sets keep their
// values, and those that the project never decides, or that may run a program where the project's
// programs must not run, are empty.
func (p projectSettings) pinned(env sandbox.Environment, programs bool) map[string]string {
	pins := map[string]string{}
	for name := range p.Env {
		value, ours := env[name]
		switch {
		case slices.Contains([]string{keyVariable, tokenVariable, oauthVariable}, name):
			// a file is no place for a credential; hostVariable keeps it
		case ours, !programs, reserved(name):
			pins[name] = value
		}
	}
	return pins
}

// reserved reports whether a variable is about endpoint, credentials, proxy, model or telemetry.
func reserved(name string) bool {
	upper := strings.ToUpper(name)
	if slices.Contains([]string{
		"CLAUDE_CODE_EXTRA_BODY", "CLAUDE_CODE_EXTRA_METADATA", "CLAUDE_CODE_ENABLE_TELEMETRY",
		"CLAUDE_CODE_API_BASE_URL", "CLAUDE_CODE_GB_BASE_URL", "CLAUDE_CODE_SUBAGENT_MODEL", "BETA_TRACING_ENDPOINT",
		"NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY",
	}, upper) {
		return true
	}
	if strings.HasSuffix(upper, "_PROXY") {
		return true
	}
	prefixes := []string{"ANTHROPIC_", "OTEL_", "AWS_", "CLAUDE_CODE_USE_", "CLAUDE_CODE_ENABLE_GATEWAY"}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(upper, prefix) })
}

// memoryName is the name of the directory for the program's notes to itself. The program says at
// its start where that directory is, and so whether it has taken our settings.
const memoryName = "fit-memory"

// winning returns the settings of the command line, which win over those of the project and of
// Config.Settings. The program ignores a file with a mistake in it without a word, so only fit's
// own settings are in this one.
func winning(cfg agent.Config, p sessionFiles, env sandbox.Environment) ([]byte, error) {
	var project projectSettings
	var above above
	if cfg.ReadsProject() {
		var err error
		if project, err = readSettings(cfg.Dir); err != nil {
			return nil, err
		}
		if above, err = lookAbove(cfg); err != nil {
			return nil, err
		}
	}
	programs := cfg.RunsProjectPrograms()
	settings := map[string]any{
		"env":   project.pinned(env, programs),
		"model": cfg.Model,
		"permissions": map[string]any{
			"defaultMode": "bypassPermissions",
			// A project can forbid that mode. Then this list allows the same.
			"allow": allTools(cfg.MCPServers),
			"deny":  above.agentRules(),
		},
		"autoMemoryDirectory":    filepath.Join(p.config, memoryName),
		"sandbox":                map[string]any{"enabled": false},
		"cleanupPeriodDays":      30, // 0 would delete the record of the session
		"enforceAvailableModels": false,
		// the connectors of the account that pays belong to its owner
		"disableClaudeAiConnectors": true,
		"claudeMdExcludes":          append([]string{}, above.excludes...), // null would be a mistake
		"disabledMcpjsonServers":    append([]string{}, above.servers...),
		"skillOverrides":            above.overrides(),
	}
	for _, helper := range []string{
		"apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh", "otelHeadersHelper",
		"proxyAuthHelper",
	} {
		settings[helper] = ""
	}
	if project.AvailableModels != nil && cfg.Model != "" {
		settings["availableModels"] = []string{cfg.Model} // lists are joined
	}
	if !programs {
		settings["disableAllHooks"], settings["disableSkillShellExecution"] = true, true
	}
	return jsonenc.Marshal(settings)
}

// allTools are rules that allow every tool.
func allTools(servers []agent.MCPServer) []string {
	rules := slices.Clone(tools)
	for _, server := range servers {
		rules = append(rules, "mcp__"+server.Name)
	}
	return rules
}

// userSettings reads Config.Settings. It refuses what would be without effect.
func userSettings(path string, programs bool) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, agent.Refuse(agentID,
			"the settings %s are not a JSON object, as Claude Code's settings.json is: %v",
			path, err)
	}
	if object["model"] != nil {
		return nil, agent.Refuse(agentID,
			"the settings %s name a model, which fit decides; use the key model instead", path)
	}
	if object["hooks"] != nil && !programs {
		return nil, agent.Refuse(agentID,
			"the settings %s have hooks, which run only in a sandbox; isolate the agent, or "+
				"accept programs with context: project", path)
	}
	return data, nil
}
