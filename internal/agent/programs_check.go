package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/fit-eval/fit/session"
)

// ProgramsError says that a project would run programs on a machine that nothing protects.
type ProgramsError struct {
	Agent session.AgentID
	Files []string // relative to the working directory
}

func (e *ProgramsError) Error() string {
	return fmt.Sprintf("%s would run programs of the project without isolation (%s); use --isolation bwrap, or "+
		"--context project to run them all the same, or --context none", e.Agent, strings.Join(e.Files, ", "))
}

// CheckPrograms returns a ProgramsError if the project of a session has programs that the session
// does not allow to run. The agent could work without them, but it would not be the agent that its
// user knows. Without isolation it also refuses a project whose texts are links to files elsewhere,
// which the agent would send to its model.
func CheckPrograms(info Info, cfg Config) error {
	if !cfg.ReadsProject() {
		return nil
	}
	if out, err := info.Places.leadOut(cfg.Dir); err != nil || len(out) > 0 && !cfg.Isolation.Isolates() {
		return cmp.Or(err, Refuse(info.ID,
			"%s of the project leads out of it, and nothing keeps %s from sending what is "+
				"there to its model; remove the symlink, isolate the agent (--isolation bwrap), or use --context none",
			strings.Join(out, ", "), info.ID))
	}
	if cfg.RunsProjectPrograms() {
		return nil
	}
	files, err := info.Places.programsBelow(cfg.Dir)
	if err == nil && len(files) > 0 {
		err = &ProgramsError{Agent: info.ID, Files: files}
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

func (p Places) programsBelow(dir string) ([]string, error) {
	if len(p.Programs) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("find programs of the project: %w", err)
	}
	defer root.Close()
	return p.ProgramsIn(root)
}

// announcingPrograms returns the config with Started reporting the programs of the project that the
// agent finds when it starts. Where they cannot be looked at, the agent fails by itself.
func (c Config) announcingPrograms(info Info) Config {
	if tell := c.Started; tell != nil && c.RunsProjectPrograms() {
		programs, _ := info.Places.programsBelow(c.Dir)
		c.Started = func(started Started) {
			started.ProjectPrograms = programs
			tell(started)
		}
	}
	return c
}
