package harnesscli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/harness"
)

// judgeOptions are the flags of fit-harness judge.
type judgeOptions struct {
	teamOptions
	cwd      string
	profiles string
}

func newJudge(con *console.Console, registry *agent.Registry) *cobra.Command {
	var opts judgeOptions
	command := &cobra.Command{
		Use:   "judge",
		Short: "Judge finished work in one go",
		Long: `Judge finished work in one go. The judge sees a copy of the work in a neutral directory, so it cannot
load the settings of the agent it judges, and cannot change anything. It can read files; it can run commands only
where a sandbox keeps the copy read-only. To let a judge question a running agent, use fit-harness supervise
--lead-profile judge.

Exit codes: 0 the criteria are met · 1 they are not · 2 usage error · 3 the judge did not conclude, or another
infrastructure failure · 4 stopped by a budget · 130 interrupted.`,
		Example: fmt.Sprintf(
			`  fit-harness judge --cwd ./result --task-file criteria.md --agent %s --output verdict.ndjson`,
			registry.Examples(1)...),
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runJudge(command.Context(), con, registry, &opts)
		},
	}
	flags := command.Flags()
	opts.register(flags, registry, harness.ModeJudge)
	flags.StringVar(&opts.cwd, "cwd", ".", "directory of the work to judge")
	flags.StringVar(&opts.profiles, "profiles-dir", "",
		"directory of profiles for --lead-profile (default: .claude/agents here, unless that is the work's own)")
	for _, name := range []string{
		"fail-fast", "keep-going", "participant-timeout", "participant-max-turns", "participant-max-tokens",
		"participant-max-cost-usd", "advisor-model", "advisor-max-uses", "ask-deadline", "max-lead-turns",
		"session-max-turns", "context",
	} {
		_ = flags.MarkHidden(name) // it exists
	}
	return command
}

func runJudge(ctx context.Context, con *console.Console, registry *agent.Registry, opts *judgeOptions) error {
	if opts.agent.Context.Value == fit.ContextProject {
		return console.Usagef("--context project: a judge does not read the instructions of the work that it judges")
	}
	work, err := directory(con, "--cwd", opts.cwd)
	if err != nil {
		return err
	}
	_, err = opts.hold(ctx, con, registry, harness.ModeJudge,
		func(wiring fit.Wiring, options fit.Options) (*fit.Team, error) {
			options.ProfilesDir = opts.profilesDir(con, work)
			judge := opts.lead()
			judge.Model = cmp.Or(judge.Model, opts.agent.Model)
			return wiring.NewJudge(fit.JudgeConfig{
				JudgeCwd:     work,
				JudgeProfile: opts.leadProfile,
				Judge:        judge,
				Options:      options,
			})
		})
	return err
}

// profilesDir is where the judge's profile comes from: never from the work, because that would let
// the judged choose its judge. Empty is the profile that ships with fit.
func (o *judgeOptions) profilesDir(con *console.Console, work string) string {
	if o.profiles != "" {
		return con.Path(o.profiles)
	}
	here, err := filepath.Abs(con.Path("."))
	if err != nil {
		return ""
	}
	if inside, err := filepath.Rel(work, here); err == nil && filepath.IsLocal(inside) {
		return ""
	}
	return filepath.Join(here, ".claude", "agents")
}
