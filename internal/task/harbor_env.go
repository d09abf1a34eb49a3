package task

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

var harborVariable = lazyregexp.New(`^\$\{([^}:]+)(:-(.*))?\}$`)

// harborValue fills in a value that is a template as a whole: ${NAME} or ${NAME:-default}.
func harborValue(value string, environ map[string]string) (string, error) {
	match := harborVariable.FindStringSubmatch(value)
	if match == nil {
		return value, nil
	}
	if given, ok := environ[match[1]]; ok {
		return given, nil
	}
	if match[2] == "" {
		return "", fmt.Errorf("the variable %s is not set, and %s has no default", match[1], value)
	}
	return match[3], nil
}

// values fills in the templates of an environment table. Secret values are returned separately.
func (h *harborLoader) values(table string, env map[string]string) (plain, secret map[string]string, err error) {
	plain, secret = map[string]string{}, map[string]string{}
	for name, value := range env {
		filled, err := harborValue(value, h.env)
		if err != nil {
			return nil, nil, refuse("%s: %w", table, err)
		}
		from := ""
		if match := harborVariable.FindStringSubmatch(value); match != nil {
			from = match[1]
		}
		if len(filled) >= minSecretLength && (looksLikeCredential(name) || looksLikeCredential(from)) {
			secret[name] = filled
		} else {
			plain[name] = filled
		}
	}
	return plain, secret, nil
}

// give gives variables to the processes of the task; secret ones as the task's own.
func (h *harborLoader) give(t *Task, e *Environment, plain, secret map[string]string) {
	maps.Copy(e.Env, plain)
	for _, name := range slices.Sorted(maps.Keys(secret)) {
		t.Env = append(t.Env, Variable{Name: name, Value: secret[name], Secret: true})
	}
}

// harborServerName matches names of tool servers that every agent accepts.
var harborServerName = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// toolServers returns the MCP servers that the task gives its agent.
func (h *harborLoader) toolServers(e *Environment) ([]ToolServer, error) {
	var servers []ToolServer
	seen := map[string]bool{}
	for _, server := range h.file.Environment.MCPServers {
		made := ToolServer{Name: server.Name}
		switch {
		case !harborServerName.MatchString(server.Name) || seen[server.Name]:
			return nil, h.wrong("mcp_servers", "environment.mcp_servers: name %q is empty, used twice or not made of "+
				"letters, digits, _ and -", server.Name)
		case server.Transport == "stdio" && server.Command == "":
			return nil, h.wrong("mcp_servers", "environment.mcp_servers: %s has no command", server.Name)
		case server.Transport == "stdio":
			made.Command, made.Args = server.Command, server.Args
		case server.Transport != "streamable-http":
			return nil, refuse("its tool server %s is reached by %s (environment.mcp_servers.transport)", server.Name,
				cmp.Or(server.Transport, "sse"))
		case server.URL == "":
			return nil, h.wrong("mcp_servers", "environment.mcp_servers: %s has no url", server.Name)
		case !h.open(h.file.Agent.NetworkMode) && !e.Serves(server.URL):
			return nil, refuse("its agent has no network and is given the tool server %s at an address "+
				"(environment.mcp_servers.url)", server.Name)
		default:
			made.URL = server.URL
		}
		seen[server.Name] = true
		servers = append(servers, made)
	}
	return servers, nil
}
