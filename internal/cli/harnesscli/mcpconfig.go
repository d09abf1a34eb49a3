package harnesscli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/internal/cli/console"
)

// serverEntry is one entry of the usual mcpServers file.
type serverEntry struct {
	Type    string            `json:"type"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// loadServers reads a file of MCP servers in the form {"mcpServers":{"name":{…}}}. ${NAME} in headers and environment values is filled in from the environment.
func loadServers(con *console.Console, path string) ([]agent.MCPServer, error) {
	content, err := os.ReadFile(con.Path(path))
	if err != nil {
		return nil, console.Exit(console.ExitUsage, fmt.Errorf("read --mcp-config: %w", err))
	}
	var file struct {
		Servers map[string]serverEntry `json:"mcpServers"`
	}
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, console.Usagef("--mcp-config %s: %w", path, err)
	}
	if len(file.Servers) == 0 {
		return nil, console.Usagef(`--mcp-config %s: it names no servers; the form is {"mcpServers":{"name":{"type":"http","url":"…"}}}`, path)
	}
	var servers []agent.MCPServer
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		entry := file.Servers[name]
		if (entry.URL == "") == (entry.Command == "") {
			return nil, console.Usagef("--mcp-config %s: server %q needs either a url or a command", path, name)
		}
		servers = append(servers, agent.MCPServer{
			Name: name, URL: entry.URL, Headers: expand(con, entry.Headers), Command: entry.Command, Args: entry.Args, Env: expand(con, entry.Env),
		})
	}
	return servers, nil
}

func expand(con *console.Console, values map[string]string) map[string]string {
	expanded := make(map[string]string, len(values))
	for name, value := range values {
		expanded[name] = os.Expand(value, con.Getenv)
	}
	return expanded
}

// attachedServers are the tool servers of --mcp-config and --mcp-server.
func attachedServers(con *console.Console, config, service string) ([]agent.MCPServer, error) {
	var servers []agent.MCPServer
	if config != "" {
		var err error
		if servers, err = loadServers(con, config); err != nil {
			return nil, err
		}
	}
	if service != "" {
		server, err := serviceServer(con, service)
		if err != nil {
			return nil, err
		}
		servers = append(servers, server)
	}
	return servers, nil
}

// serviceServer is the server that --mcp-server names: its address and token come from the environment, so that no secret stands on a command line.
func serviceServer(con *console.Console, name string) (agent.MCPServer, error) {
	url, token := con.Getenv("SERVICE_MCP_URL"), con.Getenv("MCP_TOKEN")
	if url == "" {
		return agent.MCPServer{}, console.Usagef("--mcp-server %s needs the server's address in SERVICE_MCP_URL (and its token in MCP_TOKEN)", name)
	}
	server := agent.MCPServer{Name: strings.TrimSpace(name), URL: url, Headers: map[string]string{}}
	if token != "" {
		server.Headers["Authorization"] = "Bearer " + token
	}
	return server, nil
}

// serverSecrets are the credentials of attached servers, under names for the reader of a trace. A value counts by the name it stands under, because most
// settings of a server, such as a port, are no secrets and would tear holes into the trace.
func serverSecrets(servers []agent.MCPServer) map[string]string {
	secrets := map[string]string{}
	for _, server := range servers {
		for _, values := range []map[string]string{server.Headers, server.Env} {
			for name, value := range values {
				if secretName(name) {
					if scheme, token, found := strings.Cut(value, " "); found && (strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Basic")) {
						value = token
					}
					secrets["MCP_"+server.Name+"_"+name] = value
				}
			}
		}
	}
	return secrets
}

func secretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"auth", "key", "token", "secret", "password", "cookie"}, func(part string) bool { return strings.Contains(name, part) })
}
