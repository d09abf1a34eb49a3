package versuscli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/task"
)

// runOptions are the flags of fit versus run.
type runOptions struct {
	experimentcli.RunOptions
	agents        string
	workspace     console.Choice
	keepWorktrees bool
	judge         judgeOptions
}

func (o *runOptions) register(flags *pflag.FlagSet, registry *agent.Registry) {
	o.Register(flags)
	o.Format.Register(flags, "output format; json is one document, an EvalReport")
	o.Format.RegisterRobot(flags)
	flags.StringVar(&o.Output, "output", "",
		"run directory (default: the unfinished eval/run-NNN of the same plan, else the next number)")
	flags.StringVar(&o.agents, "agents", "", "agents to compare in place of arms, separated by commas: "+
		strings.Join(registry.IDs(), ", "))
	o.workspace = console.Choice{Value: "export", Choices: []string{"export", "worktree"}}
	flags.Var(&o.workspace, "workspace", "export: a copy with one commit and no history. worktree: a git worktree, "+
		"quick but leaky: agents can read the repository's history and what others commit")
	flags.BoolVar(&o.keepWorktrees, "keep-worktrees", false,
		"keep the working directories of all attempts; rerunning the command removes them")
	o.judge = newJudgeOptions()
	o.judge.register(flags)
}

// prepare checks everything that can be checked without running anything.
func (o *runOptions) prepare(ctx context.Context, con *console.Console, machine *local.Machine,
	files []string, policy gateway.Policy,
) (*experiment.Prepared, error) {
	arms, err := o.chooseArms(con, machine.Registry)
	if err != nil {
		return nil, err
	}
	if err := o.judge.check(ctx, con, arms); err != nil {
		return nil, err
	}
	paths := make([]string, len(files))
	for i, file := range files {
		paths[i] = con.Path(file)
	}
	family, err := task.LoadSpecs(ctx, paths, task.SpecOptions{Workspace: o.workspace.Value})
	if err != nil {
		return nil, experimentcli.PrepareError(ctx, err)
	}
	setup := o.Setup(con, arms, policy)
	setup.Family = family
	prepared, err := local.Prepare(ctx, setup, machine)
	if err != nil {
		return nil, experimentcli.PrepareError(ctx, err)
	}
	return prepared, nil
}

// chooseArms reads the arms from --agents, --arm or --arms.
func (o *runOptions) chooseArms(con *console.Console, registry *agent.Registry) ([]experiment.Arm, error) {
	given := 0
	for _, is := range []bool{o.agents != "", len(o.Arms) > 0, o.ArmsFile != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, console.Usagef("choose what to compare with --agents, --arm or --arms; the agents are %s",
			strings.Join(registry.IDs(), ", "))
	}
	arms, err := o.readArms(con)
	if err == nil {
		err = experiment.CheckArms(arms)
	}
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	for i := range arms {
		if err := o.complete(con, registry, &arms[i]); err != nil {
			return nil, console.Exit(console.ExitUsage, err)
		}
	}
	return arms, nil
}

func (o *runOptions) readArms(con *console.Console) ([]experiment.Arm, error) {
	if o.agents == "" {
		return experimentcli.ReadArms(con, o.ArmsFile, o.Arms)
	}
	var arms []experiment.Arm
	for _, id := range console.List(o.agents) {
		arms = append(arms, experiment.Arm{Name: id, Agent: id})
	}
	return arms, nil
}

// complete fills in what an arm does not say. Agents without a choice of logins keep their own.
func (o *runOptions) complete(con *console.Console, registry *agent.Registry, arm *experiment.Arm) error {
	if arm.Agent == "" && slices.Contains(registry.IDs(), arm.Name) {
		arm.Agent = arm.Name
	}
	chosen, err := registry.Get(arm.Agent)
	if err != nil {
		return err
	}
	arm.Model = cmp.Or(arm.Model, o.Model)
	if arm.Auth == "" && chosen.Info().Capabilities.Subscription != agent.Unsupported {
		arm.Auth = o.Auth.Value
	}
	return o.CompleteArm(con, arm)
}
