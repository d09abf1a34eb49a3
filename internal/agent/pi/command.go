package pi

import (
	_ "embed" // for the extension
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
)

//go:embed bridge.ts
var bridge []byte

// sessionFiles is the directory of everything that a session's program keeps.
type sessionFiles struct {
	home, config, sessions, tmp string
	extension                   string   // empty where none is needed
	systemFile, appendFile      string   // the system prompt, and what is appended to it; empty without one
	packageDir                  string   // of the program, as it is to see it; empty: its own
	project                     []string // arguments that name what it reads of the project
}

// prepare lays out the session's home.
func prepare(cfg agent.Config, e endpoint) (sessionFiles, error) {
	p := sessionFiles{
		home:     filepath.Join(cfg.Home, "home"),
		config:   filepath.Join(cfg.Home, "config"),
		sessions: filepath.Join(cfg.Home, "sessions"),
		tmp:      filepath.Join(cfg.Home, "tmp"),
	}
	if err := agent.MakeHome(p.home, p.config, p.sessions, p.tmp); err != nil {
		return sessionFiles{}, err
	}
	settings, err := settings(cfg)
	if err != nil {
		return sessionFiles{}, err
	}
	if err := writeJSON(cfg, filepath.Join(p.config, "settings.json"), settings); err != nil {
		return sessionFiles{}, err
	}
	if models := e.modelsFile(cfg); models != nil {
		if err := writeJSON(cfg, filepath.Join(p.config, "models.json"), models); err != nil {
			return sessionFiles{}, err
		}
	}
	read, err := readProject(cfg)
	if err != nil {
		return sessionFiles{}, err
	}
	p.project = read.arguments
	if p.packageDir, err = hideSettings(cfg); err != nil {
		return sessionFiles{}, err
	}
	if err := p.writePrompts(cfg, read.instructions); err != nil {
		return sessionFiles{}, err
	}
	return p, p.extend(cfg)
}

// writePrompts writes the files of the system prompt.
func (p *sessionFiles) writePrompts(cfg agent.Config, instructions string) error {
	system, more := "", cfg.SystemPrompt
	if cfg.ReplaceSystemPrompt {
		system, more = more, system
	}
	if more != "" && instructions != "" {
		more += "\n\n"
	}
	for _, file := range []struct {
		name, text string
		path       *string
	}{{"system-prompt.md", system, &p.systemFile}, {"append-prompt.md", more + instructions, &p.appendFile}} {
		if file.text == "" {
			continue
		}
		*file.path = filepath.Join(cfg.Home, file.name)
		if err := agent.WriteHome(cfg.Home, *file.path, []byte(file.text)); err != nil {
			return err
		}
	}
	return nil
}

// extend installs our extension if something is asked for that the program does not have itself.
func (p *sessionFiles) extend(cfg agent.Config) error {
	if len(cfg.MCPServers) == 0 && len(cfg.AllowedTools) == 0 && len(cfg.DisallowedTools) == 0 && ownTurns(cfg) == 0 {
		return nil
	}
	settings, err := bridgeSettings(cfg)
	if err != nil {
		return err
	}
	dir := filepath.Join(p.config, "fit")
	p.extension = filepath.Join(dir, "bridge.ts")
	if err := agent.WriteHome(cfg.Home, p.extension, bridge); err != nil {
		return err
	}
	return writeJSON(cfg, filepath.Join(dir, "bridge.json"), settings)
}

func bridgeSettings(cfg agent.Config) (map[string]any, error) {
	servers, err := agent.MCPEntries(cfg.MCPServers)
	if err != nil {
		return nil, err
	}
	settings := map[string]any{"servers": servers}
	if len(cfg.AllowedTools) > 0 {
		settings["allow"] = toolNames(cfg.AllowedTools)
	}
	if len(cfg.DisallowedTools) > 0 {
		settings["deny"] = toolNames(cfg.DisallowedTools)
	}
	if turns := ownTurns(cfg); turns > 0 {
		settings["maxTurns"] = turns
	}
	return settings, nil
}

// ownTurns returns the limit of turns that our extension enforces; 0 if there is none, or if the
// gateway enforces it.
func ownTurns(cfg agent.Config) int {
	if cfg.Seat != nil {
		return 0
	}
	return cfg.MaxTurns
}

// ownNames maps the usual names of tools to the program's.
var ownNames = map[string]string{
	"Bash": "bash", "Read": "read", "Write": "write", "Edit": "edit", "Grep": "grep",
	"Glob": "find",
}

// ownTools are the tools that the program has.
var ownTools = []string{"read", "bash", "edit", "write", "grep", "find", "ls"}

// toolNames replaces the names of tools with the program's. Others stay as they are: they may be
// tools of an extension.
func toolNames(list []string) []string {
	names := make([]string, len(list))
	for i, name := range list {
		names[i] = name
		if own, ok := ownNames[name]; ok {
			names[i] = own
		}
	}
	return names
}

// defaultRetries survives fifteen seconds of failures.
const defaultRetries = 4

// settings returns the program's settings: those of the caller's file, over which ours win. The
// vendors' clients do not retry by themselves, so that every retry is visible.
func settings(cfg agent.Config) (map[string]any, error) {
	retries := defaultRetries
	if cfg.Retries != nil {
		retries = max(0, *cfg.Retries)
	}
	own := map[string]any{
		"quietStartup": true, "enableInstallTelemetry": false,
		"retry": map[string]any{
			"enabled": true, "maxRetries": retries, "baseDelayMs": 1000,
			"provider": map[string]any{"maxRetries": 0},
		},
	}
	if cfg.Settings == "" {
		return own, nil
	}
	data, err := os.ReadFile(cfg.Settings)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil || all == nil {
		return nil, agent.Refuse(agentID, "settings %s: it is not a JSON object as in the agent's settings.json",
			cfg.Settings)
	}
	maps.Copy(all, own)
	return all, nil
}

func writeJSON(cfg agent.Config, path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("prepare agent home: %w", err)
	}
	return agent.WriteHome(cfg.Home, path, data)
}

// environment returns everything the child sees.
func environment(cfg agent.Config, e endpoint, p sessionFiles) []string {
	env := sandbox.NewEnvironment(sandbox.EnvironmentConfig{Parent: cfg.Environ, Home: p.home, TmpDir: p.tmp})
	env["PI_CODING_AGENT_DIR"] = p.config
	env["PI_OFFLINE"] = "1" // no downloads and no questions for updates; models are reached all the same
	env["PI_TELEMETRY"] = "0"
	if p.packageDir != "" {
		env["PI_PACKAGE_DIR"] = p.packageDir
	}
	for _, name := range e.variables() {
		env[name] = e.keys[name]
	}
	env.Assign(cfg.ExtraEnv...)
	return env.List()
}

// arguments is the command line.
type arguments struct {
	path     string
	cfg      agent.Config
	endpoint endpoint
	files    sessionFiles
	session  string // the file of the conversation to continue
}

func (a arguments) argv() []string {
	mode := "rpc"
	if a.cfg.OneShot {
		mode = "json"
	}
	argv := []string{a.path, "--mode", mode}
	add := func(words ...string) { argv = append(argv, words...) }
	if a.endpoint.provider != "" {
		add("--provider", a.endpoint.provider)
	}
	if a.cfg.Model != "" {
		add("--model", a.cfg.Model)
	}
	if a.cfg.Effort != "" {
		add("--thinking", a.cfg.Effort)
	}
	add("--session-dir", a.files.sessions)
	if a.session != "" {
		add("--session", a.session)
	}
	add(a.systemPrompt()...)
	// What is named is loaded anyway.
	add("--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes", "--no-context-files")
	add(a.files.project...)
	if a.files.extension != "" {
		add("--extension", a.files.extension)
	}
	if a.cfg.OneShot {
		add("-p") // the last one: a word after it would be taken for the prompt, which comes by standard input
	}
	return argv
}

// systemPrompt names the files with the prompt, because a text that happens to be the name of a
// file would be read as one. An empty word keeps the program from looking for such files in the
// repository.
func (a arguments) systemPrompt() []string {
	return []string{"--system-prompt", a.files.systemFile, "--append-system-prompt", a.files.appendFile}
}

// sessionFile finds the program's own record of a conversation; empty if there is none.
func (p sessionFiles) sessionFile(id string) string {
	return agent.FindRecord(p.sessions, "*_%s.jsonl", id)
}

// canResume checks that a conversation is there. The program would continue in the directory that
// the conversation was held in, whatever ours is.
func (p sessionFiles) canResume(id, dir string) error {
	path := p.sessionFile(id)
	if path == "" {
		return fmt.Errorf("resume agent %s: %w: no conversation %q in its home", agentID, agent.ErrNoConversation, id)
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("resume agent %s: %w", agentID, err)
	}
	defer file.Close()
	var header struct {
		Cwd string `json:"cwd"`
	}
	if err := json.NewDecoder(file).Decode(&header); err != nil {
		return fmt.Errorf("resume agent %s: the record of the conversation %q is broken: %w", agentID, id, err)
	}
	if !samePlace(header.Cwd, dir) {
		return fmt.Errorf("resume agent %s: the conversation %q was held in %s and can continue only there", agentID,
			id, header.Cwd)
	}
	return nil
}

func samePlace(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
