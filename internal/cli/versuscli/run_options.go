package versuscli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/task"
)

// runOptions are the flags of fit versus run.
type runOptions struct {
	agents, armsFile, model, modelURL string
	arms                              []string
	runs, parallel                    console.Count
	workspace, auth                   console.Choice
	isolation                         experimentcli.Isolation
	network, context                  console.Choice
	timeout                           console.Span
	budget                            console.Dollars
	seed                              uint64
	output, fleet                     string
	keepWorktrees, dryRun, robot      bool
	retryErrors, noProbe              bool
	requireDelivery                   bool
	allow                             console.Allow
	gateway                           console.Gateway
	judge                             judgeOptions
}

// defaultTurns bounds agents that can be bounded.
const defaultTurns = 100

// drain is how long attempts may continue after a signal.
const drain = 10 * time.Second

func (o *runOptions) register(flags *pflag.FlagSet, registry *agent.Registry) {
	o.runs, o.parallel = console.Count{Value: 1, Min: 1}, console.Count{Min: 1}
	o.workspace = console.Choice{Value: "export", Choices: []string{"export", "worktree"}}
	o.auth.Choices = []string{agent.AuthSubscription, agent.AuthAPIKey}
	flags.StringVar(&o.agents, "agents", "", "agents to compare, separated by commas: "+
		strings.Join(registry.IDs(), ", "))
	flags.StringArrayVar(&o.arms, "arm", nil, "arm as name=key:value,… in place of --agents, as fit-benchmark run "+
		"takes it; repeat it for more arms, the first is the baseline")
	flags.StringVar(&o.armsFile, "arms", "", "file of arms (YAML) in place of --agents")
	flags.StringVar(&o.model, "model", "", "model of all agents (default: each agent's own)")
	flags.StringVar(&o.modelURL, "model-url", "",
		"URL of the model, without /v1; {cell} and {seed} are filled in (also FIT_MODEL_URL)")
	flags.Var(&o.runs, "runs", "repetitions of each task per agent")
	flags.Var(&o.workspace, "workspace", "export: a copy with one commit and no history. worktree: a git worktree, "+
		"quick but leaky: agents can read the repository's history and what others commit")
	o.isolation.Register(flags)
	o.network.Choices, o.context.Choices = fit.Networks, []string{agent.ContextProject, agent.ContextNone}
	flags.Var(&o.network, "network", experimentcli.NetworkUsage)
	flags.Var(&o.context, "context", experimentcli.ContextUsage)
	flags.Var(&o.timeout, "timeout", "stop an agent after this time, even if the task allows more")
	flags.Var(&o.parallel, "parallel", "attempts to run concurrently (default: half the cores, from 2 to 4)")
	flags.Var(&o.budget, "budget-usd", "stop before the agents cost more than this in total")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the order of arms and of scripted models")
	flags.Var(&o.auth, "auth", "which credentials to use if an agent accepts both")
	flags.BoolVar(&o.keepWorktrees, "keep-worktrees", false,
		"keep the working directories of all attempts; rerunning the command removes them")
	flags.BoolVar(&o.dryRun, "dry-run", false, experimentcli.DryRunUsage)
	flags.BoolVar(&o.requireDelivery, "require-delivery", false, requireDeliveryUsage)
	o.allow.Register(flags, console.AllowSame, console.AllowDrift)
	flags.BoolVar(&o.robot, "robot", false, "print one JSON document and nothing else on standard output")
	flags.StringVar(&o.output, "output", "",
		"run directory (default: the unfinished eval/run-NNN of the same plan, else the next number)")
	flags.StringVar(&o.fleet, "fleet", "", experimentcli.FleetUsage)
	flags.BoolVar(&o.retryErrors, "retry-errors", false, "retry cells that ended in errors")
	flags.BoolVar(&o.noProbe, "no-probe", false, "do not check that every arm's model replies before the first cell")
	o.gateway.Register(flags)
	o.judge = newJudgeOptions()
	o.judge.register(flags)
}

// prepare checks everything that can be checked without running anything.
func (o *runOptions) prepare(ctx context.Context, con *console.Console, machine *local.Machine,
	files []string,
) (*experiment.Prepared, error) {
	policy, err := o.gateway.Policy(con)
	if err != nil {
		return nil, err
	}
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
	prepared, err := local.Prepare(ctx, experiment.Setup{
		Family:          family,
		Arms:            arms,
		Runs:            o.runs.Value,
		Seed:            o.seed,
		Isolation:       o.isolation.Kind(),
		Network:         o.network.Value,
		Context:         o.context.Value,
		DollarBudget:    o.budget.Value > 0,
		AgentTimeout:    o.timeout.Value,
		DefaultMaxTurns: defaultTurns,
		Policy:          policy,
		Tools:           experimentcli.ToolVersions(con),
		Commands:        experimentcli.HookCommands(),
	}, machine)
	if err != nil {
		return nil, experimentcli.PrepareError(ctx, err)
	}
	return prepared, nil
}

// chooseArms reads the arms from --agents, --arm or --arms.
func (o *runOptions) chooseArms(con *console.Console, registry *agent.Registry) ([]experiment.Arm, error) {
	given := 0
	for _, is := range []bool{o.agents != "", len(o.arms) > 0, o.armsFile != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, console.Usagef("choose what to compare with one of --agents %s, --arm and --arms",
			strings.Join(registry.IDs(), ","))
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
		return experimentcli.ReadArms(con, o.armsFile, o.arms)
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
	arm.Model = cmp.Or(arm.Model, o.model)
	arm.ModelURL = cmp.Or(arm.ModelURL, o.modelURL, con.Getenv("FIT_MODEL_URL"))
	if err := experimentcli.CheckModelURL(arm); err != nil {
		return err
	}
	if arm.Auth == "" && chosen.Info().Capabilities.Subscription != agent.Unsupported {
		arm.Auth = o.auth.Value
	}
	return nil
}

// workers is how many attempts run at a time; 0 on a fleet where nobody says so.
func (o *runOptions) workers() int {
	switch {
	case o.parallel.Given:
		return o.parallel.Value
	case o.fleet != "":
		return 0
	}
	return experimentcli.DefaultWorkers()
}
