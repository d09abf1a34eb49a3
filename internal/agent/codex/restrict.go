package codex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
)

// ability is something that the program can do, with one tool or several, and that can be denied to
// it.
type ability string

const (
	commands ability = "commands" // to run them is also its only way to read files
	patching ability = "patching"
	helpers  ability = "helpers" // agents of its own
	web      ability = "web"
	images   ability = "images"
	goals    ability = "goals"
)

var abilities = []ability{commands, patching, helpers, web, images, goals}

// abilityOf maps tools to abilities, by their usual names in lists of tools, and by the program's
// names in its requests and its streams.
var abilityOf = map[string]ability{
	"Bash": commands, "exec_command": commands, "write_stdin": commands, "shell": commands,
	"command_execution": commands, "commandExecution": commands,
	"Write": patching, "Edit": patching, "MultiEdit": patching, "NotebookEdit": patching, "apply_patch": patching,
	"file_change": patching, "fileChange": patching,
	"Agent": helpers, "Task": helpers, "TaskOutput": helpers, "TaskStop": helpers, "spawn_agent": helpers,
	"WebSearch": web, "WebFetch": web, "web_search": web, "webSearch": web,
	"view_image": images,
	"TodoWrite":  goals, "create_goal": goals, "get_goal": goals, "update_goal": goals,
}

// readers are tools that the program lacks: it reads by running commands.
var readers = []string{"Read", "Glob", "Grep", "LS"}

// restriction lists what a session must not have.
type restriction struct {
	abilities []ability
	tools     map[string][]string // of tool servers, by the server's name
}

func (r restriction) has(a ability) bool { return slices.Contains(r.abilities, a) }

// restrict turns the lists of a config into what the program can be denied. It refuses what cannot
// be enforced: a list that is half enforced is worse than none.
func restrict(cfg agent.Config) (restriction, error) {
	r := restriction{tools: map[string][]string{}}
	if len(cfg.AllowedTools) > 0 {
		allowed, err := allowed(cfg.AllowedTools)
		if err != nil {
			return r, err
		}
		for _, a := range abilities {
			if !slices.Contains(allowed, a) {
				r.abilities = append(r.abilities, a)
			}
		}
	}
	for _, name := range cfg.DisallowedTools {
		server, tool, ofServer := serverTool(name)
		a, known := abilityOf[name]
		switch {
		case ofServer && tool != "":
			r.tools[server] = append(r.tools[server], tool)
		case known && !r.has(a):
			r.abilities = append(r.abilities, a)
		case !known && !slices.Contains(readers, name):
			return r, agent.Refuse(
				agentID,
				"agent %s cannot be denied the tool %q, which it does not know",
				agentID,
				name,
			)
		}
	}
	return r, nil
}

func allowed(list []string) ([]ability, error) {
	var allowed []ability
	reads := ""
	for _, name := range list {
		if a, known := abilityOf[name]; known {
			allowed = append(allowed, a)
		} else if slices.Contains(readers, name) {
			reads = name
		} else if _, _, ofServer := serverTool(name); !ofServer { // an attached server is wanted
			return nil, agent.Refuse(agentID, "agent %s cannot be allowed the tool %q, which it does not know",
				agentID, name)
		}
	}
	if reads != "" && !slices.Contains(allowed, commands) {
		return nil, agent.Refuse(
			agentID,
			"agent %s reads files by running commands only: it cannot be allowed %s without "+
				"Bash",
			agentID,
			reads,
		)
	}
	return allowed, nil
}

// serverTool takes the name of a tool server's tool apart.
func serverTool(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, "mcp__")
	server, tool, _ = strings.Cut(rest, "__")
	return server, tool, ok
}

// flags disable abilities of the program. Patching has no flag; withoutPatches disables it.
func (r restriction) flags() []string {
	var flags []string
	for _, a := range r.abilities {
		switch a {
		case commands:
			flags = append(flags, "--disable", "shell_tool")
		case helpers: // of older and of newer models
			flags = append(flags, "--disable", "multi_agent", "-c", "agents.enabled=false")
		case web:
			flags = append(flags, "-c", `web_search="disabled"`)
		case images:
			flags = append(flags, "--disable", "view_image")
		case goals:
			flags = append(flags, "--disable", "goals")
		}
	}
	return flags
}

// catalogName is our copy of the program's list of models, in the session's home.
const catalogName = "models.json"

// catalogTimeout is generous: the program answers in a tenth of a second.
const catalogTimeout = 30 * time.Second

// withoutPatches removes the tool that writes files, if the session must not have it. The program's
// own list of models says which of them get that tool; the session gets a copy in which none does.
func withoutPatches(ctx context.Context, cfg agent.Config, p sessionFiles) error {
	denied, err := restrict(cfg)
	if err != nil || !denied.has(patching) {
		return err
	}
	catalog, err := modelCatalog(ctx, cfg, p)
	if err != nil {
		return fmt.Errorf("take the tool that writes files from agent %s: %w", agentID, err)
	}
	return agent.WriteHome(cfg.Home, filepath.Join(cfg.Home, catalogName), catalog)
}

// modelCatalog asks the program for its list of models, and changes it.
func modelCatalog(ctx context.Context, cfg agent.Config, p sessionFiles) ([]byte, error) {
	spawner := cfg.Spawner
	if spawner == nil {
		spawner = sandbox.NewSpawner()
	}
	// without the settings of the session, which name a list that is not there yet
	home := filepath.Join(p.tmp, "catalog")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	env := sandbox.NewEnvironment(sandbox.EnvironmentConfig{Parent: cfg.Environ, Home: home, TmpDir: p.tmp})
	env["CODEX_HOME"] = home
	var stdout, stderr bytes.Buffer
	spec := sandbox.SpawnSpec{
		Argv:      []string{cfg.Installation.Path, "debug", "models", "--bundled"},
		Dir:       home,
		Env:       env.List(),
		Timeout:   catalogTimeout,
		MaxOutput: 64 << 20,
	}
	result, err := spawner.Spawn(ctx, spec, &stdout, &stderr)
	if err != nil {
		return nil, err
	}
	var catalog struct {
		Models []map[string]json.RawMessage `json:"models"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &catalog); err != nil {
		return nil, fmt.Errorf("it does not list its models (exit code %d): %w", result.ExitCode, err)
	}
	if len(catalog.Models) == 0 {
		return nil, errors.New("its list of models is empty")
	}
	for _, model := range catalog.Models {
		model["apply_patch_tool_type"] = json.RawMessage("null")
	}
	return json.Marshal(catalog)
}
