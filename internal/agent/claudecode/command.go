package claudecode

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
)

// sessionFiles is the directory of everything that a session's program keeps.
type sessionFiles struct {
	home, config, tmp string
	mcpConfig         string // empty without MCP servers
	promptFile        string // a system prompt too long for the command line; empty otherwise
	settings          string // what wins over the settings of the project; empty if none are read
}

// prepare lays out the session's home.
func prepare(cfg agent.Config, login login) (sessionFiles, error) {
	p := sessionFiles{
		home: filepath.Join(cfg.Home, "home"), config: filepath.Join(cfg.Home, "config"),
		tmp: filepath.Join(cfg.Home, "tmp"),
	}
	if err := agent.MakeHome(p.home, p.config, p.tmp); err != nil {
		return sessionFiles{}, err
	}
	if login.file != "" {
		if err := agent.CopyLogin(cfg, login.file, filepath.Join(p.config, credentials)); err != nil {
			return sessionFiles{}, err
		}
	}
	if len(cfg.MCPServers) > 0 {
		p.mcpConfig = filepath.Join(cfg.Home, "mcp.json")
		if err := writeMCP(cfg, p.mcpConfig); err != nil {
			return sessionFiles{}, err
		}
	}
	if len(cfg.SystemPrompt) > longArgument {
		p.promptFile = filepath.Join(cfg.Home, "system-prompt.md")
		if err := agent.WriteHome(cfg.Home, p.promptFile, []byte(cfg.SystemPrompt)); err != nil {
			return sessionFiles{}, err
		}
	}
	err := p.writeSettings(cfg, login)
	return p, err
}

// writeSettings writes the settings that come from the caller, and those that win over all others.
// They are files because everybody can read a command line.
func (p *sessionFiles) writeSettings(cfg agent.Config, login login) error {
	if cfg.Settings != "" {
		data, err := userSettings(cfg.Settings, cfg.RunsProjectPrograms())
		if err != nil {
			return err
		}
		if err := agent.WriteHome(cfg.Home, filepath.Join(p.config, "settings.json"), data); err != nil {
			return err
		}
	}
	if !cfg.ReadsProject() && cfg.Settings == "" {
		return nil
	}
	data, err := winning(cfg, *p, environment(cfg, login, *p, os.Geteuid() == 0))
	if err != nil {
		return err
	}
	p.settings = filepath.Join(cfg.Home, "settings.json")
	return agent.WriteHome(cfg.Home, p.settings, data)
}

// longArgument is the most that is put on a command line; the system refuses arguments of 128 KiB.
const longArgument = 64 << 10

// toolTimeoutMs lets a tool call block for hours: the other participants of a session may take
// their time.
const toolTimeoutMs = 6 * 60 * 60 * 1000

func writeMCP(cfg agent.Config, path string) error {
	entries, err := agent.MCPEntries(cfg.MCPServers)
	if err != nil {
		return err
	}
	for name, entry := range entries {
		entry.Timeout = toolTimeoutMs
		entries[name] = entry
	}
	data, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		return fmt.Errorf("write MCP configuration: %w", err)
	}
	return agent.WriteHome(cfg.Home, path, data)
}

// environment returns everything the child sees.
func environment(cfg agent.Config, login login, p sessionFiles, root bool) sandbox.Environment {
	env := sandbox.NewEnvironment(sandbox.EnvironmentConfig{Parent: cfg.Environ, Home: p.home, TmpDir: p.tmp})
	env["CLAUDE_CONFIG_DIR"] = p.config
	maps.Copy(env, fixedVariables)
	env["CLAUDE_CODE_MAX_RETRIES"] = strconv.Itoa(defaultRetries)
	if cfg.Retries != nil {
		env["CLAUDE_CODE_MAX_RETRIES"] = strconv.Itoa(*cfg.Retries)
	}
	if root {
		env["IS_SANDBOX"] = "1" // the program refuses to skip permission prompts as root without it
	}
	if !cfg.ReadsProject() {
		env[noMemoryVariable] = "1" // without it, rules of directories arrive when a file in them is read
	}
	if cfg.Effort != "" {
		env[effortVariable] = cfg.Effort
	}
	maps.Copy(env, login.variables)
	env.Assign(cfg.ExtraEnv...)
	return env
}

const (
	// noMemoryVariable keeps every CLAUDE.md and rule from the model.
	noMemoryVariable = "CLAUDE_CODE_DISABLE_CLAUDE_MDS"
	// effortVariable wins over the program's own flag.
	effortVariable = "CLAUDE_CODE_EFFORT_LEVEL"
)

// defaultRetries survives half a minute of failures; the program's own ten tries take minutes, even
// with a key that will never be accepted.
const defaultRetries = 4

// fixedVariables keep the program quiet and its tools in sight.
var fixedVariables = map[string]string{
	"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
	"DISABLE_TELEMETRY":                        "1",
	"DISABLE_AUTOUPDATER":                      "1",
	"DISABLE_ERROR_REPORTING":                  "1",
	"ENABLE_TOOL_SEARCH":                       "false", // tools of MCP servers are offered, not hidden behind a search
	"MCP_CONNECTION_NONBLOCKING":               "0",     // wait for MCP servers instead of starting without them
	"MCP_TOOL_TIMEOUT":                         strconv.Itoa(toolTimeoutMs),
	hostVariable:                               "1",
}

// arguments is the command line.
type arguments struct {
	path      string
	cfg       agent.Config
	files     sessionFiles
	longLived bool
	resume    string
}

func (a arguments) argv() []string {
	argv := []string{a.path, "-p", "--output-format", "stream-json", "--verbose"}
	add := func(words ...string) { argv = append(argv, words...) }
	if a.longLived {
		add("--input-format", "stream-json")
	}
	add("--dangerously-skip-permissions", "--setting-sources", a.sources())
	if a.files.settings != "" {
		add("--settings", a.files.settings)
	}
	if a.cfg.RunsProjectPrograms() {
		add("--include-hook-events") // what runs is in the stream
	} else {
		add("--strict-mcp-config")
	}
	if a.cfg.Model != "" {
		add("--model", a.cfg.Model)
	}
	if a.cfg.MaxTurns > 0 {
		add("--max-turns", strconv.Itoa(a.cfg.MaxTurns))
	}
	if a.files.mcpConfig != "" {
		add("--mcp-config", a.files.mcpConfig)
	}
	add(a.systemPrompt()...)
	if tools := builtinTools(a.cfg.AllowedTools); len(a.cfg.AllowedTools) > 0 {
		add("--tools", strings.Join(tools, ","))
	}
	if len(a.cfg.DisallowedTools) > 0 {
		add("--disallowedTools", strings.Join(a.cfg.DisallowedTools, ","))
	}
	if a.resume != "" {
		add("--resume", a.resume)
	}
	return argv
}

// sources are the settings that the program reads, and with them the texts beside them. Those of
// the user are in the session's home.
func (a arguments) sources() string {
	var sources []string
	if a.cfg.Settings != "" {
		sources = append(sources, "user")
	}
	if a.cfg.ReadsProject() {
		sources = append(sources, "project", "local")
	}
	return strings.Join(sources, ",")
}

func (a arguments) systemPrompt() []string {
	if a.cfg.SystemPrompt == "" {
		return nil
	}
	flag, value := "--append-system-prompt", a.cfg.SystemPrompt
	if a.cfg.ReplaceSystemPrompt {
		flag = "--system-prompt"
	}
	if a.files.promptFile != "" {
		flag, value = flag+"-file", a.files.promptFile
	}
	return []string{flag, value}
}

// builtinTools leaves out the tools of MCP servers: attaching a server asks for its tools. With
// permissions skipped, only the list of available tools restricts anything.
func builtinTools(allowed []string) []string {
	var tools []string
	for _, tool := range allowed {
		if !strings.HasPrefix(tool, "mcp__") {
			tools = append(tools, tool)
		}
	}
	return tools
}
