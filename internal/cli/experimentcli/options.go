package experimentcli

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/gateway"
)

// RunOptions are the flags of every command that runs an experiment, whatever its tasks look like.
type RunOptions struct {
	console.Agents
	Arms          []string
	ArmsFile      string
	Runs          console.Count
	Seed          uint64
	Output, Fleet string
	DryRun        bool
	Proof         Proof
	Format        console.Format

	concurrency, attempts, breakAfter console.Count
	timeout, drain                    console.Span
	budget                            budgetOptions
	retryErrors, noProbe, keepRaw     bool
	pull, insecure                    bool
	regrade                           float64
}

// Register adds the flags.
func (o *RunOptions) Register(flags *pflag.FlagSet) {
	o.Runs = console.Count{Value: experiment.DefaultRuns, Min: 1}
	o.concurrency.Min = 1
	o.attempts = console.Count{Value: experiment.DefaultAttempts, Min: 1}
	o.breakAfter = console.Count{Value: experiment.DefaultBreakAfter, Min: 1}
	o.drain.Value = 10 * time.Second
	o.Agents.Register(flags, fit.DefaultRunTurns, console.AgentsHelp{
		Isolations: isolationChoices,
		Model:      "model of agents whose arm names none (default: the agent's default)",
		ModelURL:   "URL of the model, without /v1; {cell} and {seed} are filled in (also FIT_MODEL_URL)",
		Context: "project files agents read on their own: project, which is instruction files, " +
			"skills, sub-agents and commands, or none (default: what the arm says, else the task, else project)",
		Isolation: isolationUsage,
		Network: "network access of agents: model is their model and the services of their task, and nothing else; " +
			"none is for the built-in agent (default: the task's setting, else host, the machine's network)",
		MaxTurns: "turns of the model; 0 is unlimited",
	})
	flags.BoolVar(&o.pull, "pull", false, pullUsage)
	flags.StringArrayVar(&o.Arms, "arm", nil,
		"arm as name=key:value,…; keys: agent, model, modelUrl, profile, skills (a+b), context, instructions, files, "+
			"mcp, settings, effort, temperature, prompt (text, \"text\" or @FILE), tools (a+b), env (NAME=value), "+
			"maxTurns, auth, lead, leadModel, needs (a+b); repeat it for more arms, the first is the baseline")
	flags.StringVar(&o.ArmsFile, "arms", "", "file of arms (YAML)")
	flags.Var(&o.Runs, "runs", "repetitions of each task per arm")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the order of arms and of scripted models")
	flags.Var(&o.concurrency, "concurrency",
		"attempts to run concurrently (also LIBHARNESS_BENCHMARK_CONCURRENCY; default: half the cores, from 2 to 4)")
	flags.StringVar(&o.Fleet, "fleet", "", "run the cells on the workers of a fleet: the `FILE` that fit fleet serve "+
		"writes for coordinators, - for standard input, env for FIT_FLEET, or nats://… of an existing cluster")
	flags.BoolVar(&o.insecure, "insecure", false, "with --fleet: "+InsecureUsage)
	flags.Float64Var(&o.regrade, "regrade-sample", 0.05,
		"with --fleet: fraction of the passes to grade again on this machine")
	flags.Var(&o.timeout, "timeout", "stop an agent after this time, even if the task allows more")
	flags.Var(&o.drain, "drain", "grace period for running attempts after a signal")
	flags.Var(&o.attempts, "attempts", "attempts at a cell that keeps failing with infrastructure errors")
	flags.Var(&o.breakAfter, "break-after", "stop after this many infrastructure errors in a row with the same cause")
	flags.BoolVar(&o.retryErrors, "retry-errors", false, "retry cells that ended in errors")
	flags.BoolVar(&o.keepRaw, "keep-raw", false,
		"do not compress traces (zstd); fit-trace reads both")
	flags.BoolVar(&o.noProbe, "no-probe", false, "do not check that every arm's model replies before the first cell")
	flags.BoolVar(&o.DryRun, "dry-run", false, "dry run: check everything that is free, start every arm once against "+
		"a scripted model, show the plan, and stop")
	o.Proof.Register(flags, console.AllowSame, console.AllowDrift, console.AllowHistorical,
		console.AllowUnsigned)
	o.budget.register(flags)
}

// budgetOptions are the bounds of a cell, an arm and the experiment.
type budgetOptions struct{ cell, arm, whole bounds }

type bounds struct {
	cost   console.Dollars
	tokens console.Count
	time   console.Span
}

func (b *budgetOptions) register(flags *pflag.FlagSet) {
	flags.Var(&b.whole.cost, "max-cost-usd", "stop before the experiment costs more than this")
	flags.Var(&b.arm.cost, "arm-max-cost-usd", "stop an arm before it costs more than this")
	flags.Var(&b.cell.cost, "cell-max-cost-usd", "stop an agent that has cost this much")
	flags.Var(&b.whole.tokens, "max-tokens", "stop before the experiment uses more tokens than this")
	flags.Var(&b.arm.tokens, "arm-max-tokens", "stop an arm before it uses more tokens than this")
	flags.Var(&b.cell.tokens, "cell-max-tokens", "stop an agent that has used this many tokens")
	flags.Var(&b.whole.time, "max-time", "start no attempt after this time, e.g. 2h")
	flags.Var(&b.arm.time, "arm-max-time", "start no more attempts of an arm whose attempts took this long in total")
	flags.Var(&b.cell.time, "cell-max-time", "stop an agent after this time")
}

func (b *bounds) budget() experiment.Budget {
	return experiment.Budget{USD: b.cost.Value, Tokens: int64(b.tokens.Value), Wall: b.time.Value}
}

// Setup is what the flags say about an experiment; its tasks and arms are the command's.
func (o *RunOptions) Setup(con *console.Console, arms []experiment.Arm, policy gateway.Policy) experiment.Setup {
	return experiment.Setup{
		Arms:            arms,
		Runs:            o.Runs.Value,
		Seed:            o.Seed,
		Isolation:       isolationKind(o.Isolation.Value),
		Network:         o.Network.Value,
		Context:         o.Context.Value,
		CellBudget:      o.budget.cell.budget(),
		DollarBudget:    o.budget.whole.cost.Value > 0 || o.budget.arm.cost.Value > 0,
		AgentTimeout:    o.timeout.Value,
		DefaultMaxTurns: o.MaxTurns.Value,
		Policy:          policy,
		KeepRaw:         o.keepRaw,
		Tools:           toolVersions(con),
		Commands:        HookCommands(),
	}
}

// Begin makes what a run needs before its tasks are read: what becomes of model calls, the images
// of tasks, and the fleet, which the caller closes.
func (o *RunOptions) Begin(ctx context.Context, con *console.Console, machine *local.Machine,
) (policy gateway.Policy, fleet *Fleet, err error) {
	if policy, err = o.Gateway.Policy(con); err != nil {
		return policy, nil, err
	}
	machine.Engines = imageEngines(o.pull, con.Stderr)
	fleet, err = o.openFleet(ctx, con, machine)
	return policy, fleet, err
}

// Run is the run that the flags describe.
func (o *RunOptions) Run(con *console.Console, machine *local.Machine, prepared *experiment.Prepared,
	fleet *Fleet,
) (Run, error) {
	workers, err := o.workers(con)
	plan := prepared.Plan
	plan.Concurrency, plan.Attempts, plan.Calls = workers, o.attempts.Value, prepared.Record
	return Run{
		Console:     con,
		Prepared:    prepared,
		Machine:     machine,
		Workers:     workers,
		Attempts:    o.attempts.Value,
		BreakAfter:  o.breakAfter.Value,
		Budgets:     experiment.Budgets{Arm: o.budget.arm.budget(), Experiment: o.budget.whole.budget()},
		RetryErrors: o.retryErrors,
		NoProbe:     o.noProbe,
		Drain:       o.drain.Value,
		Fleet:       fleet,
		Proof:       o.Proof,
	}, err
}

// RetryErrors reports whether cells that ended in errors are tried again.
func (o *RunOptions) RetryErrors() bool { return o.retryErrors }

// CompleteArm fills in what holds for all arms that do not say it themselves. A number of turns
// that was asked for must be kept; the default is for agents that can keep it.
func (o *RunOptions) CompleteArm(con *console.Console, arm *experiment.Arm) error {
	arm.ModelURL = cmp.Or(arm.ModelURL, o.ModelURL, con.Getenv("FIT_MODEL_URL"))
	if url := arm.ModelURL; url != "" && !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		return console.Usagef("arm %s: %q is not a valid model URL: it does not begin with http:// or https://",
			arm.Name, url)
	}
	if arm.MaxTurns == 0 && o.MaxTurns.Given {
		arm.MaxTurns = o.MaxTurns.Value
	}
	const variable = "LIBHARNESS_WORK_TRACKER"
	tracker := cmp.Or(o.WorkTracker.Value, con.Getenv(variable))
	if _, own := arm.Env[variable]; tracker != "" && !own {
		if arm.Env == nil {
			arm.Env = map[string]string{}
		}
		arm.Env[variable] = tracker
	}
	return nil
}

// workers is how many attempts run at a time; 0 on a fleet where nobody says so.
func (o *RunOptions) workers(con *console.Console) (int, error) {
	const variable = "LIBHARNESS_BENCHMARK_CONCURRENCY"
	text := con.Getenv(variable)
	switch {
	case o.concurrency.Given:
		return o.concurrency.Value, nil
	case text == "" && o.Fleet != "":
		return 0, nil
	case text == "":
		return defaultWorkers(), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, console.Usagef("%s %q: must be a whole number of at least 1", variable, text)
	}
	return n, nil
}
