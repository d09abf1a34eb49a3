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
		experimentcli.NoteSigner(d.con, source.Signer(experimentcli.OwnKey(d.con)))
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
	robot   bool
	format  console.Choice
	weights string
	alpha   float64
	allow   console.Allow

	requireDelivery bool
}

// The formats of reports.
const (
	formatTable    = "table"
	formatJSON     = "json"
	formatMarkdown = "md"
	formatSARIF    = "sarif"
)

func newReportOptions() reportOptions {
	return reportOptions{format: console.Choice{
		Value:   formatTable,
		Choices: []string{formatTable, formatJSON, formatMarkdown, formatSARIF},
	}}
}

// forVersus checks the flags.
func (o *reportOptions) forVersus() (versus.Options, error) {
	if o.robot && (o.format.Value == formatMarkdown || o.format.Value == formatSARIF) {
		return versus.Options{}, console.Usagef("--robot prints JSON, --format %s does not; use one of them",
			o.format.Value)
	}
	weights, err := judge.ParseWeights(o.weights)
	if err != nil {
		return versus.Options{}, console.Exit(console.ExitUsage, fmt.Errorf("--weights: %w", err))
	}
	if !(o.alpha > 0 && o.alpha < 1) {
		return versus.Options{}, console.Usagef("--alpha %g: must be between 0 and 1", o.alpha)
	}
	return versus.Options{Weights: weights, Alpha: o.alpha, Allow: o.allow.List()}, nil
}

const requireDeliveryUsage = "exit 2 unless delivery is proven: every run was given what its arm brings"

// registerProof adds the flags about what a claim rests on.
func (o *reportOptions) registerProof(flags *pflag.FlagSet) {
	flags.BoolVar(&o.requireDelivery, "require-delivery", false, requireDeliveryUsage)
	o.allow.Register(flags, console.AllowDrift)
}

// checkDelivery refuses arms of which it is not proven that their models were given everything,
// where the user asks for proof.
func (o *reportOptions) checkDelivery(agents []versus.AgentSummary) error {
	if !o.requireDelivery {
		return nil
	}
	for i := range agents {
		if why := agents[i].Treatment.Undelivered(); why != "" {
			return console.Usagef("--require-delivery: %s: %s", agents[i].Arm, why)
		}
	}
	return nil
}

// print writes a report in the format that was asked for.
func (o *reportOptions) print(con *console.Console, built *versus.EvalReport) error {
	switch {
	case o.robot || o.format.Value == formatJSON:
		return built.Robot(con.Stdout)
	case o.format.Value == formatMarkdown:
		return built.Markdown(con.Stdout)
	case o.format.Value == formatSARIF:
		return built.SARIF(con.Stdout)
	}
	return built.Text(con.Stdout)
}
