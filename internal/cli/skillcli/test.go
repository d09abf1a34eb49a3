package skillcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/report/skilltest"
	"github.com/fit-eval/fit/internal/skill"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
)

// testOptions are the flags of fit skill test.
type testOptions struct {
	experimentcli.RunOptions
	panel         experimentcli.PanelOptions
	label         bool
	kind, queries string
	agents        []string
	against, with string
	cases         []string
	failOn        string
}

// notForSkills are flags of experiments that a test of a skill decides by itself.
var notForSkills = []string{"arm", "arms", "fleet", "insecure", "regrade-sample"}

func newTest(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := testOptions{}
	command := &cobra.Command{
		Use:   "test DIR",
		Short: "Measure whether a skill helps: every test case with it and without it",
		Long: `Measure whether a skill helps. Every case of evals/evals.json is run with the skill and without it, or with a
former version (--against), several times, in a fresh directory; the test cases themselves are never given to the
agent. The answer is improved, regressed or not proven, over the cases, with a confidence interval; then what each
assertion shows, in how many runs the model was given the skill and opened it, and what it costs.

Checks of a case are decided by code. Sentences are decided by a panel (--panel) that does not know the arm and must cite
a line of the outputs or of the trace, or by you (--label). Without either they are counted as unjudged, and cases that
have nothing else are not run. Cases in which the skill should stay silent fail where it is opened.

The results are an ordinary run directory: rerun the same command to resume, and look at it with fit-benchmark report,
compare and show, or fit view.`,
		Example: fmt.Sprintf(`  fit skill test my-skill --agent %s
  fit skill test my-skill --against HEAD~1 --runs 5
  fit skill test my-skill --with ../other-skill --max-cost-usd 5`, registry.Examples(1)...),
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return runTest(command.Context(), con, registry, &opts, args[0], command.Flags())
		},
	}
	flags := command.Flags()
	opts.register(flags, "iteration")
	opts.panel.Register(flags)
	flags.BoolVar(&opts.label, "label", false, "decide about the sentences yourself: each is shown with its evidence, "+
		"without saying which arm it is of; the answers are read from standard input, p, f, s or q")
	flags.StringArrayVar(&opts.cases, "task", nil, "run only the case with this id; repeat it for more")
	return command
}

// register declares the flags of every test of a skill. A test without a run directory of its own
// has one of the kind in the skill's workspace.
func (o *testOptions) register(flags *pflag.FlagSet, kind string) {
	o.Register(flags)
	o.kind = kind
	o.Format.Register(flags, "output format")
	flags.StringVar(&o.Output, "output", "", "run directory; rerun to resume (default: NAME-workspace/"+kind+"-N, "+
		"the last one of the same test, or a new one)")
	flags.StringArrayVar(&o.agents, "agent", nil, "agent to test with; repeat it to test with several, each by "+
		"itself (default: the first one installed)")
	flags.StringVar(&o.against, "against", "", "compare with a former version of the skill: a directory, or a git "+
		"revision of the skill's repository (default: compare with no skill)")
	flags.StringVar(&o.with, "with", "", "other skills that both arms have, separated by commas")
	flags.StringVar(&o.failOn, "fail-on", "", "gate: exit 1 on these claims, separated by commas: "+
		strings.Join(claims, ", "))
	for _, name := range notForSkills {
		_ = flags.MarkHidden(name) // they are there
	}
}

// checked returns the claims of --fail-on, and rejects flags that a test decides by itself.
func (o *testOptions) checked(flags *pflag.FlagSet, name string) ([]string, error) {
	for _, flag := range notForSkills {
		if flags.Changed(flag) {
			return nil, console.Usagef("fit skill test makes its arms itself, on this machine: leave out --%s, or use "+
				"fit-benchmark run --family %s", flag, name)
		}
	}
	failOn := console.List(o.failOn)
	for _, claim := range failOn {
		if !slices.Contains(claims, claim) {
			return nil, console.Usagef("--fail-on %s: must be one of %s", claim, strings.Join(claims, ", "))
		}
	}
	return failOn, nil
}

func runTest(ctx context.Context, con *console.Console, registry *agent.Registry, opts *testOptions, name string,
	flags *pflag.FlagSet,
) error {
	failOn, err := opts.checked(flags, name)
	if err != nil {
		return err
	}
	test, err := openTest(con, registry, opts, name)
	if err != nil {
		return err
	}
	defer test.tidy()
	if err := test.openCases(ctx, name); err != nil {
		return err
	}
	return test.each(func(id string) error {
		output, stopped := test.run(ctx, id)
		if output == "" {
			return stopped
		}
		if err := test.about.Write(output); err != nil {
			return err
		}
		if stopped == nil || console.Code(stopped) == console.ExitIncomplete {
			if err := test.judge(ctx, output); err != nil {
				return err
			}
		}
		answer, err := test.answer(context.WithoutCancel(ctx), output)
		if err != nil {
			return cmp.Or(stopped, err)
		}
		if err := skilltest.WriteWorkspace(output, answer); err != nil {
			return err
		}
		if err := test.print(answer, answer.Text, output); err != nil {
			return err
		}
		return cmp.Or(stopped, gate(answer.Skill, answer.Comparison, failOn))
	})
}

// each does something with every agent. Failed gates and missing runs are reported after the last
// agent.
func (t *skillTest) each(do func(id string) error) error {
	var failed error
	for _, id := range t.agents {
		if len(t.agents) > 1 {
			fmt.Fprintf(t.con.Stderr, "agent %s\n", id)
		}
		err := do(id)
		if code := console.Code(err); err != nil && code != console.ExitNegative && code != console.ExitIncomplete {
			return err
		}
		failed = cmp.Or(failed, err)
	}
	return failed
}

// skillTest is one call of fit skill test.
type skillTest struct {
	con      *console.Console
	registry *agent.Registry
	opts     *testOptions
	dir      string // of the skill, absolute
	output   string
	made     bool // by this call: the run directory
	begun    bool // the run directory has runs
	agents   []string
	skill    staged
	former   staged // the zero value: the baseline has no skill
	family   *task.Family
	only     []string
	leftOut  []string
	about    skilltest.Test
	write    func(dir string) error // writes what the test is about, once its run directory is its own
	queries  []skill.Query          // of a test of triggers; nil otherwise
}

// openTest finds the skill and the agents.
func openTest(con *console.Console, registry *agent.Registry, opts *testOptions, name string) (*skillTest, error) {
	dir, err := filepath.Abs(con.Path(name))
	if err != nil {
		return nil, err
	}
	t := &skillTest{
		con:      con,
		registry: registry,
		opts:     opts,
		dir:      dir,
		agents:   opts.agents,
	}
	if _, err := os.Stat(filepath.Join(dir, skill.FileName)); err != nil {
		return nil, console.Usagef("%s is not the directory of a skill: there is no SKILL.md%s; fit skill init %s "+
			"makes one", name, elsewhere(dir), name)
	}
	if len(t.agents) == 0 {
		t.agents = []string{""}
	}
	for i, id := range t.agents {
		if slices.Contains(t.agents[:i], id) {
			return nil, console.Usagef("--agent %s is given twice: each agent is tested by itself, so name it once", id)
		}
		if _, err := registry.Get(id); id != "" && err != nil {
			return nil, console.Exit(console.ExitUsage, err)
		}
	}
	return t, nil
}

// elsewhere says which skills are below a directory that has no SKILL.md.
func elsewhere(dir string) string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	return skill.Elsewhere(root)
}

// openCases reads the test cases and makes the directory of the iteration.
func (t *skillTest) openCases(ctx context.Context, name string) (err error) {
	if _, err := os.Stat(filepath.Join(t.dir, filepath.FromSlash(skill.EvalsFile))); err != nil {
		return console.Usagef("%s has no test cases: write %s (fit skill init shows one)", name, skill.EvalsFile)
	}
	if t.family, err = task.Load(ctx, t.dir, task.Options{Environ: t.con.Environ, Cases: t.opts.cases}); err != nil {
		if len(t.opts.cases) == 0 && ctx.Err() == nil {
			err = fmt.Errorf("%w\na case that --task does not choose stops nothing: fit skill test %s --task ID", err,
				name)
		}
		return experimentcli.PrepareError(ctx, err)
	}
	for _, warning := range t.family.Warnings {
		fmt.Fprintf(t.con.Stderr, "note: %s\n", warning)
	}
	if err := t.choose(); err != nil {
		return err
	}
	if err = t.iteration(); err != nil {
		return err
	}
	if err = t.stage(ctx); err != nil {
		return err
	}
	t.describe()
	t.write = t.about.Write
	return nil
}

// choose finds the cases that can be decided. A case with nothing but sentences has no outcome.
func (t *skillTest) choose() error {
	known := map[string]bool{}
	for i := range t.family.Tasks {
		one := &t.family.Tasks[i]
		known[one.ID] = true
		switch {
		case len(t.opts.cases) > 0 && !slices.Contains(t.opts.cases, one.ID):
		case len(one.Sample.Checks) == 0 && !t.opts.decides():
			t.leftOut = append(t.leftOut, one.ID)
		default:
			t.only = append(t.only, one.ID)
		}
	}
	for _, id := range t.opts.cases {
		if !known[id] {
			return console.Usagef("--task %s: there is no such case in %s", id, skill.EvalsFile)
		}
	}
	if len(t.only) == 0 {
		return console.Usagef("nothing decides the cases of %s: all %d have sentences only, which code cannot check; "+
			"name judges with --panel FILE, decide yourself with --label, or add \"checks\" to a case, e.g. "+
			`"checks": [{"exists": "report.md"}, {"contains": ["total"], "file": "report.md"}]`,
			skill.EvalsFile, len(t.leftOut))
	}
	return nil
}

// stage copies the skill and its former version to where the arms take them from.
func (t *skillTest) stage(ctx context.Context) (err error) {
	base := filepath.Base(t.dir)
	found, _ := results.Find(t.output) // none: this is the first call
	to := filepath.Join(t.output, "skills", skilltest.ArmWith, base)
	if t.skill, err = stage(ctx, t.dir, to, len(found) > 0); err != nil {
		return err
	}
	if err := t.twins(); err != nil {
		return err
	}
	if t.opts.against == "" {
		return nil
	}
	copied := filepath.Join(t.output, "skills", skilltest.ArmFormer, base)
	t.former, err = stageFormer(ctx, t.con, t.dir, t.opts.against, copied, len(found) > 0)
	if err == nil && t.former.Digest == t.skill.Digest {
		err = console.Usagef("--against %s is the same skill: there is nothing to compare", t.opts.against)
	}
	return err
}

// twins says which of the other skills cannot be told from the one that is tested.
func (t *skillTest) twins() error {
	for _, other := range console.List(t.opts.with) {
		found, err := experiment.ReadSkills(t.con.Path(other))
		if err != nil {
			return console.Exit(console.ExitUsage, fmt.Errorf("--with %s: %w", other, err))
		}
		for i := range found {
			if found[i].Kind != ledger.PieceSkill {
				continue
			}
			one, err := readStaged(found[i].Source)
			if err != nil || strings.TrimSpace(one.Body) != strings.TrimSpace(t.skill.Body) {
				continue
			}
			fmt.Fprintf(t.con.Stderr, "note: --with %s: the skill %s has the same body as %s, so that nothing shows "+
				"which of them is opened: opening is not counted, and negative cases have no answer\n",
				other, one.Name, t.skill.Name)
		}
	}
	return nil
}

// arms returns the baseline and the arm with the skill.
func (t *skillTest) arms(id string) ([]experiment.Arm, error) {
	var others []string
	for _, other := range console.List(t.opts.with) {
		others = append(others, t.con.Path(other))
	}
	base := experiment.Arm{
		Name:  skilltest.ArmWithout,
		Agent: id,
		Model: t.opts.Model,
		Auth:  t.opts.Auth.Value,
	}
	with := base
	with.Name = skilltest.ArmWith
	with.Skills = strings.Join(append([]string{t.skill.Path}, others...), "+")
	base.Skills = strings.Join(others, "+")
	if t.former.Path != "" {
		base.Name = skilltest.ArmFormer
		base.Skills = strings.Join(append([]string{t.former.Path}, others...), "+")
	}
	arms := []experiment.Arm{base, with}
	if t.queries != nil && t.former.Path == "" {
		arms = arms[1:] // there is nothing to open in the other
	}
	for i := range arms {
		if err := t.opts.CompleteArm(t.con, &arms[i]); err != nil {
			return nil, err
		}
	}
	return arms, nil
}

// run runs the experiment with one agent. It returns the run directory, if it has results, and why
// the experiment is incomplete.
func (t *skillTest) run(ctx context.Context, id string) (string, error) {
	machine := experimentcli.Machine(t.con, t.registry)
	machine.OutputLimit = t.opts.OutputLimit()
	policy, fleet, err := t.opts.Begin(ctx, t.con, machine)
	if err != nil {
		return "", err
	}
	defer fleet.Close()
	arms, err := t.arms(id)
	if err != nil {
		return "", err
	}
	if err := t.checkPanel(ctx, arms); err != nil {
		return "", err
	}
	setup := t.opts.Setup(t.con, arms, policy)
	setup.Family, setup.Only, setup.Selected = t.family, t.only, strings.Join(t.opts.cases, " ")
	prepared, err := local.Prepare(ctx, setup, machine)
	if err != nil {
		return "", experimentcli.PrepareError(ctx, err)
	}
	run, err := t.opts.Run(t.con, machine, prepared, fleet)
	if err != nil {
		return "", err
	}
	run.Output = t.output
	if len(t.agents) > 1 {
		run.Output = filepath.Join(t.output, agentDir(id))
	}
	if t.opts.DryRun {
		if err := experimentcli.DryRun(ctx, &run); err != nil {
			return "", err
		}
		experimentcli.ShowPlan(t.con, prepared.Plan, run.Output)
		return "", nil
	}
	if run.Dir, err = experimentcli.OpenDirectory(t.con, run.Output, prepared.Plan, machine.Redactor); err != nil {
		return "", err
	}
	t.begun = true
	if err := t.write(t.output); err != nil {
		return "", errors.Join(err, run.Dir.Close())
	}
	outcome, err := run.Do(ctx)
	if err := errors.Join(err, run.Dir.Close()); err != nil {
		return "", err
	}
	stopped := run.Conclude(outcome)
	if outcome.Status == experiment.Interrupted {
		return "", stopped
	}
	return run.Output, stopped
}

// agentDir is the directory of an agent's results, where there are several.
func agentDir(id string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/\\: ", r) {
			return '-'
		}
		return r
	}, id)
}
