package harnesscli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/document"
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

// serversForm is shown to whoever wrote something else.
const serversForm = `{"mcpServers":{"name":{"type":"http","url":"https://…"}}} or {"mcpServers":{"name":{"command":"…","args":[…]}}}`

// loadServers reads a file of MCP servers in the usual form. ${NAME} in URLs, headers and
// environment values is filled in from the environment.
func loadServers(con *console.Console, path string) ([]agent.MCPServer, error) {
	content, err := os.ReadFile(con.Path(path))
	if err != nil {
		return nil, console.Exit(console.ExitUsage, fmt.Errorf("read --mcp-config: %w", err))
	}
	var file struct {
		Servers map[string]serverEntry `json:"mcpServers"`
	}
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, console.Usagef("--mcp-config %s: %s; the form is %s", path, misread(err), serversForm)
	}
	if len(file.Servers) == 0 {
		return nil, console.Usagef("--mcp-config %s: it names no servers; the form is %s", path, serversForm)
	}
	var servers []agent.MCPServer
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		server, err := file.Servers[name].server(con, name)
		if err != nil {
			return nil, console.Usagef("--mcp-config %s: server %q %w", path, name, err)
		}
		servers = append(servers, server)
	}
	return servers, nil
}

// misread says in words what the JSON package says in the types of our code.
func misread(err error) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return "it is not JSON: " + document.SyntaxWords(err)
	case wrong.Field == "":
		return fmt.Sprintf("it is a JSON %s", wrong.Value)
	default:
		return fmt.Sprintf("%s is a JSON %s", wrong.Field, wrong.Value)
	}
}

func (e serverEntry) server(con *console.Console, name string) (agent.MCPServer, error) {
	switch {
	case strings.TrimSpace(name) == "":
		return agent.MCPServer{}, errors.New("has no name")
	case (e.URL == "") == (e.Command == ""):
		return agent.MCPServer{}, errors.New("needs either a url or a command")
	case !slices.Contains([]string{"", "http", "streamable-http", "stdio"}, e.Type):
		return agent.MCPServer{}, fmt.Errorf("is of type %q, but must be http or stdio", e.Type)
	case e.Type != "" && (e.Type == "stdio") != (e.Command != ""):
		return agent.MCPServer{}, fmt.Errorf("is of type %q, which goes with a %s", e.Type,
			map[bool]string{true: "command", false: "url"}[e.Type == "stdio"])
	}
	address := os.Expand(e.URL, con.Getenv)
	if e.Command == "" {
		if err := checkAddress(address); err != nil {
			return agent.MCPServer{}, err
		}
	}
	return agent.MCPServer{
		Name:    name,
		URL:     address,
		Headers: expand(con, e.Headers),
		Command: e.Command,
		Args:    e.Args,
		Env:     expand(con, e.Env),
	}, nil
}

// checkAddress finds before the start what would otherwise be found when the agent connects.
func checkAddress(address string) error {
	if !fit.IsURL(address) {
		return fmt.Errorf("has the url %q, which must begin with http:// or https:// and name a host", address)
	}
	return nil
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

// serviceServer is the server that --mcp-server names: its address and token come from the
// environment, so that no secret stands on a command line.
func serviceServer(con *console.Console, name string) (agent.MCPServer, error) {
	address, token := con.Getenv("SERVICE_MCP_URL"), con.Getenv("MCP_TOKEN")
	if address == "" {
		return agent.MCPServer{}, console.Usagef("--mcp-server %s needs the server's address in SERVICE_MCP_URL (and "+
			"its token in MCP_TOKEN)", name)
	}
	if err := checkAddress(address); err != nil {
		return agent.MCPServer{}, console.Usagef("SERVICE_MCP_URL: server %q %w", name, err)
	}
	server := agent.MCPServer{Name: strings.TrimSpace(name), URL: address, Headers: map[string]string{}}
	if token != "" {
		server.Headers["Authorization"] = "Bearer " + token
	}
	return server, nil
}
