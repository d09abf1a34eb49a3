package agent

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// What an agent reads of the project that it works in.
const (
	// ContextProject is the default: instruction files, skills, sub-agents and commands of the
	// working directory, as on its user's desk. Nothing above the working directory, and nothing of
	// anybody's home.
	ContextProject = "project"
	// ContextNone is nothing by itself.
	ContextNone = "none"
)

// Places says where an agent reads what a project brings it. Paths are relative to the working
// directory and have slashes. Where a list has an order, the first place is where fit puts what an
// arm brings. Entries of agents.yaml have the same form.
type Places struct {
	// Instructions are the files that are in the conversation from its start, such as AGENTS.md.
	// A place may be a directory, whose Markdown files are read, or a glob.
	Instructions []string `yaml:"instructions" doc:"files that it reads at its start, such as AGENTS.md"`
	// Main is the one of Instructions where fit puts what an arm brings; empty: the first.
	Main string `yaml:"-"`
	// OneOf says that only the first of Instructions that exists is read.
	OneOf bool `yaml:"oneOf" doc:"only the first of the instructions that exists is read"`
	// Imports says that words such as @docs/style.md in instructions take in other files.
	Imports bool `yaml:"-"`
	// Skills are directories of skills: one directory each, with a SKILL.md in it.
	Skills []string `yaml:"skills" doc:"directories of skills, such as .agents/skills"`
	// Agents are directories with the definitions of sub-agents.
	Agents []string `yaml:"agents" doc:"directories of sub-agents"`
	// Commands are directories of prompts that a person calls by name.
	Commands []string `yaml:"commands" doc:"directories of prompts that a person calls by name"`
	// Programs are files that make the agent run programs of the project: hooks, tool servers,
	// plugins, extensions.
	Programs []ProjectProgram `yaml:"-"`
	// Git says that the agent calls git by itself, in every context: what the settings of the
	// repository make git run are programs of the project too.
	Git bool `yaml:"-"`
}

// ProjectProgram is a file of a project that makes an agent run programs.
type ProjectProgram struct {
	// Glob matches the file, as in .claude/settings*.json.
	Glob string
	// Keys are words of which the file must hold one, in quotes or as a table, to make the agent
	// run anything; empty: every such file does.
	Keys []string
}

// Reads reports whether an agent reads anything of a project.
func (p Places) Reads() bool {
	return len(p.Instructions)+len(p.Skills)+len(p.Agents)+len(p.Commands) > 0
}

// MainInstructions returns the file into which fit puts the instructions of an arm; empty: there is
// none.
func (p Places) MainInstructions() string {
	if p.Main == "" && len(p.Instructions) > 0 {
		return p.Instructions[0]
	}
	return p.Main
}

// Validate returns an error if a place is not below the working directory, beginning with the
// field.
func (p Places) Validate() error {
	for _, list := range []struct {
		field string
		names []string
	}{
		{"instructions", p.Instructions}, {"skills", p.Skills}, {"agents", p.Agents}, {"commands", p.Commands},
	} {
		for _, name := range list.names {
			if name == "." || path.Clean(name) != name || !filepath.IsLocal(name) || strings.Contains(name, `\`) {
				return fmt.Errorf("places.%s: %q is not a path below the working directory, as in .agents/skills",
					list.field, name)
			}
		}
	}
	return nil
}

// FirstInstructions reads the first of the instruction files that is there, for agents that read
// only one: its name, and at most so many bytes of its text. Symlinks are followed within the
// working directory only, and nothing but regular files is opened.
func (p Places) FirstInstructions(root *os.Root, limit int64) (name, text string) {
	for _, name := range p.Instructions {
		file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		info, err := file.Stat()
		var data []byte
		if err == nil && info.Mode().IsRegular() {
			data, err = io.ReadAll(io.LimitReader(file, limit))
		}
		_ = file.Close() // it was only read
		if err == nil && info.Mode().IsRegular() {
			return name, string(data)
		}
	}
	return "", ""
}

// RequirePlaces refuses skills and instructions for an agent that has no place for them.
func RequirePlaces(info Info, skills, instructions bool) error {
	for _, need := range []struct {
		asked         bool
		places        []string
		what, declare string
	}{
		{skills, info.Places.Skills, "skills", "skills: [.agents/skills]"},
		{instructions, info.Places.Instructions, "instructions", "instructions: [AGENTS.md]"},
	} {
		if need.asked && len(need.places) == 0 {
			return Refuse(info.ID, "agent %s has no place for %s; pass the text with prompt:, or, if it is a command "+
				"or an acp agent that reads them, declare places: {%s} in agents.yaml", info.ID, need.what,
				need.declare)
		}
	}
	return nil
}

// RunsProjectPrograms reports whether the session may run programs of its project: where they are
// isolated, or where the caller allows it.
func (c Config) RunsProjectPrograms() bool {
	return c.ReadsProject() && (c.ProjectPrograms || c.Isolation.Isolates())
}

// ReadsProject reports whether the session reads what its project brings.
func (c Config) ReadsProject() bool { return c.Context != ContextNone }
