package agent

import "fmt"

// MCPServer is a tool server to attach.
type MCPServer struct {
	Name    string
	URL     string            // streamable HTTP
	Headers map[string]string // for example Authorization
	Command string            // or a stdio server
	Args    []string
	Env     map[string]string
	// Socket is the Unix socket of a server that speaks as a stdio server does. Command relays to
	// it, for agents that cannot connect by themselves.
	Socket string
}

// MCPEntry is a tool server in the form that most agents read.
type MCPEntry struct {
	Type    string            `json:"type"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Timeout int64             `json:"timeout,omitempty"`
}

// MCPEntries returns tool servers by name. Write them to files: everybody could read their tokens
// on a command line or in the environment.
func MCPEntries(servers []MCPServer) (map[string]MCPEntry, error) {
	entries := map[string]MCPEntry{}
	for _, server := range servers {
		if server.Name == "" || (server.URL == "") == (server.Command == "") {
			return nil, fmt.Errorf("MCP server %q needs a name and either a URL or a command", server.Name)
		}
		entry := MCPEntry{
			Type:    "http",
			URL:     server.URL,
			Headers: server.Headers,
			Command: server.Command,
			Args:    server.Args,
			Env:     server.Env,
		}
		if server.Command != "" {
			entry.Type = "stdio"
		}
		entries[server.Name] = entry
	}
	return entries, nil
}
