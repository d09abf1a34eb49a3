package acp

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/session"
)

// link shows a place of the project in the session's home.
type link struct {
	Home, Project string
	Program       bool // the agent runs what is there
}

// First returns the first of some files that the project has, or else the first name, as an
// absolute path.
func (v values) First(names ...string) string {
	found := names[0]
	if root, err := os.OpenRoot(v.Dir); err == nil {
		defer root.Close()
		for _, name := range slices.Backward(names) {
			if info, err := root.Stat(name); err == nil && info.Mode().IsRegular() {
				found = name
			}
		}
	}
	return filepath.Join(v.Dir, found)
}

// FromAnywhere returns a name that leads to an absolute path from every directory. Agents that look
// for a name in all directories above find this one file only.
func (v values) FromAnywhere(path string) string {
	return strings.Repeat("../", maxDepth) + strings.TrimPrefix(filepath.ToSlash(path), "/")
}

// maxDepth is that of directories.
const maxDepth = 64

// makeLinks shows places of the project in the session's home, where the agent may read them.
func makeLinks(e Entry, v values, home string) error {
	root, err := os.OpenRoot(home)
	if err != nil {
		return fmt.Errorf("prepare agent home: %w", err)
	}
	defer root.Close()
	for _, l := range e.Links {
		err := root.RemoveAll(l.Home)
		if err == nil && (v.Programs || v.Project && !l.Program) {
			if err = root.MkdirAll(filepath.Dir(l.Home), 0o700); err == nil {
				err = root.Symlink(filepath.Join(v.Dir, l.Project), l.Home)
			}
		}
		if err != nil {
			return fmt.Errorf("prepare agent home: %w", err)
		}
	}
	return nil
}

// distrusted reports whether the agent is told to distrust its project.
func distrusted(e Entry, cfg agent.Config) bool {
	return e.Distrusts && !cfg.ReadsProject() && len(cfg.MCPServers) == 0
}

// checkProject refuses a project of which the agent would read what it should not, where nothing
// keeps it from doing so.
func checkProject(e Entry, cfg agent.Config) error {
	if distrusted(e, cfg) || e.KeepsOut && !cfg.ReadsProject() {
		return nil
	}
	id := session.AgentID(e.ID)
	root, err := os.OpenRoot(cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is in a container
	}
	if err != nil {
		return fmt.Errorf("look for what %s reads: %w", id, err)
	}
	defer root.Close()
	if found := present(root, placesOf(e.Insists)); !cfg.ReadsProject() && found != "" {
		return agent.Refuse(id, "agent %s reads %s whatever it is told; use context project, or an agent that can be "+
			"kept from it", id, found)
	}
	decides, err := agent.Places{Programs: e.Decides}.ProgramsIn(root)
	if err != nil {
		return err
	}
	if len(decides) > 0 {
		return agent.Refuse(id, "agent %s takes from %s what no project decides, such as %s; take that out", id,
			strings.Join(decides, ", "), e.Decides[0].Keys[0])
	}
	if cfg.RunsProjectPrograms() {
		return refuseAbove(e, cfg)
	}
	programs, err := e.Insists.ProgramsIn(root)
	if err != nil {
		return err
	}
	if len(programs) > 0 {
		return agent.Refuse(id, "agent %s runs the programs of %s whatever it is told; isolate it, or take them out",
			id, strings.Join(programs, ", "))
	}
	return refuseAbove(e, cfg)
}

// refuseAbove refuses a working directory below one that the agent reads.
func refuseAbove(e Entry, cfg agent.Config) error {
	id := session.AgentID(e.ID)
	if found := above(e, cfg); found != "" {
		return agent.Refuse(id, "agent %s reads %s, which is above its working directory; isolate it, or make the "+
			"working directory the root of a repository (git init)", id, found)
	}
	return nil
}

// placesOf returns the places of texts.
func placesOf(p agent.Places) []string {
	return slices.Concat(p.Instructions, p.Skills, p.Agents, p.Commands)
}

// present returns the first of some names that a directory has; empty if it has none.
func present(root *os.Root, names []string) string {
	for _, name := range names {
		if _, err := root.Lstat(name); err == nil {
			return name
		}
	}
	return ""
}

// above returns what an agent that is not isolated reads in a directory above its own: those up to
// the root of its repository, or all of them where there is none.
func above(e Entry, cfg agent.Config) string {
	if len(e.Above) == 0 || cfg.Isolation.Isolates() {
		return ""
	}
	repository := func(dir string) bool {
		_, err := os.Lstat(filepath.Join(dir, ".git"))
		return err == nil
	}
	for dir := filepath.Clean(cfg.Dir); !repository(dir) && filepath.Dir(dir) != dir; {
		dir = filepath.Dir(dir)
		root, err := os.OpenRoot(dir)
		if err != nil {
			continue // the agent cannot read it either
		}
		found, err := agent.Places{Programs: e.Above}.ProgramsIn(root)
		_ = root.Close()
		if err == nil && len(found) > 0 {
			return filepath.Join(dir, found[0])
		}
	}
	return ""
}

// matches reports whether a list has a tool, by its own name or by its purpose.
func matches(list []string, tool, purpose string) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		return name == tool || (purpose != session.ToolOther && session.CanonicalTool(name) == purpose) ||
			mcpTool(name, tool)
	})
}

// denied returns the tools of its own that the agent must not have, sorted.
func denied(e Entry, cfg agent.Config) []string {
	var names []string
	for tool, purpose := range e.Tools {
		if matches(cfg.DisallowedTools, tool, purpose) ||
			len(cfg.AllowedTools) > 0 && !matches(cfg.AllowedTools, tool, purpose) {
			names = append(names, tool)
		}
	}
	slices.Sort(names)
	return names
}

// checkTools refuses lists of tools with a name that nobody has, and those that leave the agent
// nothing. Lists are written for several agents, so they may name the usual tools of others.
func checkTools(e Entry, cfg agent.Config) error {
	own := slices.Sorted(maps.Keys(e.Tools))
	for _, name := range slices.Concat(cfg.AllowedTools, cfg.DisallowedTools) {
		_, known := e.Tools[name]
		if !known && !strings.HasPrefix(name, "mcp__") && session.CanonicalTool(name) == session.ToolOther {
			return agent.Refuse(session.AgentID(e.ID), "agent %s has no tool %q; it has %s", e.ID, name,
				strings.Join(own, ", "))
		}
	}
	without := denied(e, cfg)
	kept := slices.DeleteFunc(slices.Clone(e.Together),
		func(name string) bool { return slices.Contains(without, name) })
	if len(kept) > 0 && len(kept) < len(e.Together) {
		return agent.Refuse(session.AgentID(e.ID), "agent %s has %s together or not at all; list all of them or none",
			e.ID, strings.Join(e.Together, ", "))
	}
	attached := slices.ContainsFunc(cfg.AllowedTools,
		func(name string) bool { return strings.HasPrefix(name, "mcp__") })
	if len(own) > 0 && len(cfg.AllowedTools) > 0 && !attached && len(without) == len(own) {
		return agent.Refuse(session.AgentID(e.ID), "agent %s has none of the tools %s; it has %s", e.ID,
			strings.Join(cfg.AllowedTools, ", "), strings.Join(own, ", "))
	}
	return nil
}
