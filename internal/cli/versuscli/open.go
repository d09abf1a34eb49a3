package versuscli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/judge"
	"github.com/fit-eval/fit/versus"
)

// reader reads run directories for the commands.
type reader struct {
	con      *console.Console
	registry *agent.Registry
	noted    map[string]bool // the directories about whose signature all is said
}

// open reads a run directory, and says once where its results are not signed by the user. One that
// is not there is a mistake in the call, and one that is damaged is not.
func (d *reader) open(ctx context.Context, dir string, options versus.Options) (*versus.Source, error) {
	if info, err := os.Stat(d.con.Path(dir)); err != nil || !info.IsDir() {
		return nil, console.Usagef("%s is not a run directory", dir)
	}
	options.Dialects, options.Prices = d.registry.Dialects(), d.con.Prices()
	source, err := versus.Open(ctx, d.con.Path(dir), options)
	if errors.As(err, new(*versus.NotRunDirectory)) {
		return nil, console.Exit(console.ExitUsage, err)
	}
	if err != nil && ctx.Err() == nil {
		return nil, console.Exit(console.ExitIncomplete, err)
	}
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
	return built, unusable(err)
}

// unusable is what a command ends with whose run directory cannot be used. A mistake in a file that
// people write is one of the call.
func unusable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*document.Error)):
		return console.Exit(console.ExitUsage, err)
	}
	return console.Exit(console.ExitIncomplete, err)
}

// options of reports, as flags.
type reportOptions struct {
	robot   bool
	format  console.Choice
	weights string
	alpha   float64
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
		return versus.Options{}, console.Usagef("--robot prints JSON, --format %s does not; give one of them",
			o.format.Value)
	}
	weights, err := judge.ParseWeights(o.weights)
	if err != nil {
		return versus.Options{}, console.Exit(console.ExitUsage, fmt.Errorf("--weights: %w", err))
	}
	if !(o.alpha > 0 && o.alpha < 1) {
		return versus.Options{}, console.Usagef("--alpha %g: want a number between 0 and 1", o.alpha)
	}
	return versus.Options{Weights: weights, Alpha: o.alpha}, nil
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
