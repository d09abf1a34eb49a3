package harness

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/redact"
)

// JudgeConfig is one judgement of finished work.
type JudgeConfig struct {
	// JudgeCwd is the directory of the work. The judge knows the path but does not run there, so
	// that it never loads the settings of the agent it judges.
	JudgeCwd string
	// read from Options.ProfilesDir, never from JudgeCwd; empty is the one that ships with the
	// binary
	JudgeProfile string
	// Judge has further settings; its name and role are given by the mode.
	Judge AgentConfig
	// ReadOnlySandbox says that Options.Base isolates the judge so that it cannot write. Only then
	// may it run commands.
	ReadOnlySandbox bool
	NewAgent        AgentFunc
	Output          io.Writer        // of the trace
	Redactor        *redact.Redactor // nil is the one the environment asks for
	Options         Options
}

// judgeDenied are the tools that a judge must not have, beyond running commands.
var judgeDenied = []string{
	"Write", "Edit", "NotebookEdit", "Agent", "Task", "TaskOutput", "TaskStop", "TodoWrite",
	"WebFetch", "WebSearch",
}

// NewJudge checks the config and reads the profile.
func NewJudge(cfg JudgeConfig) (*Session, error) {
	work, err := filepath.Abs(cmp.Or(cfg.JudgeCwd, "."))
	if err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	var room *scratch.Dir
	if cfg.Judge.Cwd == "" {
		if room, err = scratch.Make("", "fit-judge-"); err != nil {
			return nil, fmt.Errorf("judge: %w", err)
		}
		cfg.Judge.Cwd = room.Path
	}
	judge := leadConfig(ModeJudge, cfg.Judge, "", cmp.Or(cfg.JudgeProfile, "judge"))
	if cfg.ReadOnlySandbox {
		judge.Tools = mergeWords(judge.Tools, append([]string{"Bash"}, readingTools...))
	} else {
		judge.DisallowedTools = mergeWords(judge.DisallowedTools, []string{"Bash"})
		judge.Tools = slices.DeleteFunc(slices.Clone(judge.Tools), func(tool string) bool { return tool == "Bash" })
	}
	session, err := newSession(sessionConfig{
		mode:     ModeJudge,
		lead:     judge,
		newAgent: cfg.NewAgent,
		output:   cfg.Output,
		redactor: cfg.Redactor,
		options:  cfg.Options,
	})
	if err != nil {
		(&Session{room: room}).clear()
		return nil, err
	}
	session.room, session.amend = room, "The work to judge lies in "+work+"."
	return session, nil
}
