package experimentcli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/judge"
)

// PanelOptions say who judges, and for how much, as flags.
type PanelOptions struct {
	File       string
	SelfTest   console.Choice
	SameFamily bool

	budget   console.Dollars
	parallel console.Count
}

// Register declares the flags.
func (o *PanelOptions) Register(flags *pflag.FlagSet) {
	o.SelfTest.Choices, o.parallel.Min = []string{"on", "off"}, 1
	flags.StringVar(&o.File, "panel", "", "file with the members of the panel (YAML)")
	flags.Var(&o.SelfTest, "self-test",
		"test members with injections and controls first, and leave out those that fail (default on)")
	flags.Var(&o.budget, "judge-max-cost-usd",
		"limit for the cost of judging the directory; needs a price for every member")
	flags.Var(&o.parallel, "judge-concurrency", fmt.Sprintf("questions to ask concurrently (default %d)",
		judge.DefaultParallel))
	flags.BoolVar(&o.SameFamily, "same-family", false, "allow members of the same family as a model under test")
}

// Apply lays the flags over the settings of the judging before.
func (o *PanelOptions) Apply(con *console.Console, s *judge.Settings) (err error) {
	if o.File != "" {
		if s.Panel, err = judge.LoadPanel(con.Path(o.File)); err != nil {
			return console.Exit(console.ExitUsage, err)
		}
	}
	if o.SelfTest.Value != "" {
		s.SelfTest = o.SelfTest.Value == "on"
	}
	s.SameFamily = s.SameFamily || o.SameFamily
	return nil
}

// Limits say how questions are put.
func (o *PanelOptions) Limits(con *console.Console) judge.Limits {
	limits := judge.Limits{Parallel: o.parallel.Value, Prices: con.PriceTable(), Getenv: con.Getenv}
	if o.budget.Given {
		limits.BudgetUSD = &o.budget.Value
	}
	return limits
}

// Check finds what would keep a panel from being asked: who judges whom, keys, prices.
func (o *PanelOptions) Check(ctx context.Context, con *console.Console, s *judge.Settings, underTest []string) error {
	if err := s.Panel.Check(underTest, s.SameFamily); err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	return JudgingError(ctx, o.Limits(con).Check(s.Panel))
}

// JudgingError gives what went wrong its exit code.
func JudgingError(ctx context.Context, err error) error {
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case errors.As(err, new(*gateway.BudgetError)):
		return console.Exit(console.ExitBudget, err)
	case errors.As(err, new(*judge.UnpricedError)):
		return console.Exit(console.ExitUsage, err)
	}
	return console.Exit(console.ExitIncomplete, err)
}
