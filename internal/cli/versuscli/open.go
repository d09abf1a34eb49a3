package versuscli

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report/versus"
	"github.com/fit-eval/fit/stats"
)

// reader reads run directories for the commands.
type reader struct {
	con      *console.Console
	registry *agent.Registry
	noted    map[string]bool // the directories about whose signature all is said
}

// open reads a run directory, and says once where its results are not signed by the user.
func (d *reader) open(ctx context.Context, dir string, options versus.Options) (*versus.Source, error) {
	source, err := experimentcli.OpenSource(ctx, d.con, d.registry, dir, options)
	if err == nil && !d.noted[dir] {
		if d.noted == nil {
			d.noted = map[string]bool{}
		}
		d.noted[dir] = true
		experimentcli.NoteSigner(d.con, source.Signer())
	}
	return source, err
}

// report reads a run directory and builds its report.
func (d *reader) report(ctx context.Context, dir string, options versus.Options) (*versus.EvalReport, error) {
	// a report is made and printed within a second and the process ends: collecting garbage as
	// often as a server does would take a fifth of it
	debug.SetGCPercent(1600)
	debug.SetMemoryLimit(1 << 30) // beyond, it is collected more often
	source, err := d.open(ctx, dir, options)
	if err != nil {
		return nil, err
	}
	built, err := source.Report()
	return built, experimentcli.Unusable(err)
}

// options of reports, as flags.
type reportOptions struct {
	format  console.Format
	weights string
	alpha   float64
	proof   experimentcli.Proof
	flags   *pflag.FlagSet
}

const formatSARIF = "sarif"

// register adds the flags that all reports have.
func (o *reportOptions) register(flags *pflag.FlagSet, formats ...string) {
	o.format.Register(flags, "output format", formats...)
	o.format.RegisterRobot(flags)
	o.flags = flags
	flags.Float64Var(&o.alpha, "alpha", stats.DefaultAlpha, "significance level")
	o.proof.Register(flags, console.AllowDrift, console.AllowHistorical, console.AllowUnsigned)
}

// forVersus checks the flags.
func (o *reportOptions) forVersus() (versus.Options, error) {
	weights, err := judge.ParseWeights(o.weights)
	if err != nil {
		return versus.Options{}, console.Exit(console.ExitUsage, fmt.Errorf("--weights: %w", err))
	}
	if !(o.alpha > 0 && o.alpha < 1) {
		return versus.Options{}, console.Usagef("--alpha %g: must be between 0 and 1", o.alpha)
	}
	options := versus.Options{Weights: weights, Allow: o.proof.Allow.List()}
	if o.flags.Changed("alpha") { // otherwise as planned
		options.Alpha = o.alpha
	}
	return options, nil
}

// checkDelivery refuses arms of which it is not proven that their models were given everything,
// where the user asks for proof.
func (o *reportOptions) checkDelivery(agents []versus.AgentSummary) error {
	for i := range agents {
		if err := o.proof.Check(agents[i].Arm, agents[i].Treatment); err != nil {
			return err
		}
	}
	return nil
}

// print writes a report in the format that was asked for.
func (o *reportOptions) print(con *console.Console, built *versus.EvalReport) error {
	switch o.format.Value {
	case console.FormatJSON:
		return built.Robot(con.Stdout)
	case console.FormatMarkdown:
		return built.Markdown(con.Stdout)
	case formatSARIF:
		return built.SARIF(con.Stdout)
	}
	return con.Folded(built.Text)
}
