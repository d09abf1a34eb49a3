package benchmarkcli

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/stats"
)

// runOptions are the flags of fit-benchmark run.
type runOptions struct {
	experimentcli.RunOptions
	family, skillsFrom      string
	selection               selection
	agent, lead, judgeAgent console.AgentID
	leadModel, judgeModel   string
	sameFamily              bool
	agentProfile            string
	judgeProfile, judgeURL  string
	prompt, allowedTools    string
	shard                   string
	judgeVotes              console.Count
	summary, stopEarly      bool
	controls                bool
	questionFlags
	gates      gates
	alpha      float64
	metrics, k string
}

const defaultOutput = "benchmark-runs"

func (o *runOptions) register(flags *pflag.FlagSet, registry *agent.Registry) {
	o.agent.Registry, o.lead.Registry, o.judgeAgent.Registry = registry, registry, registry
	o.judgeVotes.Min, o.selection = 1, newSelection()
	o.Register(flags)
	flags.StringVar(&o.Output, "output", defaultOutput,
		"run directory; rerun to resume, with more runs, tasks or arms if you like")
	o.Format.Choices = []string{console.FormatText, console.FormatJSON}
	flags.Var(&o.Format, "format", "text prints the report at the end, json the records as they are "+
		"written (default: text on a terminal, else json)")
	flags.StringVar(&o.family, "family", "", "directory of the task family, or url//subdir@ref")
	o.selection.register(flags)
	flags.Var(&o.agent, "agent", "agent to measure (default: the first one installed)")
	flags.StringVar(&o.agentProfile, "agent-profile", "",
		"profile of the agent: .claude/agents/NAME.md in its working directory")
	flags.StringVar(&o.prompt, "prompt", "", "text appended to the agent's system prompt")
	flags.StringVar(&o.allowedTools, "allowed-tools", "",
		"the only tools the agent may use, separated by commas (default: the agent's own)")
	flags.StringVar(&o.skillsFrom, "skills-from", "", "skills in place of the family's: the directory of a skill, a "+
		"directory of skills, or one with .claude/skills or .agents/skills; several with +")
	flags.Var(&o.lead, "lead", "agent that leads the measured one; without a lead, the measured agent gets the "+
		"task word for word")
	flags.StringVar(&o.leadModel, "lead-model", "", "model of the lead")
	flags.Var(&o.judgeAgent, "judge-agent",
		"agent that judges tasks with a judge.task.md (default: the agent of the first arm)")
	flags.StringVar(&o.judgeModel, "judge-model", "", "model of the judge")
	flags.BoolVar(&o.sameFamily, "same-family", false, "allow a judge of the same vendor as some of the arms only")
	flags.StringVar(&o.judgeURL, "judge-url", "", "URL of the judge's model (default: --model-url, or FIT_MODEL_URL)")
	flags.StringVar(&o.judgeProfile, "judge-profile", "",
		"profile of the judge: \"judge\" is the family's judge.md, which is the default where it exists")
	flags.Var(&o.judgeVotes, "judge-votes",
		"independent judge votes on every attempt; the majority decides; must be odd (default: the task's setting, "+
			"else 1)")
	flags.BoolVar(&o.controls, "controls", false, "also run controls, interleaved: the baseline once more, which must "+
		"not differ, and the arm with a known effect of the family's control-arm.yaml, which must be found; if one "+
		"fails, nothing is claimed")
	flags.StringVar(&o.shard, "shard", "", "run only part i of N, as i/N")
	flags.BoolVar(&o.stopEarly, "stop-early", false,
		"sequential test: stop as soon as a difference is established; valid even though it looks after every task")
	o.questionFlags.register(flags)
	flags.Float64Var(&o.alpha, "alpha", stats.DefaultAlpha,
		"significance level of --stop-early and of the comparison at the end")
	flags.StringVar(&o.metrics, "metrics", "", metricsUsage)
	flags.BoolVar(&o.summary, "summary", false, "append the report to $GITHUB_STEP_SUMMARY")
	o.gates.register(flags)
	flags.StringVar(&o.k, "k", "1,3,5", kUsage)
}

// plainFlags are those that describe the arm called default; beside --arm or --arms they would say
// nothing.
var plainFlags = []string{
	"agent", "model", "agent-profile", "prompt", "allowed-tools", "lead", "lead-model",
	"auth",
}

// chooseArms reads the arms from flags or file.
func (o *runOptions) chooseArms(con *console.Console, flags *pflag.FlagSet) (arms []experiment.Arm, err error) {
	switch {
	case o.ArmsFile != "" && len(o.Arms) > 0:
		return nil, console.Usagef("use --arm or --arms, not both")
	case o.ArmsFile != "" || len(o.Arms) > 0:
		if arms, err = experimentcli.ReadArms(con, o.ArmsFile, o.Arms); err == nil {
			err = experiment.CheckArms(arms)
		}
		if err != nil {
			return nil, console.Exit(console.ExitUsage, err)
		}
		for _, name := range plainFlags {
			if flags.Changed(name) {
				return nil, console.Usagef("--%s describes the only arm, so it cannot be combined with --arm or "+
					"--arms; put it into the arm instead", name)
			}
		}
	default:
		arms = []experiment.Arm{{
			Name:         "default",
			Agent:        o.agent.Value,
			Model:        o.Model,
			Profile:      o.agentProfile,
			Prompt:       o.prompt,
			AllowedTools: console.List(o.allowedTools),
			Auth:         o.Auth.Value,
			Lead:         o.lead.Value,
			LeadModel:    o.leadModel,
		}}
	}
	for i := range arms {
		if err := o.CompleteArm(con, &arms[i]); err != nil {
			return nil, err
		}
	}
	return arms, nil
}

// addControls adds the controls that the user asks for: the baseline once more and, where the
// family declares one, an arm with a known effect.
func (o *runOptions) addControls(con *console.Console, arms []experiment.Arm, family string) (
	[]experiment.Arm, error,
) {
	if !o.controls {
		return arms, nil
	}
	arms = append(arms, arms[0].Shadow())
	known, effect, err := experiment.KnownControl(family)
	if known != nil {
		o.control = effect
		err = o.CompleteArm(con, known)
		arms = append(arms, *known)
	}
	if err == nil {
		err = experiment.CheckArms(arms)
	}
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
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
