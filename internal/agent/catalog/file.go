package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/acp"
	"github.com/fit-eval/fit/internal/agent/command"
	"github.com/fit-eval/fit/internal/agent/http"
	"github.com/fit-eval/fit/internal/document"
)

// filesVariable names the files of agents in place of those that are looked for; an empty list
// means none.
const filesVariable = "FIT_AGENTS"

// Files returns the files of agents that a command started in a directory reads: agents.yaml and
// .fit/agents.yaml there and fit/agents.yaml in the user's configuration, those that exist, or
// exactly those that FIT_AGENTS lists.
func Files(dir string, environ []string) []string {
	for _, setting := range environ {
		if list, given := strings.CutPrefix(setting, filesVariable+"="); given {
			return slices.DeleteFunc(filepath.SplitList(list), func(file string) bool { return file == "" })
		}
	}
	candidates := []string{filepath.Join(dir, "agents.yaml"), filepath.Join(dir, ".fit", "agents.yaml")}
	if user := agent.UserFile(environ, "XDG_CONFIG_HOME", ".config", filepath.Join("fit", "agents.yaml")); user != "" {
		candidates = append(candidates, user)
	}
	return slices.DeleteFunc(candidates, func(file string) bool {
		_, err := os.Stat(file)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// Load returns the agents of Default and those that files add. A mistake in a file is reported with
// its line; the valid agents are returned anyway.
func Load(files ...string) (*agent.Registry, error) {
	registry := Default()
	var problems []error
	for _, file := range files {
		added, err := readFile(file, registry)
		problems = append(problems, err)
		registry = registry.With(added...)
	}
	return registry, errors.Join(problems...)
}

// agentsFile is the outer form of the file; the entries are checked by their kind.
type agentsFile struct {
	Agents []map[string]any `yaml:"agents" doc:"agents that fit does not know by itself" required:"true"`
}

// entry is the common interface of the kinds.
type entry interface {
	Validate() error
}

// kinds read the entries of each kind, in the order in which messages list them.
var kinds = []struct {
	name string
	read func(part *document.Document, dir string) (string, entry, agent.Agent, error)
}{
	{"acp", func(part *document.Document, _ string) (string, entry, agent.Agent, error) {
		var e acp.Entry
		err := part.Fill(&e)
		return e.ID, e, acp.New(e), err
	}},
	{"command", func(part *document.Document, dir string) (string, entry, agent.Agent, error) {
		var e command.Entry
		err := part.Fill(&e)
		e.Dir = dir
		return e.ID, e, command.New(e), err
	}},
	{"http", func(part *document.Document, _ string) (string, entry, agent.Agent, error) {
		var e http.Entry
		err := part.Fill(&e)
		return e.ID, e, http.New(e), err
	}},
}

// readFile reads the agents of a file. Their ids must be new.
func readFile(file string, known *agent.Registry) ([]agent.Agent, error) {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file; a list of agents is read from a regular file", file)
	}
	var source []byte
	if err == nil {
		source, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	doc, err := document.Parse(file, source)
	if err != nil {
		return nil, err
	}
	if doc.Empty() {
		return nil, nil
	}
	if err := doc.Conforms(agentsFile{}); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	taken := known.IDs()
	var agents []agent.Agent
	var problems []error
	for _, part := range doc.Parts("agents") {
		id, made, err := readEntry(part, dir)
		switch {
		case err != nil:
			problems = append(problems, err)
		case slices.Contains(taken, id):
			problems = append(problems, part.ErrorAt([]string{"id"},
				"there is an agent %q already; choose another name", id))
		default:
			taken = append(taken, id)
			agents = append(agents, made)
		}
	}
	return agents, errors.Join(problems...)
}

func readEntry(part *document.Document, dir string) (string, agent.Agent, error) {
	var head struct {
		Kind string `yaml:"kind"`
	}
	if err := part.Decode(&head); err != nil {
		return "", nil, err
	}
	var names []string
	for _, kind := range kinds {
		names = append(names, kind.name)
		if kind.name != head.Kind {
			continue
		}
		id, read, made, err := kind.read(part, dir)
		if err != nil {
			return "", nil, err
		}
		if err := read.Validate(); err != nil {
			return "", nil, part.ErrorAt(fieldOf(err), "%s", withoutField(err))
		}
		return id, made, nil
	}
	return "", nil, part.ErrorAt([]string{"kind"}, "%q is not a kind of agent; there are %s", head.Kind,
		strings.Join(names, ", "))
}

// fieldOf returns the field that a message about an entry begins with.
func fieldOf(err error) []string {
	field, _, found := strings.Cut(err.Error(), ": ")
	if !found || strings.ContainsAny(field, " \"") {
		return nil
	}
	return strings.Split(field, ".")
}

// withoutField returns the message without the field, which is part of the position.
func withoutField(err error) string {
	if field := fieldOf(err); field != nil {
		return strings.TrimPrefix(err.Error(), strings.Join(field, ".")+": ")
	}
	return err.Error()
}
