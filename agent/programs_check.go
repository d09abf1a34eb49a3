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
	if !cfg.ReadsProject() || cfg.RunsProjectPrograms() || len(info.Places.Programs) == 0 {
		return nil
	}
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return fmt.Errorf("look for programs of the project: %w", err)
	}
	defer root.Close()
	files, err := info.Places.ProgramsIn(root)
	if err == nil && len(files) > 0 {
		err = &ProgramsError{Agent: info.ID, Files: files}
	}
	return err
}
