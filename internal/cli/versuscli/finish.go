package versuscli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/report/versus"
)

// finishOptions say how a run ends.
type finishOptions struct {
	judge           judgeOptions
	robot           bool
	allow           console.Allow
	requireDelivery bool
}

// finish judges what has not been judged yet and prints the report: what "run" ends with. A report
// is printed even where judging was cut short, and "report" prints the same bytes afterwards.
func finish(ctx context.Context, con *console.Console, registry *agent.Registry, dir string, opts finishOptions) error {
	d := &reader{
		con:      con,
		registry: registry,
		noted:    map[string]bool{dir: true}, // the run has said whether it signs
	}
	var judged error
	if !opts.judge.asksNobody() {
		source, err := d.open(ctx, dir, versus.Options{})
		if err != nil {
			return err
		}
		outcome, found, err := opts.judge.ask(ctx, d, dir, source)
		if judged = err; found {
			fmt.Fprintf(con.Stderr, "judges: %s\n", askedText(outcome))
		} else if err == nil {
			fmt.Fprintln(con.Stderr, "judges: none were asked; name them with --panel")
		}
		if judged != nil && console.Code(judged) == console.ExitUsage {
			return judged
		}
	}
	show := newReportOptions()
	show.robot, show.requireDelivery = opts.robot, opts.requireDelivery
	built, err := d.report(context.WithoutCancel(ctx), dir, versus.Options{Allow: opts.allow.List()})
	if err == nil {
		err = show.print(con, built)
	}
	if err == nil {
		err = show.checkDelivery(built.PerAgent)
	}
	return cmp.Or(judged, err)
}
