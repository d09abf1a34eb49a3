package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/session"
)

// ProgramsError says that a project would run programs on a machine that nothing protects.
type ProgramsError struct {
	Agent session.AgentID
	Files []string // relative to the working directory
	// Always says that context none is no way out: git, which the agent calls, runs some of them.
	Always bool
}

func (e *ProgramsError) Error() string {
	way := "--context none"
	if e.Always {
		way = "take out what git runs"
	}
	return fmt.Sprintf("%s would run programs of the project without isolation (%s); use --isolation bwrap, or "+
		"--context project to run them all the same, or %s", e.Agent, strings.Join(e.Files, ", "), way)
}

// CheckPrograms returns a ProgramsError if the project of a session has programs that the session
// does not allow to run. The agent could work without them, but it would not be the agent that its
// user knows. Without isolation it also refuses a project whose texts are links to files elsewhere,
// which the agent would send to its model.
func CheckPrograms(info Info, cfg Config) error {
	if cfg.ReadsProject() {
		out, err := info.Places.leadOut(cfg.Dir)
		if err != nil || len(out) > 0 && !cfg.Isolation.Isolates() {
			return cmp.Or(err, Refuse(info.ID,
				"%s of the project leads out of it, and nothing keeps %s from sending what is "+
					"there to its model; remove the symlink, isolate the agent (--isolation bwrap), or use --context none",
				strings.Join(out, ", "), info.ID))
		}
	}
	if cfg.ProjectPrograms || cfg.Isolation.Isolates() {
		return nil
	}
	files, err := info.Places.ProgramsBelow(cfg.Dir, cfg.Context)
	if err == nil && len(files) > 0 {
		err = &ProgramsError{Agent: info.ID, Files: files, Always: len(info.Places.gitPrograms(cfg.Dir)) > 0}
	}
	return err
}

// leadOut lists the places that lead out of a working directory by a symlink, their own or one
// below them.
func (p Places) leadOut(dir string) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("look at the project: %w", err)
	}
	defer root.Close()
	var out []string
	left := maxProgramEntries
	var look func(name string, depth int)
	look = func(name string, depth int) {
		info, err := root.Stat(name)
		left--
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrPermission):
		case err != nil:
			out = append(out, name)
		case info.IsDir() && left > 0 && depth < maxProgramDepth:
			entries, _ := fs.ReadDir(root.FS(), name) // what fit cannot read, the agent cannot either
			for _, entry := range entries {
				look(path.Join(name, entry.Name()), depth+1)
			}
		}
	}
	for _, place := range slices.Concat(p.Instructions, p.Skills, p.Agents, p.Commands) {
		for strings.ContainsAny(place, "*?[") {
			place = path.Dir(place)
		}
		if place != "." {
			look(place, 0)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// ProgramsBelow lists the files that would make the agent run programs of the project in a working
// directory, with a context: those of ProgramsIn, and those by which git runs something.
func (p Places) ProgramsBelow(dir, context string) ([]string, error) {
	found := p.gitPrograms(dir)
	if context == ContextNone || len(p.Programs) == 0 {
		return found, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("find programs of the project: %w", err)
	}
	defer root.Close()
	own, err := p.ProgramsIn(root)
	return append(own, found...), err
}

// gitTimeout bounds the search in a repository whose settings may name a pipe.
const gitTimeout = 10 * time.Second

// gitPrograms lists the files by which git, which the agent calls by itself, runs programs.
func (p Places) gitPrograms(dir string) []string {
	if !p.Git {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	return git.Programs(ctx, dir)
}

// announcingPrograms returns the config with Started reporting the programs of the project that the
// agent finds when it starts. Where they cannot be looked at, the agent fails by itself.
func (c Config) announcingPrograms(info Info) Config {
	if tell := c.Started; tell != nil && (c.ProjectPrograms || c.Isolation.Isolates()) {
		programs, _ := info.Places.ProgramsBelow(c.Dir, c.Context)
		c.Started = func(started Started) {
			started.ProjectPrograms = programs
			tell(started)
		}
	}
	return c
}
