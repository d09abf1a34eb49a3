package versuscli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/report/versus"
)

// finish judges what has not been judged yet and prints the report: what "run" ends with. A report
// is printed even where judging was cut short, and "report" prints the same bytes afterwards.
func (o *runOptions) finish(ctx context.Context, con *console.Console, registry *agent.Registry, dir string) error {
	d := &reader{
		con:      con,
		registry: registry,
		noted:    map[string]bool{dir: true}, // the run has said whether it signs
	}
	var judged error
	if !o.judge.asksNobody() {
		source, err := d.open(ctx, dir, versus.Options{})
		if err != nil {
			return err
		}
		outcome, found, err := o.judge.ask(ctx, d, dir, source)
		if judged = err; found {
			fmt.Fprintf(con.Stderr, "judges: %s\n", askedText(outcome))
		} else if err == nil {
			fmt.Fprintln(con.Stderr, "judges: none were asked; name them with --panel")
		}
		if judged != nil && console.Code(judged) == console.ExitUsage {
			return judged
		}
	}
	show := reportOptions{format: o.Format, proof: o.Proof}
	built, err := d.report(context.WithoutCancel(ctx), dir, versus.Options{Allow: o.Proof.Allow.List()})
	if err == nil {
		err = show.print(con, built)
	}
	if err == nil {
		err = show.checkDelivery(built.PerAgent)
	}
	return cmp.Or(judged, err)
}
