package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
)

// armServers returns the tool servers that an arm brings, with the variables of the environment
// filled in. A program with a relative path is one of the working directory, as in a project's own
// .mcp.json.
func armServers(arm *experiment.Arm, getenv func(string) string, dir string) ([]agent.MCPServer, error) {
	if arm.MCP == "" {
		return nil, nil
	}
	listed, err := experiment.ReadServers(arm.MCP)
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	var servers []agent.MCPServer
	for _, s := range listed {
		if s, err = s.Expand(getenv); err != nil {
			return nil, fmt.Errorf("%s: %w", arm.MCP, err)
		}
		if dir != "" && strings.Contains(s.Command, "/") && !filepath.IsAbs(s.Command) {
			s.Command = filepath.Join(dir, s.Command)
			if _, err := os.Stat(s.Command); err != nil {
				return nil, fmt.Errorf("%s: server %s: its command is not in the working directory; bring it with "+
					"files:DIR, or give its absolute path: %w", arm.MCP, s.Name, err)
			}
		}
		servers = append(servers, agent.MCPServer{
			Name:    s.Name,
			URL:     s.URL,
			Headers: s.Headers,
			Command: s.Command,
			Args:    s.Args,
			Env:     s.Env,
		})
	}
	return servers, nil
}

// getenv returns the function that looks variables up. Where the workers of a fleet have them,
// each has some value.
func (m *Machine) getenv() func(string) string {
	environ := m.Host.Environ
	return func(name string) string {
		for _, pair := range slices.Backward(environ) {
			if value, found := strings.CutPrefix(pair, name+"="); found {
				return value
			}
		}
		if m.Versions != nil {
			return name
		}
		return ""
	}
}

// serversOf returns the tool servers of the agent of an attempt: the task's and the arm's.
func (a *attempt) serversOf(dir string) ([]agent.MCPServer, error) {
	servers := toolServers(a.task)
	own, err := armServers(a.arm, a.machine.getenv(), dir)
	if err != nil {
		return nil, err
	}
	for _, s := range own {
		if slices.ContainsFunc(servers, func(other agent.MCPServer) bool { return other.Name == s.Name }) {
			return nil, fmt.Errorf("%s and task %s both have a tool server called %s; rename one of them", a.arm.MCP,
				a.task.ID, s.Name)
		}
	}
	return append(servers, own...), nil
}
