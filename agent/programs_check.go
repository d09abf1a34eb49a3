package agent

import (
	"fmt"
	"os"
	"strings"

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
// user knows.
func CheckPrograms(info Info, cfg Config) error {
	if !cfg.ReadsProject() || cfg.RunsProjectPrograms() {
		return nil
	}
	files, err := info.Places.programsBelow(cfg.Dir)
	if err == nil && len(files) > 0 {
		err = &ProgramsError{Agent: info.ID, Files: files}
	}
	return err
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
