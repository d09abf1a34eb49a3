package acp

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
)

// setup is a program that is ready to be started.
type setup struct {
	argv       []string
	env        []string
	dir        string // where it starts
	mode       string
	keyVisible bool
	restricted bool
}

// noKey is a program's key if another endpoint is used and no key is set: most refuse to start
// without one.
const noKey = "no-key-needed"

// defaultRetries survives fifteen seconds of failures.
const defaultRetries = 4

// prepare creates the session's home, and fills in the entry's templates.
func prepare(e Entry, cfg agent.Config) (setup, error) {
	home, tmp := filepath.Join(cfg.Home, "home"), filepath.Join(cfg.Home, "tmp")
	for _, dir := range []string{home, tmp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return setup{}, fmt.Errorf("prepare agent home: %w", err)
		}
	}
	v, err := valuesOf(e, cfg, home)
	if err != nil {
		return setup{}, err
	}
	made := setup{restricted: v.Restricted, argv: []string{cfg.Installation.Path}}
	if e.StartsAtHome {
		made.dir = home
	}
	made.keyVisible = cfg.Seat == nil && v.Key != noKey
	for _, text := range e.Args {
		argument, err := render(text, v)
		if err != nil {
			return setup{}, err
		}
		if argument != "" || text == "" {
			made.argv = append(made.argv, argument)
		}
	}
	if made.mode, err = render(e.Mode, v); err != nil {
		return setup{}, err
	}
	if err := writeFiles(e, v, home); err != nil {
		return setup{}, err
	}
	if err := makeLinks(e, v, home); err != nil {
		return setup{}, err
	}
	made.env, err = environment(e, cfg, v, tmp)
	return made, err
}

func valuesOf(e Entry, cfg agent.Config, home string) (values, error) {
	v := values{
		URL:          strings.TrimRight(cfg.ModelURL, "/"),
		Model:        cfg.Model,
		Protocol:     agent.ProtocolOf(cfg.Model, e.Protocols...),
		Home:         home,
		Dir:          cfg.Dir,
		Parent:       filepath.Dir(cfg.Dir),
		SystemPrompt: cfg.SystemPrompt,
		Restricted:   len(cfg.AllowedTools) > 0 || len(cfg.DisallowedTools) > 0,
		Retries:      defaultRetries,
		MCPServers:   cfg.MCPServers,
		Project:      cfg.ReadsProject(),
		Programs:     cfg.RunsProjectPrograms(),
		Distrusted:   distrusted(e, cfg),
		Denied:       denied(e, cfg),
	}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		v.Proxy = cmp.Or(v.Proxy, agent.Getenv(cfg.Environ, name))
	}
	v.Proxy = cmp.Or(v.Proxy, " ") // which is not missing, and is none
	if cfg.Retries != nil {
		v.Retries = max(0, *cfg.Retries)
	}
	v.Key = cmp.Or(e.key(cfg.Environ), noKey)
	if cfg.Seat != nil {
		v.URL, v.Key = cfg.Seat.URL, cfg.Seat.Token
	}
	_, err := agent.MCPEntries(v.MCPServers)
	return v, err
}

// writeFiles writes the entry's files. They stay in the home: a path was checked to be local.
func writeFiles(e Entry, v values, home string) error {
	for path, text := range e.Files {
		content, err := render(text, v)
		if err != nil {
			return err
		}
		if content == "" {
			continue
		}
		if err := agent.WriteHome(filepath.Dir(home), filepath.Join(home, path), []byte(content)); err != nil {
			return err
		}
	}
	return nil
}

// environment returns everything the child sees. Without our endpoint the program gets the keys
// that it knows.
func environment(e Entry, cfg agent.Config, v values, tmp string) ([]string, error) {
	env := sandbox.NewEnvironment(sandbox.EnvironmentConfig{Parent: cfg.Environ, Home: v.Home, TmpDir: tmp})
	if v.URL == "" {
		env.Allow(cfg.Environ, e.Keys...)
	}
	for name, text := range e.Env {
		value, err := render(text, v)
		if err != nil {
			return nil, err
		}
		if value != "" {
			env[name] = value
		}
	}
	for name, value := range e.Pins {
		if _, set := env[name]; !set {
			env[name] = value
		}
	}
	env.Assign(cfg.ExtraEnv...)
	return env.List(), nil
}

// toolServers are the tool servers for templates.
type toolServers []agent.MCPServer

// File returns the servers in the form of most agents' settings files, in which HTTP servers have a
// type that agents name differently; empty without servers.
func (servers toolServers) File(httpType string) string {
	if len(servers) == 0 {
		return ""
	}
	entries := map[string]object{}
	for _, server := range servers {
		if server.URL != "" {
			entries[server.Name] = object{
				"type": httpType, "url": server.URL, "headers": nonNil(server.Headers), "tools": []string{"*"},
			}
			continue
		}
		entries[server.Name] = object{
			"type": "stdio", "command": server.Command, "args": append([]string{}, server.Args...),
			"env": nonNil(server.Env), "tools": []string{"*"},
		}
	}
	return toJSON(object{"mcpServers": entries})
}

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// mcpList returns the tool servers in the protocol's form, in which variables and headers are lists
// that must be there.
func mcpList(servers []agent.MCPServer) []object {
	list := []object{}
	for _, server := range servers {
		if server.URL != "" {
			list = append(list, object{
				"type": "http", "name": server.Name, "url": server.URL, "headers": pairs(server.Headers),
			})
			continue
		}
		list = append(list, object{
			"name": server.Name, "command": server.Command, "args": append([]string{}, server.Args...),
			"env": pairs(server.Env),
		})
	}
	return list
}

func pairs(m map[string]string) []object {
	list := []object{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, object{"name": name, "value": m[name]})
	}
	return list
}
