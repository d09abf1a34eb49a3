package codex

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/sandbox"
)

// places returns where the program reads what a project brings it. It offers the sub-agents to
// newer models only.
func places() agent.Places {
	return agent.Places{
		Instructions: []string{"AGENTS.override.md", "AGENTS.md"},
		Main:         "AGENTS.md",
		OneOf:        true,
		Skills:       []string{".agents/skills", ".codex/skills"},
		Agents:       []string{".codex/agents"},
		Git:          true,
		Programs: []agent.ProjectProgram{
			{Glob: configName, Keys: []string{"mcp_servers", "hooks", "plugins", "notify"}},
			{Glob: hooksName},
			{Glob: ".codex/agents/**/*.toml", Keys: []string{"mcp_servers"}},
		},
	}
}

// managed are the administrator's files.
var managed = []string{
	"/etc/codex/config.toml",
	"/etc/codex/managed_config.toml",
	"/etc/codex/requirements.toml",
	"/etc/codex/skills",
}

// efforts are those of the program's list of models, and what older models know. The program passes
// on others, and the vendor refuses them.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"}

// The settings of a project.
const (
	configName = ".codex/config.toml"
	hooksName  = ".codex/hooks.json"
)

// project is what we must know of a project's settings. The program reads them only in a directory
// that is trusted, but then it would not read AGENTS.md either. It takes no endpoint, no telemetry
// and no notify program from them.
type project struct {
	settings bool // it has some
	model    bool // they name a model
	login    bool // or a way to log in
	shell    bool // or what the shell sees
	prompts  bool // or instructions in place of ours
	servers  []string
	set      []string // variables of the shell
}

// readProject reads the settings of a session's project. In a container we do not see them.
func readProject(cfg agent.Config) (project, error) {
	if !cfg.ReadsProject() {
		return project{}, nil
	}
	if sandbox.InContainer(cfg.Isolation.Kind) {
		return project{settings: true, model: true, prompts: true}, nil
	}
	hooks, err := agent.ReadProject(cfg.Dir, hooksName)
	if err != nil {
		return project{}, err
	}
	data, err := agent.ReadProject(cfg.Dir, configName)
	if err != nil {
		return project{}, err
	}
	var config map[string]any
	if err := toml.Unmarshal(data, &config); err != nil {
		return project{}, agent.Refuse(agentID,
			"the project's %s is not valid TOML (%v); mend it, or use --context none",
			configName, err)
	}
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return config[key] != nil })
	}
	shell := table(config["shell_environment_policy"])
	p := project{
		settings: data != nil || hooks != nil,
		model:    has("model"),
		login:    has("forced_login_method"),
		shell:    shell != nil,
		prompts:  has("developer_instructions", "model_instructions_file", "model_catalog_json"),
		servers:  names(config["mcp_servers"]),
		set:      names(shell["set"]),
	}
	if has("model_instructions_file", "model_catalog_json") && !cfg.Isolation.Isolates() {
		return p, agent.Refuse(agentID,
			"the project's %s names a file of instructions or models, which may be any file of "+
				"this machine; isolate the agent, or use --context none", configName)
	}
	for _, server := range cfg.MCPServers {
		if slices.Contains(p.servers, server.Name) {
			return p, agent.Refuse(agentID,
				"the project's %s has a tool server %q, as the session does; rename it, or "+
					"use --context none", configName, server.Name)
		}
	}
	return p, nil
}

// table returns a table of a document; nil if it is something else.
func table(value any) map[string]any {
	t, _ := value.(map[string]any)
	return t
}

// plainKey is a name that can be part of a key on the command line.
var plainKey = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// names returns the keys of a table that can be part of a key on the command line.
func names(value any) []string {
	keys := slices.Sorted(maps.Keys(table(value)))
	return slices.DeleteFunc(keys, func(key string) bool { return !plainKey.MatchString(key) })
}

// flags are the settings that win over those of the project: in what no project decides, and in its
// programs where they must not run.
func (p project) flags(cfg agent.Config, loginMode string) []string {
	if !cfg.ReadsProject() {
		// neither instructions nor skills: the harness brings them
		return []string{
			"--disable", "hooks", "-c", "project_doc_max_bytes=0", "-c",
			"skills.include_instructions=false",
		}
	}
	flags := []string{"-c", "project_root_markers=[]"} // nothing above the working directory
	set := func(key, value string) { flags = append(flags, "-c", key+"="+value) }
	set("approval_policy", quoted("never"))
	set("sandbox_mode", quoted("danger-full-access"))
	if p.login {
		method := "api"
		if loginMode == agent.AuthSubscription {
			method = "chatgpt"
		}
		set("forced_login_method", quoted(method))
	}
	if p.shell {
		set("shell_environment_policy.inherit", quoted("all"))
		set("shell_environment_policy.include_only", "[]")
	}
	if cfg.RunsProjectPrograms() {
		return flags
	}
	flags = append(flags, "--disable", "hooks")
	for _, server := range p.servers {
		set("mcp_servers."+server+".enabled", "false")
	}
	for _, name := range p.set { // some variables make a shell run a program
		set("shell_environment_policy.set."+name, quoted(""))
	}
	return flags
}

// overrides are the settings of a conversation, which win over all others, for what must not be on
// the command line. A project's own instructions would replace ours.
func (p project) overrides(cfg agent.Config, files sessionFiles) (object, error) {
	config := object{}
	if cfg.RunsProjectPrograms() && p.settings {
		config["bypass_hook_trust"] = true // nobody is there to be asked
	}
	if !p.prompts {
		return config, nil
	}
	own, err := configFile(cfg, files.instructions)
	if err != nil {
		return nil, err
	}
	var ours map[string]any
	if err := toml.Unmarshal(own, &ours); err != nil {
		return nil, fmt.Errorf("read our own settings: %w", err)
	}
	for _, key := range []string{"developer_instructions", "model_instructions_file", "model_catalog_json"} {
		if ours[key] != nil {
			config[key] = ours[key]
		}
	}
	return config, nil
}
