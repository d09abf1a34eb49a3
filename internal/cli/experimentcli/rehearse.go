package experimentcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/scratch"
)

// DryRun checks everything that costs nothing: whether every arm's model is given what the arm
// brings, and in what the arms differ. Nothing is written.
func DryRun(ctx context.Context, r *Run) error {
	if err := r.refuseSame(); err != nil {
		return err
	}
	r.describeOnly()
	machine := r.Machine
	if r.Fleet != nil {
		machine = r.thisMachine()
	}
	return r.rehearseOn(ctx, machine)
}

// thisMachine is the machine of the coordinator of a fleet, with its own agents.
func (r *Run) thisMachine() *local.Machine {
	return &local.Machine{
		Registry: r.Machine.Registry,
		Host:     r.Machine.Host,
		Prices:   r.Machine.Prices,
		Redactor: r.Machine.Redactor,
		Now:      r.Machine.Now,
		Engines:  r.Machine.Engines,

		OutputLimit: r.Machine.OutputLimit,
	}
}

// rehearseOn rehearses the arms with an executor of its own. The arms of a fleet are rehearsed
// where this machine has their agents.
func (r *Run) rehearseOn(ctx context.Context, machine *local.Machine) error {
	dir, err := scratch.Make("", "fit-rehearsal-")
	if err != nil {
		return err
	}
	executor, err := local.New(ctx, local.Config{
		Prepared:  r.Prepared,
		Machine:   machine,
		Artefacts: nowhere(dir.Path),
		Work:      filepath.Join(dir.Path, "work"),
	})
	switch {
	case err == nil:
		err = errors.Join(r.rehearse(ctx, executor), executor.Close())
	case r.Fleet != nil && ctx.Err() == nil:
		fmt.Fprintf(r.Console.Stderr, "note: no dry run of the arms, because they cannot start here: %v\n", err)
		err = nil
	}
	return startError(ctx, errors.Join(err, dir.Remove()))
}

// nowhere is the place for the artefacts of attempts that are not made.
type nowhere string

// AttemptDir implements experiment.Sink.
func (n nowhere) AttemptDir(runDir string) string { return filepath.Join(string(n), runDir) }

// Keep implements experiment.Sink.
func (nowhere) Keep(string) error { return nil }

// refuseSame refuses arms that are the same as the baseline, unless that is what is asked for.
func (r *Run) refuseSame() error {
	same := r.Prepared.Same()
	if same == nil || r.Proof.Allow.Has(console.AllowSame) {
		return nil
	}
	return console.Exitf(console.ExitUsage, "arms %s and %s are the same: the same agent, model and settings, and "+
		"skills and files with the same content; change what you want to compare, or ask for a comparison of an "+
		"agent with itself (A/A) with --allow same", r.Prepared.Arms[0].Name, same.Name)
}

// rehearse starts every arm once against a scripted model, and says in what the arms differ.
func (r *Run) rehearse(ctx context.Context, executor *local.Executor) error {
	if executor.Offline() {
		return nil // nothing will be spent, and a record may come from a version without rehearsals
	}
	found, err := executor.Rehearse(ctx, cmp.Or(r.Workers, defaultWorkers()))
	switch {
	case errors.As(err, new(*local.RefusedError)):
		return console.Exitf(console.ExitUsage, "%w\nnothing was spent", err)
	case err != nil && ctx.Err() == nil:
		return console.Exitf(console.ExitIncomplete, "%w\nnothing was started; no cell can run with this setup", err)
	case err != nil:
		return err
	}
	for _, warning := range slices.Concat(found.Unknown, found.Warnings) {
		fmt.Fprintf(r.Console.Stderr, "warning: %s\n", r.Machine.Redactor.String(warning))
	}
	for i := range found.Pairs {
		r.showPair(&found.Pairs[i])
	}
	if r.Dir != nil {
		if err := found.Write(r.Dir.Path, r.Machine.Redactor); err != nil {
			return err
		}
	}
	if r.Proof.RequireDelivery && len(found.Unknown) > 0 {
		return console.Exitf(console.ExitUsage, "--require-delivery: %s\nnothing was spent",
			r.Machine.Redactor.String(found.Unknown[0]))
	}
	if len(found.Problems) > 0 {
		return console.Exitf(console.ExitUsage, "%s\nnothing was spent",
			r.Machine.Redactor.String(strings.Join(found.Problems, "\n")))
	}
	return nil
}

const (
	shownDifferences = 4  // of two arms
	shownValue       = 60 // runes of what differs
)

// showPair says in what an arm differs from the baseline.
func (r *Run) showPair(pair *experiment.ArmPair) {
	who := pair.Baseline + " and " + pair.Arm
	if len(pair.Differences) == 0 {
		fmt.Fprintf(r.Console.Stderr, "arms %s: nothing in their first requests differs\n", who)
		return
	}
	var shown []string
	for _, d := range pair.Differences {
		if d.Cause != "skills" && d.Cause != "instructions" { // their pieces are in the list
			shown = append(shown, describe(d))
		}
	}
	if more := len(shown) - shownDifferences; more > 0 {
		shown = append(shown[:shownDifferences], fmt.Sprintf("and %d more (%s)", more, experiment.TreatmentFile))
	}
	fmt.Fprintf(r.Console.Stderr, "arms %s differ in %s\n", who,
		r.Machine.Redactor.String(strings.Join(shown, "; ")))
}

// describe names a difference in a few words.
func describe(d experiment.ArmDifference) string {
	switch {
	case d.Cause == experiment.CauseAgent:
		return d.What + " (comes with " + d.Cause + ")"
	case d.Before == "" && d.After == "":
		return d.What
	case d.Before == "":
		return fmt.Sprintf("%s (%s)", d.What, short(d.After))
	case d.After == "":
		return fmt.Sprintf("%s (without %s)", d.What, short(d.Before))
	default:
		return fmt.Sprintf("%s (%s → %s)", d.What, short(d.Before), short(d.After))
	}
}

func short(text string) string { return display.CutRunes(text, shownValue) }

// ShowPlan shows what a run would do.
func ShowPlan(con *console.Console, plan *experiment.Plan, output string) {
	fmt.Fprintf(con.Stdout, "experiment %s in %s: %s × %s × %s\n", plan.ID, output,
		report.Count(len(plan.Tasks), "task"), report.Count(len(plan.Arms), "arm"), report.Count(plan.Runs, "run"))
	if part := plan.Part(); part != "" {
		fmt.Fprintln(con.Stdout, display.Line(part))
	}
	for _, arm := range plan.Arms {
		fmt.Fprintf(con.Stdout, "arm %s: %s\n", arm.Name,
			strings.TrimSpace(arm.Agent+" "+arm.AgentVersion+" "+arm.Model))
	}
	if plan.Judge.Agent != "" {
		fmt.Fprintf(con.Stdout, "judge: %s\n", plan.Judge)
	}
}
