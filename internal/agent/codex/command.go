package codex

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/sandbox"
)

// sessionFiles is the directory of everything that a session's program keeps. Its temporary
// files are beside its home, never above it: the program refuses to put its helpers into a home
// below the temporary directory, and without them its sandboxed commands fail.
type sessionFiles struct {
	home, codexHome, tmp string
	instructions         string // the file of a system prompt that replaces the program's own; empty if none does
}

// prepare lays out the session's home.
func prepare(cfg agent.Config, login login) (sessionFiles, error) {
	p := sessionFiles{
		home: filepath.Join(cfg.Home, "home"), codexHome: filepath.Join(cfg.Home, "codex"),
		tmp: filepath.Join(cfg.Home, "tmp"),
	}
	if err := agent.MakeHome(p.home, p.codexHome, p.tmp); err != nil {
		return sessionFiles{}, err
	}
	if err := login.install(cfg, p.codexHome); err != nil {
		return sessionFiles{}, err
	}
	if cfg.SystemPrompt != "" && cfg.ReplaceSystemPrompt {
		p.instructions = filepath.Join(cfg.Home, "instructions.md")
		if err := agent.WriteHome(cfg.Home, p.instructions, []byte(cfg.SystemPrompt)); err != nil {
			return sessionFiles{}, err
		}
	}
	config, err := configFile(cfg, p.instructions)
	if err == nil && cfg.Settings != "" {
		config, err = overSettings(cfg.Settings, config)
	}
	if err != nil {
		return sessionFiles{}, err
	}
	if err := agent.WriteHome(cfg.Home, filepath.Join(p.codexHome, "config.toml"), config); err != nil {
		return sessionFiles{}, err
	}
	return p, nil
}

// toolTimeoutSec lets a tool call block for hours: the other participants of a session may take
// their time.
const toolTimeoutSec = 6 * 60 * 60

// configFile holds what must not be on the command line, where everybody could read it or where it
// would be too long: tokens of tool servers, prompts.
func configFile(cfg agent.Config, instructions string) ([]byte, error) {
	denied, err := restrict(cfg)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if denied.has(patching) {
		fmt.Fprintf(&b, "model_catalog_json = %s\n", quoted(filepath.Join(cfg.Home, catalogName)))
	}
	if instructions != "" {
		fmt.Fprintf(&b, "model_instructions_file = %s\n", quoted(instructions))
	} else if cfg.SystemPrompt != "" {
		fmt.Fprintf(&b, "developer_instructions = %s\n", quoted(cfg.SystemPrompt))
	}
	trust := "trusted" // or AGENTS.md would not be read
	if !cfg.ReadsProject() {
		trust = "untrusted"
	}
	fmt.Fprintf(&b, "\n[projects.%s]\ntrust_level = \"%s\"\n", quoted(cfg.Dir), trust)
	for _, server := range cfg.MCPServers {
		if err := writeServer(&b, server, denied.tools[server.Name]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// overSettings returns the caller's settings with ours over them.
func overSettings(path string, ours []byte) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	var merged, over map[string]any
	if err := toml.Unmarshal(data, &merged); err != nil {
		return nil, agent.Refuse(agentID, "the settings %s are not TOML, as codex's config.toml is: %v", path, err)
	}
	if err := toml.Unmarshal(ours, &over); err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	return toml.Marshal(overlay(merged, over))
}

// overlay puts the values of one table over those of another, which it returns.
func overlay(under, over map[string]any) map[string]any {
	if under == nil {
		under = map[string]any{}
	}
	for key, value := range over {
		if inner := table(value); inner != nil {
			value = overlay(table(under[key]), inner)
		}
		under[key] = value
	}
	return under
}

var serverName = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// writeServer writes the entry of one tool server. It is required: otherwise the program would
// silently start without its tools.
func writeServer(b *bytes.Buffer, server agent.MCPServer, denied []string) error {
	if !serverName.MatchString(server.Name) || (server.URL == "") == (server.Command == "") {
		return fmt.Errorf("MCP server %q needs a name of letters, digits, - and _, and either a URL or a command",
			server.Name)
	}
	fmt.Fprintf(b, "\n[mcp_servers.%s]\nrequired = true\ntool_timeout_sec = %d\ndefault_tools_approval_mode = "+
		"\"approve\"\n", server.Name, toolTimeoutSec)
	if len(denied) > 0 {
		fmt.Fprintf(b, "disabled_tools = [%s]\n", quotedList(denied))
	}
	if server.URL != "" {
		fmt.Fprintf(b, "url = %s\n", quoted(server.URL))
		writeTable(b, "http_headers", server.Headers)
		return nil
	}
	fmt.Fprintf(b, "command = %s\nargs = [%s]\n", quoted(server.Command), quotedList(server.Args))
	writeTable(b, "env", server.Env)
	return nil
}

func writeTable(b *bytes.Buffer, name string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	var entries []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		entries = append(entries, quoted(key)+" = "+quoted(values[key]))
	}
	fmt.Fprintf(b, "%s = { %s }\n", name, strings.Join(entries, ", "))
}

func quotedList(list []string) string {
	words := make([]string, len(list))
	for i, word := range list {
		words[i] = quoted(word)
	}
	return strings.Join(words, ", ")
}

// quoted returns a TOML string. JSON strings are valid TOML, except for one control character.
func quoted(text string) string {
	return strings.ReplaceAll(jsonenc.String(text), "\x7f", `\u007f`)
}

// environment returns everything the child sees.
func environment(cfg agent.Config, login login, p sessionFiles) []string {
	env := sandbox.NewEnvironment(sandbox.EnvironmentConfig{Parent: cfg.Environ, Home: p.home, TmpDir: p.tmp})
	env["CODEX_HOME"] = p.codexHome
	if login.key != "" {
		env[keyVariable] = login.key
	}
	env.Assign(cfg.ExtraEnv...)
	return env.List()
}

// arguments is the command line.
type arguments struct {
	path    string
	cfg     agent.Config
	project project
	login   string // the way to be logged in
	resume  string // for exec: the conversation to continue
}

// exec returns one process for one prompt, which it reads from standard input.
func (a arguments) exec() []string {
	argv := []string{a.path, "exec"}
	if a.resume != "" {
		argv = append(argv, "resume")
	}
	argv = append(argv, "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
		"--ignore-rules")
	if a.cfg.Model != "" {
		argv = append(argv, "--model", a.cfg.Model)
	}
	argv = append(argv, a.settings()...)
	if a.resume != "" {
		argv = append(argv, "--", a.resume, "-")
	} else {
		argv = append(argv, "--", "-")
	}
	return argv
}

// server returns the long-lived process.
func (a arguments) server() []string {
	return append([]string{a.path, "app-server"}, a.settings()...)
}

// defaultRetries survives fifteen seconds of failures. The program would try a failed request
// thirty times, mostly unseen.
const defaultRetries = 6

// provider is the name of our entry among the model providers.
const provider = "fit"

// settings returns the flags that both modes share. On the command line they override every file.
func (a arguments) settings() []string {
	var flags []string
	set := func(key, value string) { flags = append(flags, "-c", key+"="+value) }
	for _, feature := range []string{"plugins", "apps", "unbounded_connection_retries"} {
		flags = append(flags, "--disable", feature)
	}
	denied, _ := restrict(a.cfg) // it was checked when the session was started
	flags = append(flags, denied.flags()...)
	set("analytics.enabled", "false")
	set("check_for_update_on_startup", "false")
	set("tools.experimental_request_user_input.enabled", "false") // nobody is there to answer
	set("allow_login_shell", "false")                             // a login shell would reset PATH
	set("shell_environment_policy.exclude", `["`+keyVariable+`"]`)
	flags = append(flags, a.project.flags(a.cfg, a.login)...)
	if a.cfg.Effort != "" {
		set("model_reasoning_effort", quoted(a.cfg.Effort))
	}
	if a.cfg.ModelURL == "" {
		return flags
	}
	retries := defaultRetries
	if a.cfg.Retries != nil {
		retries = *a.cfg.Retries
	}
	set("model_provider", quoted(provider))
	entry := "model_providers." + provider + "."
	set(entry+"name", quoted(provider))
	set(entry+"base_url", quoted(strings.TrimSuffix(a.cfg.ModelURL, "/")+"/v1"))
	set(entry+"wire_api", quoted("responses"))
	set(entry+"env_key", quoted(keyVariable))
	set(entry+"request_max_retries", "0") // these do not appear in the stream, those do
	set(entry+"stream_max_retries", strconv.Itoa(retries))
	return flags
}
