package benchmarkcli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/stats"
)

// runOptions are the flags of fit-benchmark run.
type runOptions struct {
	family, output, skillsFrom, armsFile   string
	selection                              selection
	arms                                   []string
	runs                                   console.Count
	seed                                   uint64
	agent, lead, judgeAgent                console.AgentID
	agentModel, leadModel, judgeModel      string
	agentProfile, judgeProfile             string
	modelURL, judgeURL                     string
	auth, workTracker, format              console.Choice
	isolation                              experimentcli.Isolation
	network, context                       console.Choice
	prompt                                 string
	maxTurns                               string
	allowedTools                           string
	concurrency                            string
	shard                                  string
	timeout, drain                         console.Span
	budget                                 budgetOptions
	attempts, breakAfter, judgeVotes       console.Count
	retryErrors, noProbe, summary, keepRaw bool
	stopEarly, dryRun                      bool
	allow                                  console.Allow
	gateway                                console.Gateway
	gates                                  gates
	alpha                                  float64
	metrics                                string
	k                                      string
	fleet                                  string
}

// budgetOptions are the bounds of a cell, an arm and the experiment.
type budgetOptions struct {
	cost, armCost, cellCost       console.Dollars
	tokens, armTokens, cellTokens console.Count
	time, armTime, cellTime       console.Span
}

func (b *budgetOptions) register(flags *pflag.FlagSet) {
	flags.Var(&b.cost, "max-cost-usd", "stop before the experiment costs more than this")
	flags.Var(&b.armCost, "arm-max-cost-usd", "stop an arm before it costs more than this")
	flags.Var(&b.cellCost, "cell-max-cost-usd", "stop an agent that has cost this much")
	flags.Var(&b.tokens, "max-tokens", "stop before the experiment uses more tokens than this")
	flags.Var(&b.armTokens, "arm-max-tokens", "stop an arm before it uses more tokens than this")
	flags.Var(&b.cellTokens, "cell-max-tokens", "stop an agent that has used this many tokens")
	flags.Var(&b.time, "max-time", "start no attempt after this time, e.g. 2h")
	flags.Var(&b.armTime, "arm-max-time", "start no more attempts of an arm whose attempts took this long in total")
	flags.Var(&b.cellTime, "cell-max-time", "stop an agent after this time")
}

func (b *budgetOptions) cell() experiment.Budget {
	return experiment.Budget{USD: b.cellCost.Value, Tokens: int64(b.cellTokens.Value), Wall: b.cellTime.Value}
}

func (b *budgetOptions) budgets() experiment.Budgets {
	return experiment.Budgets{
		Arm:        experiment.Budget{USD: b.armCost.Value, Tokens: int64(b.armTokens.Value), Wall: b.armTime.Value},
		Experiment: experiment.Budget{USD: b.cost.Value, Tokens: int64(b.tokens.Value), Wall: b.time.Value},
	}
}

const (
	defaultRuns   = 5
	defaultTurns  = 50
	defaultOutput = "benchmark-runs"
)

func (o *runOptions) register(flags *pflag.FlagSet, registry *agent.Registry) {
	o.agent.Registry, o.lead.Registry, o.judgeAgent.Registry = registry, registry, registry
	o.auth.Choices = []string{agent.AuthSubscription, agent.AuthAPIKey}
	o.network.Choices, o.context.Choices = fit.Networks, []string{agent.ContextProject, agent.ContextNone}
	o.workTracker.Choices = []string{"github", "filesystem"}
	o.format.Choices = []string{"text", "json"}
	flags.StringVar(&o.family, "family", "", "directory of the task family, or url//subdir@ref")
	o.selection.register(flags)
	flags.StringVar(&o.output, "output", defaultOutput,
		"run directory; rerun to resume, with more runs, tasks or arms if you like")
	flags.Var(&o.runs, "runs", "repetitions of each task per arm")
	flags.StringArrayVar(&o.arms, "arm", nil,
		"arm as name=key:value,…; keys: agent, model, modelUrl, profile, skills (a+b), context, instructions, files, "+
			"mcp, settings, effort, temperature, prompt (text, \"text\" or @FILE), tools (a+b), env (NAME=value), "+
			"maxTurns, auth, lead, leadModel, needs (a+b); repeat it for more arms, the first is the baseline")
	flags.StringVar(&o.armsFile, "arms", "", "file of arms (YAML)")
	flags.Var(&o.agent, "agent", "agent to measure (default: the first one installed)")
	flags.StringVar(&o.agentModel, "agent-model", "", "model of the agent (default: the agent's default)")
	flags.StringVar(&o.modelURL, "model-url", "",
		"URL of the model, without /v1; {cell} and {seed} are filled in (also FIT_MODEL_URL)")
	flags.StringVar(&o.agentProfile, "agent-profile", "",
		"profile of the agent: .claude/agents/NAME.md in its working directory")
	flags.StringVar(&o.prompt, "prompt", "", "text appended to the agent's system prompt")
	flags.StringVar(&o.allowedTools, "allowed-tools", "",
		"the only tools the agent may use, separated by commas (default: the agent's own)")
	flags.StringVar(&o.maxTurns, "max-turns", strconv.Itoa(defaultTurns), "turns of the model; 0 is unlimited")
	flags.StringVar(&o.skillsFrom, "skills-from", "", "skills in place of the family's: the directory of a skill, a "+
		"directory of skills, or one with .claude/skills or .agents/skills; several with +")
	flags.Var(&o.context, "context", experimentcli.ContextUsage)
	flags.Var(&o.auth, "auth", "which credentials to use if the agent accepts both")
	flags.Var(&o.lead, "lead", "agent that leads the measured one; without a lead, the measured agent gets the "+
		"task word for word")
	flags.StringVar(&o.leadModel, "lead-model", "", "model of the lead")
	flags.Var(&o.judgeAgent, "judge-agent",
		"agent that judges tasks with a judge.task.md (default: the agent of the first arm)")
	flags.StringVar(&o.judgeModel, "judge-model", "", "model of the judge")
	flags.StringVar(&o.judgeURL, "judge-url", "", "URL of the judge's model (default: --model-url)")
	flags.StringVar(&o.judgeProfile, "judge-profile", "",
		"profile of the judge: \"judge\" is the family's judge.md, which is the default where it exists")
	flags.Var(&o.judgeVotes, "judge-votes",
		"independent judge votes on every attempt; the majority decides; must be odd (default: the task's setting, "+
			"else 1)")
	flags.Var(&o.workTracker, "work-tracker", "where agents track work (also LIBHARNESS_WORK_TRACKER)")
	o.isolation.Register(flags)
	flags.Var(&o.network, "network", experimentcli.NetworkUsage)
	o.gateway.Register(flags)
	flags.StringVar(&o.concurrency, "concurrency", "",
		"attempts to run concurrently (also LIBHARNESS_BENCHMARK_CONCURRENCY; default: half the cores, from 2 to 4)")
	flags.StringVar(&o.fleet, "fleet", "", experimentcli.FleetUsage)
	flags.StringVar(&o.shard, "shard", "", "run only part i of N, as i/N")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the order of arms and of scripted models")
	flags.Var(&o.timeout, "timeout", "stop an agent after this time, even if the task allows more")
	flags.Var(&o.drain, "drain", "grace period for running attempts after a signal")
	flags.Var(&o.attempts, "attempts", "attempts at a cell that keeps failing with infrastructure errors (default 3)")
	flags.Var(&o.breakAfter, "break-after",
		"stop after this many infrastructure errors in a row with the same cause (default 5)")
	flags.BoolVar(&o.stopEarly, "stop-early", false,
		"sequential test: stop as soon as a difference is established; valid even though it looks after every task")
	flags.Float64Var(&o.alpha, "alpha", stats.DefaultAlpha,
		"significance level of --stop-early and of the comparison at the end")
	flags.BoolVar(&o.retryErrors, "retry-errors", false, "retry cells that ended in errors")
	flags.BoolVar(&o.keepRaw, "keep-raw", false,
		"do not compress traces (zstd); fit-trace reads both")
	flags.BoolVar(&o.noProbe, "no-probe", false, "do not check that every arm's model replies before the first cell")
	flags.BoolVar(&o.dryRun, "dry-run", false, experimentcli.DryRunUsage)
	o.allow.Register(flags, console.AllowSame, console.AllowDrift)
	flags.StringVar(&o.metrics, "metrics", "", metricsUsage)
	flags.BoolVar(&o.summary, "summary", false, "append the report to $GITHUB_STEP_SUMMARY")
	o.gates.register(flags)
	flags.StringVar(&o.k, "k", "1,3,5", "the k of pass@k in the report at the end")
	flags.Var(&o.format, "format", "text prints the report at the end, json the records as they are "+
		"written (default: text on a terminal, else json)")
	o.budget.register(flags)
}

// plainFlags are those that describe the arm called default; beside --arm or --arms they would say
// nothing.
var plainFlags = []string{
	"agent", "agent-model", "agent-profile", "prompt", "allowed-tools", "lead", "lead-model",
	"auth",
}

// chooseArms reads the arms from flags or file.
func (o *runOptions) chooseArms(con *console.Console, flags *pflag.FlagSet) ([]experiment.Arm, error) {
	turns, err := o.turns()
	if err != nil {
		return nil, err
	}
	var arms []experiment.Arm
	switch {
	case o.armsFile != "" && len(o.arms) > 0:
		return nil, console.Usagef("use --arm or --arms, not both")
	case o.armsFile != "" || len(o.arms) > 0:
		if arms, err = experimentcli.ReadArms(con, o.armsFile, o.arms); err != nil {
			return nil, console.Exit(console.ExitUsage, err)
		}
	default:
		arms = []experiment.Arm{{
			Name:         "default",
			Agent:        o.agent.Value,
			Model:        o.agentModel,
			Profile:      o.agentProfile,
			Prompt:       o.prompt,
			AllowedTools: console.List(o.allowedTools),
			Auth:         o.auth.Value,
			Lead:         o.lead.Value,
			LeadModel:    o.leadModel,
		}}
		return o.completeArms(con, arms, turns, flags.Changed("max-turns"))
	}
	for _, name := range plainFlags {
		if flags.Changed(name) {
			return nil,
				console.Usagef("--%s describes the only arm, so it cannot be combined with --arm or --arms; put it "+
					"into the arm instead", name)
		}
	}
	if err := experiment.CheckArms(arms); err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	return o.completeArms(con, arms, turns, flags.Changed("max-turns"))
}

// completeArms adds what holds for all arms. A number of turns that was asked for must be kept; the
// default is for agents that can keep it.
func (o *runOptions) completeArms(con *console.Console, arms []experiment.Arm, turns int,
	explicit bool,
) ([]experiment.Arm, error) {
	url := cmp.Or(o.modelURL, con.Getenv("FIT_MODEL_URL"))
	tracker := cmp.Or(o.workTracker.Value, con.Getenv("LIBHARNESS_WORK_TRACKER"))
	for i := range arms {
		arm := &arms[i]
		arm.ModelURL = cmp.Or(arm.ModelURL, url)
		if err := experimentcli.CheckModelURL(arm); err != nil {
			return nil, err
		}
		if arm.MaxTurns == 0 && explicit {
			arm.MaxTurns = turns
		}
		if tracker != "" {
			if arm.Env == nil {
				arm.Env = map[string]string{}
			}
			if _, own := arm.Env["LIBHARNESS_WORK_TRACKER"]; !own {
				arm.Env["LIBHARNESS_WORK_TRACKER"] = tracker
			}
		}
	}
	return arms, nil
}

// stopRule is the rule that --stop-early asks for.
func (o *runOptions) stopRule() (*experiment.StopRule, error) {
	switch {
	case !(o.alpha > 0 && o.alpha < 1):
		return nil, console.Usagef("--alpha %g: must be between 0 and 1, e.g. 0.05", o.alpha)
	case o.stopEarly:
		return &experiment.StopRule{Alpha: o.alpha}, nil
	}
	return nil, nil
}

func (o *runOptions) turns() (int, error) {
	text := strings.TrimSpace(o.maxTurns)
	if text == "" {
		return defaultTurns, nil
	}
	turns, err := strconv.Atoi(text)
	if err != nil || turns < 0 {
		return 0, console.Usagef("--max-turns %q: must be a whole number of at least 0", o.maxTurns)
	}
	return turns, nil
}

// workers is how many attempts run at a time; 0 on a fleet where nobody says so.
func (o *runOptions) workers(con *console.Console) (int, error) {
	text, name := strings.TrimSpace(o.concurrency), "--concurrency"
	if text == "" {
		text, name = con.Getenv("LIBHARNESS_BENCHMARK_CONCURRENCY"), "LIBHARNESS_BENCHMARK_CONCURRENCY"
	}
	switch {
	case text == "" && o.fleet != "":
		return 0, nil
	case text == "":
		return experimentcli.DefaultWorkers(), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, console.Usagef("%s %q: must be a whole number of at least 1", name, text)
	}
	return n, nil
}

// parseK reads the list of k.
func parseK(text string) ([]int, error) {
	var ks []int
	for _, item := range console.List(text) {
		k, err := strconv.Atoi(item)
		if err != nil || k < 1 {
			return nil, console.Usagef("--k %q: must be whole numbers of at least 1, separated by commas", text)
		}
		ks = append(ks, k)
	}
	if len(ks) == 0 {
		return nil, console.Usagef("--k is empty: use whole numbers of at least 1, e.g. 1,3,5")
	}
	return ks, nil
}

// absolute resolves a path against the console's directory.
func absolute(con *console.Console, path string) (string, error) {
	abs, err := filepath.Abs(con.Path(path))
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return abs, nil
}
