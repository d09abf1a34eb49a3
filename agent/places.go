package agent

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
// arm brings.
type Places struct {
	// Instructions are the files that are in the conversation from its start, such as CLAUDE.md.
	// A place may be a directory, whose Markdown files are read, or a glob.
	Instructions []string
	// OneOf says that only the first of Instructions that exists is read.
	OneOf bool
	// Imports says that words such as @docs/style.md in instructions take in other files.
	Imports bool
	// Skills are directories of skills: one directory each, with a SKILL.md in it.
	Skills []string
	// Agents are directories with the definitions of sub-agents.
	Agents []string
	// Commands are directories of prompts that a person calls by name.
	Commands []string
	// Programs are files that make the agent run programs of the project: hooks, tool servers,
	// plugins, extensions.
	Programs []ProjectProgram
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

// ReadsProject reports whether the session reads what its project brings.
func (c Config) ReadsProject() bool { return c.Context != ContextNone }
