package experiment

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// serversFile is a file of tool servers in the form of .mcp.json.
type serversFile struct {
	Servers map[string]serverEntry `yaml:"mcpServers" doc:"Tool servers by name." required:"true"`
}

type serverEntry struct {
	Type    string            `yaml:"type" doc:"How the server is reached." enum:"stdio,http,streamable-http"`
	Command string            `yaml:"command" doc:"Program of a stdio server; a relative path is relative to the working directory."`
	Args    []string          `yaml:"args" doc:"Arguments of the program."`
	Env     map[string]string `yaml:"env" doc:"Variables of the program."`
	URL     string            `yaml:"url" doc:"Address of an HTTP server."`
	Headers map[string]string `yaml:"headers" doc:"Headers of every request to it."`
}

// Server is a tool server that an arm brings.
type Server struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string
	URL     string
	Headers map[string]string
	digest  string
}

// serverNameForm keeps names usable as parts of the names of tools.
var serverNameForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// ReadServers reads a file of tool servers, sorted by name.
func ReadServers(file string) ([]Server, error) {
	content, err := readRegular(file)
	if err != nil {
		return nil, err
	}
	var read serversFile
	if _, err := document.Read(file, content, &read); err != nil {
		return nil, err
	}
	var servers []Server
	for _, name := range slices.Sorted(maps.Keys(read.Servers)) {
		entry := read.Servers[name]
		switch {
		case !serverNameForm.MatchString(name) || len(name) > 64:
			return nil, fmt.Errorf("%s: server name %q: use letters, digits, dashes and underscores, at most 64",
				file, name)
		case (entry.Command == "") == (entry.URL == ""):
			return nil, fmt.Errorf("%s: server %s needs either a command or a url", file, name)
		}
		canonical, err := json.Marshal(entry)
		if err != nil {
			return nil, err
		}
		servers = append(servers, Server{
			Name:    name,
			Command: entry.Command,
			Args:    entry.Args,
			Env:     entry.Env,
			URL:     entry.URL,
			Headers: entry.Headers,
			digest:  digestOf(canonical),
		})
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("%s: mcpServers is empty", file)
	}
	return servers, nil
}

// placeholder is a variable of the environment in a file of tool servers: ${NAME} or
// ${NAME:-default}.
var placeholder = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// Expand fills in the variables of the environment that a server names as ${NAME} or
// ${NAME:-default}, so that its file need not hold secrets.
func (s Server) Expand(getenv func(name string) string) (Server, error) {
	filled, missing := s.expand(getenv)
	if len(missing) > 0 {
		return s, fmt.Errorf("server %s needs %s in the environment", s.Name, strings.Join(missing, ", "))
	}
	return filled, nil
}

// Variables returns the variables of the environment that the server cannot do without.
func (s Server) Variables() []string {
	_, missing := s.expand(func(string) string { return "" })
	return missing
}

func (s Server) expand(getenv func(name string) string) (filled Server, missing []string) {
	fill := func(text string) string {
		return placeholder.Get().ReplaceAllStringFunc(text, func(match string) string {
			parts := placeholder.FindStringSubmatch(match)
			if value := getenv(parts[1]); value != "" {
				return value
			}
			if parts[2] == "" {
				missing = append(missing, parts[1])
			}
			return parts[3]
		})
	}
	fillAll := func(values map[string]string) map[string]string {
		all := maps.Clone(values)
		for name, value := range all {
			all[name] = fill(value)
		}
		return all
	}
	s.Command, s.URL = fill(s.Command), fill(s.URL)
	s.Args = slices.Clone(s.Args)
	for i := range s.Args {
		s.Args[i] = fill(s.Args[i])
	}
	s.Env, s.Headers = fillAll(s.Env), fillAll(s.Headers)
	slices.Sort(missing)
	return s, slices.Compact(missing)
}

// Literal returns the variables and headers of a server whose values are written in its file.
func (s Server) Literal() map[string]string {
	literal := map[string]string{}
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for name, value := range values {
			if value != "" && !strings.Contains(value, "${") {
				literal[name] = value
			}
		}
	}
	return literal
}
