package harnesscli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/harness"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/sandbox"
)

// judgeOptions are the flags of fit-harness judge.
type judgeOptions struct {
	teamOptions
	cwd      string
	profiles string
}

// defaultJudgeTurns bounds a judgement when nobody says.
const defaultJudgeTurns = 25

func newJudge(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := judgeOptions{teamOptions: teamOptions{maxTurns: console.Count{Value: defaultJudgeTurns}}}
	command := &cobra.Command{
		Use:   "judge",
		Short: "Judge finished work in one go",
		Long: `Judge finished work in one go. The judge sees a copy of the work below a neutral directory, so that it never loads the settings of the agent that it judges and
can change nothing. It may read; it may run commands only where a sandbox keeps the copy read-only. To let a judge question a living agent, use
fit-harness supervise --lead-profile judge.

Exit codes: 0 the criteria are met · 1 they are not · 2 usage error · 3 the judge did not conclude, or another infrastructure failure · 4 stopped by a budget ·
130 interrupted.`,
		Example: fmt.Sprintf(`  fit-harness judge --cwd ./result --task-file criteria.md --agent %s --output verdict.ndjson`, registry.Examples(1)...),
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runJudge(command.Context(), con, registry, &opts)
		},
	}
	flags := command.Flags()
	opts.register(flags, registry)
	flags.StringVar(&opts.cwd, "cwd", ".", "directory of the work to judge")
	flags.StringVar(&opts.profiles, "profiles-dir", "",
		"directory of profiles for --lead-profile (default: .claude/agents here, unless that is the work's own)")
	hide(flags, "fail-fast", "participant-timeout", "participant-max-turns", "participant-max-tokens",
		"participant-max-cost-usd", "advisor-model", "advisor-max-uses", "ask-deadline", "max-lead-turns", "session-max-turns")
	return command
}

// exhibitName is the copy of the work in the judge's neutral directory.
const exhibitName = "work"

func hide(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.MarkHidden(name) // they exist
	}
}

func runJudge(ctx context.Context, con *console.Console, registry *agent.Registry, opts *judgeOptions) error {
	work, err := directory(con, "--cwd", opts.cwd)
	if err != nil {
		return err
	}
	room, err := os.MkdirTemp("", "fit-judge-")
	if err != nil {
		return fmt.Errorf("make a neutral directory for the judge: %w", err)
	}
	defer os.RemoveAll(room)
	exhibit := filepath.Join(room, exhibitName)
	if err := copyWork(work, exhibit); err != nil {
		return console.Exit(console.ExitIncomplete, fmt.Errorf("copy the work: %w", err))
	}
	readOnly := sandbox.Detect(ctx).Bwrap.OK
	held := teamSession{
		con:      con,
		registry: registry,
		opts:     &opts.teamOptions,
		mode:     harness.ModeJudge,
	}
	held.build = func(parts teamParts) (team, error) {
		parts.options.ProfilesDir = opts.profilesDir(con, work, room)
		judge := opts.lead()
		judge.Cwd = room
		if judge.Model == "" {
			judge.Model = opts.agent.model
		}
		return harness.NewJudge(harness.JudgeConfig{
			JudgeCwd:        exhibit,
			JudgeProfile:    opts.leadProfile,
			Judge:           judge,
			ReadOnlySandbox: readOnly,
			Query:           parts.query,
			Output:          parts.output,
			Redactor:        parts.redactor,
			Options:         parts.options,
		})
	}
	if readOnly {
		held.adjust = func(parts *teamParts, members []harness.AgentConfig) error {
			return isolateJudge(ctx, con, registry, parts, members[0].Agent, room, exhibit)
		}
	}
	_, err = held.hold(ctx)
	return err
}

// isolateJudge lets the judge's agent see the copy read-only, and otherwise only itself and its own
// room.
func isolateJudge(ctx context.Context, con *console.Console, registry *agent.Registry, parts *teamParts, id, room,
	exhibit string) error {
	played, err := registry.Get(id)
	if err != nil {
		return err
	}
	installation, err := played.Probe(ctx, hostOf(con, parts.options.Base.Spawner))
	if err != nil {
		return console.Exit(console.ExitIncomplete, err)
	}
	parts.options.Base.Installation = &installation
	visible := []string{exhibit}
	// an agent that is part of this program isolates only the commands that it runs, and those need
	// no place to write
	if installation.Path == "" {
		visible = append(visible, room)
	}
	parts.options.Base.Isolation = sandbox.Isolation{Kind: sandbox.IsolationBwrap, ReadOnly: visible, Network: true}
	return nil
}

// profilesDir is where the judge's profile comes from: never from the work, because that would let
// the judged choose its judge.
func (o *judgeOptions) profilesDir(con *console.Console, work, room string) string {
	if o.profiles != "" {
		return con.Path(o.profiles)
	}
	here, err := filepath.Abs(con.Path("."))
	if err != nil {
		return room
	}
	if inside, err := filepath.Rel(work, here); err == nil && filepath.IsLocal(inside) {
		return room // which has none, so that it is the one that ships with fit
	}
	return filepath.Join(here, ".claude", "agents")
}

// copyWork copies a directory. Links are copied as links, because what they point at outside is no
// part of the work, and pipes, sockets and devices are left out.
func copyWork(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch mode := entry.Type(); {
		case mode.IsDir():
			return os.MkdirAll(target, 0o755)
		case mode&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case mode.IsRegular():
			return copyFile(path, target)
		default:
			return nil
		}
	})
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
