package versuscli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report/versus"
)

// judgeOptions say whom to ask about what, as flags.
type judgeOptions struct {
	experimentcli.PanelOptions
	mode       console.Choice
	pairwise   console.Choice
	prompts    string
	dimensions string
}

// judgeOff asks nobody.
const judgeOff = "off"

func newJudgeOptions() judgeOptions {
	return judgeOptions{
		mode:     console.Choice{Choices: []string{judgeOff, judge.Auto, judge.All}},
		pairwise: console.Choice{Choices: []string{judge.PairsOff, judge.PairsTies, judge.PairsAll}},
	}
}

// register declares the flags. What is not given is as in the judging before, or the default.
func (o *judgeOptions) register(flags *pflag.FlagSet) {
	flags.Var(&o.mode, "judge", "which runs judges are asked about: none, all, or (auto, the default) those that "+
		"code alone cannot decide")
	flags.Var(&o.pairwise, "pairwise",
		"compare pairs of runs in both orders: none (default), those that the panel judges alike, or all")
	flags.StringVar(&o.prompts, "prompts", "", "directory of Markdown files that replace the built-in prompts")
	flags.StringVar(&o.dimensions, "dims", "", "dimensions to judge, separated by commas (default: all five)")
	o.Register(flags)
}

// asksNobody reports whether judging was switched off.
func (o *judgeOptions) asksNobody() bool { return o.mode.Value == judgeOff }

// settings are the flags laid over the settings of the judging before. ok is false where nobody was
// ever named to ask.
func (o *judgeOptions) settings(con *console.Console, before judge.Settings, asked bool) (s judge.Settings, ok bool,
	err error,
) {
	s = before
	if !asked {
		s.SelfTest = true
		if s.Prompts, err = judge.LoadPrompts(""); err != nil {
			return s, false, err
		}
	}
	if err := o.Apply(con, &s); err != nil {
		return s, false, err
	}
	if o.prompts != "" {
		if s.Prompts, err = judge.LoadPrompts(con.Path(o.prompts)); err != nil {
			return s, false, console.Exit(console.ExitUsage, fmt.Errorf("--prompts: %w", err))
		}
	}
	if o.dimensions != "" {
		if s.Dimensions, err = parseDimensions(o.dimensions); err != nil {
			return s, false, err
		}
	}
	s.Mode, s.Pairwise = cmp.Or(o.mode.Value, s.Mode), cmp.Or(o.pairwise.Value, s.Pairwise)
	return s, len(s.Panel.Members) > 0, nil
}

// check finds mistakes before anything is run: in the panel, the prompts, in who judges whom, and
// what would keep a member from being asked.
func (o *judgeOptions) check(ctx context.Context, con *console.Console, arms []experiment.Arm) error {
	if o.asksNobody() {
		return nil
	}
	settings, found, err := o.settings(con, judge.Settings{}, false)
	switch {
	case err != nil:
		return err
	case !found && o.mode.Value == judge.All:
		return console.Usagef("--judge all needs judges: --panel names them")
	case !found && o.pairwise.Value != "" && o.pairwise.Value != judge.PairsOff:
		return console.Usagef("--pairwise %s needs judges: --panel names them", o.pairwise.Value)
	case !found:
		return nil
	}
	var underTest []string
	for _, arm := range arms {
		underTest = append(underTest, arm.Agent, arm.Model)
	}
	return o.Check(ctx, con, &settings, underTest)
}

func parseDimensions(text string) ([]string, error) {
	var chosen []string
	known := evidence.Dimensions()
	named := map[string]bool{}
	for _, name := range console.List(text) {
		named[name] = true
	}
	for _, dimension := range known {
		if named[dimension] {
			chosen = append(chosen, dimension)
			delete(named, dimension)
		}
	}
	for name := range named {
		return nil, console.Usagef("--dims: there is no dimension %q, only %s", name, strings.Join(known, ", "))
	}
	return chosen, nil
}

// ask puts the questions that have no reply yet. found is false where nobody was ever named to ask.
func (o *judgeOptions) ask(ctx context.Context, d *reader, dir string, source *versus.Source) (outcome judge.Outcome,
	found bool, err error,
) {
	store, err := judge.Open(d.con.Path(dir))
	if err != nil {
		return outcome, false, console.Exit(console.ExitIncomplete, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	before, asked := store.Replies().Settings()
	settings, found, err := o.settings(d.con, before, asked)
	if err != nil || !found {
		return outcome, found, err
	}
	if err := settings.Panel.Check(source.UnderTest(), settings.SameFamily); err != nil {
		return outcome, true, console.Exit(console.ExitUsage, err)
	}
	subjects := source.Subjects()
	limits := o.Limits(d.con)
	limits.Redactor = experimentcli.Redactor(d.con, d.registry)
	outcome, err = store.Ask(ctx, settings, subjects, limits)
	for name, why := range outcome.LeftOut {
		fmt.Fprintf(d.con.Stderr, "judge %s was left out: %s\n", display.Line(name), display.Line(why))
	}
	if err != nil {
		return outcome, true, experimentcli.JudgingError(ctx, err)
	}
	var problems []string
	for i := range subjects {
		if subjects[i].Problem != "" {
			problems = append(problems, subjects[i].Problem)
		}
	}
	if len(problems) > 0 {
		return outcome, true, unreadable(problems)
	}
	return outcome, true, nil
}
