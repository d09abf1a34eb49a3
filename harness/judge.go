package harness

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/redact"
)

// JudgeConfig is one judgement of finished work.
type JudgeConfig struct {
	// JudgeCwd is where the work lies. The judge knows the path but does not run there, so that
	// it never loads the settings of the agent it judges.
	JudgeCwd string
	// read from Options.ProfilesDir, never from JudgeCwd; empty is the one that ships with the
	// binary
	JudgeProfile string
	// Judge has further settings; its name and role are given by the mode.
	Judge AgentConfig
	// ReadOnlySandbox says that Options.Base isolates the judge so that it cannot write. Only then
	// it may run commands.
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

// Judge judges finished work in one go.
type Judge struct {
	loop *loop
	work string
	room *scratch.Dir // the neutral directory, if it is ours to remove
}

// NewJudge checks the config and reads the profile.
func NewJudge(cfg JudgeConfig) (*Judge, error) {
	work, err := filepath.Abs(cmp.Or(cfg.JudgeCwd, "."))
	if err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	j := &Judge{work: work}
	room := cfg.Judge.Cwd
	if room == "" {
		if j.room, err = scratch.Make("", "fit-judge-"); err != nil {
			return nil, fmt.Errorf("judge: %w", err)
		}
		room = j.room.Path
	}
	judge := leadConfig(ModeJudge, cfg.Judge, room, cmp.Or(cfg.JudgeProfile, "judge"))
	if cfg.ReadOnlySandbox {
		judge.Tools = mergeWords(judge.Tools, append([]string{"Bash"}, readingTools...))
	} else {
		judge.DisallowedTools = mergeWords(judge.DisallowedTools, []string{"Bash"})
		judge.Tools = withoutWord(judge.Tools, "Bash")
	}
	j.loop, err = newSession(sessionConfig{
		mode:     ModeJudge,
		lead:     judge,
		newAgent: cfg.NewAgent,
		output:   cfg.Output,
		redactor: cfg.Redactor,
		options:  cfg.Options,
	})
	if err != nil {
		j.clear()
		return nil, fmt.Errorf("judge: %w", err)
	}
	return j, nil
}

// Run gives the judge its task and returns the verdict, which is empty if the judge did not
// conclude.
func (j *Judge) Run(ctx context.Context, task string) (Result, error) {
	defer j.clear()
	return j.loop.run(ctx, joinTask(task, "The work to judge lies in "+j.work+"."))
}

func (j *Judge) clear() {
	if j.room != nil {
		_ = j.room.Remove() // an empty directory left behind does no harm
	}
}

func withoutWord(list []string, word string) []string {
	var rest []string
	for _, w := range list {
		if w != word {
			rest = append(rest, w)
		}
	}
	return rest
}
