package claudecode

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// above is what the program would read outside its working directory, with the settings that keep
// it from the model. The program looks for CLAUDE.md in every directory above, and for skills,
// commands and sub-agents up to the root of the repository. Only the former can be excluded by
// path; the others are switched off by name.
type above struct {
	excludes []string // CLAUDE.md, CLAUDE.local.md and rules
	skills   []string // and commands and workflows
	agents   []string
	servers  []string // of .mcp.json
}

// lookAbove finds out what there is above the working directory. A program that is isolated does
// not see it.
func lookAbove(cfg agent.Config) (above, error) {
	dir := cfg.Dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // as the program sees it
	}
	var found above
	var parents []string
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		parents = append(parents, filepath.Dir(at))
	}
	for _, parent := range parents {
		found.exclude(parent)
	}
	if cfg.Isolation.Isolates() {
		return found, nil
	}
	if cfg.RunsProjectPrograms() {
		own := mcpServers(dir)
		for _, parent := range parents {
			found.servers = append(found.servers, without(mcpServers(parent), own)...)
		}
	}
	own := definitionsIn(dir, kinds...)
	for _, outside := range searched(dir) {
		there := definitionsIn(outside.dir, outside.kinds...)
		for _, name := range there.skills {
			if slices.Contains(own.skills, name) {
				return found, agent.Refuse(agentID, "%s and %s, outside the working directory, both have a skill or "+
					"command %q, and Claude Code would read both; rename one, make %s a repository of its own (git init), "+
					"isolate the agent, or use --context none", dir, outside.dir, name, dir)
			}
		}
		found.skills = append(found.skills, there.skills...)
		found.agents = append(found.agents, without(there.agents, own.agents)...) // of two, it takes the nearest
	}
	return found, nil
}

// without returns the names of a list that are not in another.
func without(names, other []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(other, name) })
}

// patterns hides the characters of a path that mean something in a pattern: ? is any character, and
// nothing escapes.
var patterns = strings.NewReplacer("*", "?", "[", "?", "]", "?", "(", "?", ")", "?", "{", "?", "}", "?", "!", "?",
	"+", "?", "@", "?", "|", "?", `\`, "?")

func (a *above) exclude(dir string) {
	for _, name := range []string{"CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md"} {
		a.excludes = append(a.excludes, patterns.Replace(filepath.Join(dir, name)))
	}
	a.excludes = append(a.excludes, patterns.Replace(filepath.Join(dir, ".claude/rules"))+"/**")
}

// overrides switch skills off by name.
func (a *above) overrides() map[string]string {
	off := map[string]string{}
	for _, name := range a.skills {
		off[name] = "off"
	}
	return off
}

// agentRules are the rules of permission that take sub-agents away.
func (a *above) agentRules() []string {
	rules := []string{}
	for _, name := range a.agents {
		rules = append(rules, "Agent("+name+")")
	}
	return rules
}

// kinds are the directories of .claude that define something by name.
var kinds = []string{"skills", "commands", "workflows", "agents"}

// outside is a place outside the working directory in which the program looks for definitions.
type outside struct {
	dir   string
	kinds []string
}

// searched lists the places outside the working directory in which the program looks: the
// directories above, up to the root of the repository or of the machine, and the main worktree of a
// linked one for what the latter has no directory of its own for.
func searched(dir string) []outside {
	var places []outside
	for at := dir; ; at = filepath.Dir(at) {
		if at != dir {
			places = append(places, outside{at, kinds})
		}
		if exists(filepath.Join(at, ".git")) {
			return append(places, borrowed(at)...)
		}
		if at == filepath.Dir(at) {
			return places
		}
	}
}

// borrowed is what a linked worktree has of its main one; nothing for other repositories.
func borrowed(root string) []outside {
	main := mainWorktree(root)
	if main == "" {
		return nil
	}
	missing := slices.DeleteFunc([]string{"commands", "agents"}, func(kind string) bool {
		return exists(filepath.Join(root, ".claude", kind))
	})
	return []outside{{main, missing}}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// mainWorktree returns the worktree to which a linked one belongs; empty if it is none.
func mainWorktree(dir string) string {
	data, err := agent.ReadProject(dir, ".git")
	gitDir, found := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	main, _, linked := strings.Cut(filepath.ToSlash(gitDir), "/.git/worktrees/")
	if err != nil || !found || !linked {
		return ""
	}
	return main
}

// definitions are the names of what a directory's .claude defines.
type definitions struct {
	skills []string // and commands and workflows, which share their names
	agents []string
}

var (
	agentName    = lazyregexp.New(`(?m)^name:[ \t]*["']?([^"'\r\n]*[^"'\s])`)
	workflowName = lazyregexp.New(`name\s*:\s*["'` + "`" + `]([^"'` + "`" + `]+)`)
)

func definitionsIn(dir string, kinds ...string) (d definitions) {
	for _, kind := range kinds {
		at := filepath.Join(dir, ".claude", kind)
		switch kind {
		case "skills":
			entries, _ := os.ReadDir(at) // what cannot be read is not read by the program either
			for _, entry := range entries {
				if !entry.Type().IsRegular() {
					d.skills = append(d.skills, entry.Name())
				}
			}
		case "commands":
			eachFile(at, ".md", func(name, _ string) {
				d.skills = append(d.skills, strings.ReplaceAll(name, "/", ":"))
			})
		case "workflows":
			eachFile(at, ".js", func(name, path string) {
				d.skills = append(d.skills, name)
				d.skills = append(d.skills, firstMatch(workflowName, path)...)
			})
		case "agents":
			eachFile(at, ".md", func(_, path string) {
				d.agents = append(d.agents, firstMatch(agentName, path)...)
			})
		}
	}
	return d
}

// eachFile visits the files below a directory that end in some way, with their names without the
// ending and with slashes.
func eachFile(dir, ending string, visit func(name, path string)) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ending) {
			if name, err := filepath.Rel(dir, path); err == nil {
				visit(filepath.ToSlash(strings.TrimSuffix(name, ending)), path)
			}
		}
		return nil // what cannot be read is not read by the program either
	})
}

// firstMatch returns the name in a file; nothing if it has none.
func firstMatch(pattern *lazyregexp.Regexp, path string) []string {
	data, err := agent.ReadProject(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return nil
	}
	if match := pattern.Get().FindSubmatch(data); match != nil {
		return []string{string(match[1])}
	}
	return nil
}

// mcpServers returns the names of a directory's tool servers.
func mcpServers(dir string) []string {
	data, err := agent.ReadProject(dir, ".mcp.json")
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err != nil || json.Unmarshal(data, &file) != nil {
		return nil
	}
	names := make([]string, 0, len(file.Servers))
	for name := range file.Servers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
