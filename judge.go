package fit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/tree"
)

// exhibitName names the copy of the work in the judge's neutral directory.
const exhibitName = "work"

// NewJudge is the function of the same name, with this wiring. The judge sees a copy of the work
// below a neutral directory, read-only where there is a sandbox. Its profile comes from
// Options.ProfilesDir and never from the work, because otherwise the judged agent could choose its
// judge.
func (w Wiring) NewJudge(cfg JudgeConfig) (*Team, error) {
	team := Team{mode: harness.ModeJudge}
	team.parts = parts{
		newAgent: cfg.NewAgent,
		output:   cfg.Output,
		redactor: cfg.Redactor,
		options:  cfg.Options,
		sealed:   cfg.ReadOnlySandbox,
		room:     os.TempDir(), // until there is one
	}
	work, err := filepath.Abs(cfg.JudgeCwd)
	if err != nil {
		return nil, &ConfigError{"JudgeConfig.JudgeCwd", err}
	}
	team.build = func(p parts) (*harness.Session, error) {
		cfg.NewAgent, cfg.Output, cfg.Redactor, cfg.Options = p.newAgent, p.output, p.redactor, p.options
		cfg.ReadOnlySandbox = p.sealed
		cfg.Judge.Cwd, cfg.JudgeCwd = p.room, filepath.Join(p.room, exhibitName)
		if cfg.Options.ProfilesDir == "" {
			cfg.Options.ProfilesDir = p.room // it has none, so the profile that ships with fit is used
		}
		return harness.NewJudge(cfg)
	}
	team.prepare = func(ctx context.Context, p *parts) (func(), error) {
		room, err := scratch.Make("", "fit-judge-")
		if err != nil {
			return nil, fmt.Errorf("make a neutral directory for the judge: %w", err)
		}
		release := func() { _ = room.Remove() } // a copy left behind does no harm
		if err := copyWork(ctx, work, filepath.Join(room.Path, exhibitName)); err != nil {
			release()
			return nil, fmt.Errorf("copy the work: %w", err)
		}
		p.room, p.sealed = room.Path, p.options.Base.Isolation.Kind == sandbox.IsolationBwrap
		return release, nil
	}
	return w.newTeam("JudgeConfig", team)
}

// isolateJudge lets the judge's agent see the copy read-only, and besides it only the agent's own
// files and its room.
func (w Wiring) isolateJudge(ctx context.Context, options *Options, id, room string) error {
	played, err := w.Registry.Get(id)
	if err != nil {
		return &ConfigError{"Agent", err}
	}
	installation, err := played.Probe(ctx, hostOf(options.Base))
	if err != nil {
		return err
	}
	options.Base.Installation = &installation
	visible := []string{filepath.Join(room, exhibitName)}
	// an agent that is part of this program isolates only the commands that it runs, and those need
	// no place to write
	if installation.Path == "" {
		visible = append(visible, room)
	}
	options.Base.Isolation = sandbox.Isolation{
		Kind:     sandbox.IsolationBwrap,
		ReadOnly: visible,
		Network:  options.Base.Isolation.Network,
	}
	return nil
}

// reopenRoom gives a judge that is resumed the sandbox that it had.
func (w Wiring) reopenRoom(ctx context.Context, judge AgentConfig, options *Options) (release func(), err error) {
	release = func() { _ = scratch.RemoveAll(judge.Cwd) }
	if slices.Contains(judge.DisallowedTools, "Bash") {
		return release, nil
	}
	works := sandbox.DetectBwrap(ctx)
	if works.Unknown != nil {
		return nil, fmt.Errorf("isolation could not be tried: %w; try again", works.Unknown)
	}
	if !works.Bwrap.OK {
		return nil, errors.New("the judge could run commands in a read-only sandbox, which is no longer available; " +
			"judge again from the start")
	}
	return release, w.isolateJudge(ctx, options, judge.Agent, judge.Cwd)
}

// copyWork copies a directory. Symlinks are copied as they are, because what they point at outside
// is not part of the work. Pipes, sockets and devices are left out, and so is the directory of the
// copy, which lies in the work if the temporary directory does.
func copyWork(ctx context.Context, from, to string) error {
	room, err := os.Stat(filepath.Dir(to))
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	isRoom := func(name string) bool {
		info, err := os.Lstat(filepath.Join(from, filepath.FromSlash(name)))
		return err == nil && os.SameFile(info, room)
	}
	return tree.Copy{
		Walk:   tree.Walk{Skip: isRoom},
		Accept: func(e *tree.Entry) (bool, error) { return !e.IsSpecial(), nil },
	}.Dir(ctx, from, to)
}
