package experimentcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/near"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/given"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/report/versus"
	"github.com/fit-eval/fit/ledger"
)

// OpenSource reads a run directory for reports about its cells. One that is not there is a mistake
// in the call, and one that is damaged is not.
func OpenSource(ctx context.Context, con *console.Console, registry *agent.Registry, dir string,
	options versus.Options,
) (*versus.Source, error) {
	switch info, err := os.Stat(con.Path(dir)); {
	case err != nil:
		return nil, console.Exit(console.ExitUsage, err)
	case !info.IsDir():
		return nil, console.Usagef("%s is a file, not a run directory", dir)
	}
	options.Dialects, options.Prices, options.Key = registry.Dialects(), con.Prices(), OwnKey(con)
	source, err := versus.Open(ctx, con.Path(dir), options)
	if errors.As(err, new(*versus.NotRunDirectory)) {
		return nil, console.Exit(console.ExitUsage, err)
	}
	if err != nil && ctx.Err() == nil {
		return nil, console.Exit(console.ExitIncomplete, err)
	}
	return source, err
}

// Auditor returns what examines the attempts of run directories.
func Auditor(con *console.Console, registry *agent.Registry) results.Auditor {
	return results.Auditor{Dialects: registry.Dialects(), Prices: con.Prices()}
}

// Unusable is what a command ends with whose run directory cannot be used. A mistake in a file that
// people write is one of the call.
func Unusable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*document.Error)):
		return console.Exit(console.ExitUsage, err)
	}
	return console.Exit(console.ExitIncomplete, err)
}

// ShowArgs checks the arguments of show. The path of a run or of a file of it is no argument, but
// says what is meant.
func ShowArgs(command *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cobra.ExactArgs(2)(command, args)
	}
	dir, path, _ := strings.Cut(filepath.ToSlash(filepath.Clean(args[0])), "/runs/")
	parts := strings.Split(path, "/")
	for n := range parts {
		cell := strings.Join(parts[:n+1], "/")
		if _, _, _, ok := SplitCell(cell); ok {
			return console.Usagef("name the run directory and the run: %s %s %s", command.CommandPath(), dir, cell)
		}
	}
	return cobra.ExactArgs(2)(command, args)
}

// DirectoryFirst puts the run directory before the run, in whichever order they came.
func DirectoryFirst(con *console.Console, args []string) {
	if _, err := os.Stat(con.Path(args[0])); err == nil {
		return
	}
	if info, err := os.Stat(con.Path(args[1])); err == nil && info.IsDir() {
		args[0], args[1] = args[1], args[0]
	}
}

// ShowCell prints everything that is known about one run of a directory, named TASK/ARM/RUN.
func ShowCell(ctx context.Context, con *console.Console, registry *agent.Registry, dir, name string, asJSON bool,
) error {
	of, ok := CellOf(con, dir, name)
	if !ok { // it is no run's name, and what there is is named as for an unknown run
		of.TaskID = name
	}
	source, err := OpenSource(ctx, con, registry, dir, versus.Options{Cell: &of})
	var missing *versus.NoSuchCell
	if errors.As(err, &missing) {
		return noSuchCell(dir, name, missing.There)
	}
	if err != nil {
		return err
	}
	NoteSigner(con, source.Signer())
	built, err := source.Report()
	if err != nil {
		return Unusable(err)
	}
	for i := range built.Cells {
		cell := &built.Cells[i]
		if cell.Task != of.TaskID || cell.Arm != of.Arm || cell.Run != of.RunIndex {
			continue
		}
		if !asJSON {
			shown := shownCell{
				Cell:     cell,
				con:      con,
				registry: registry,
				dir:      dir,
				family:   source.Family(),
			}
			return con.Folded(func(w io.Writer) error { return shown.show(w, built.Pairs) })
		}
		encoded, err := jsonenc.Marshal(cell)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(con.Stdout, "%s\n", display.JSON(encoded))
		return err
	}
	return nil // the directory has the cell
}

func noSuchCell(dir, name string, there []ledger.Cell) error {
	if len(there) == 0 {
		return console.Usagef("%s has no runs: nothing was started there, or nothing has ended yet", dir)
	}
	var names, tasks []string
	for _, cell := range there {
		names = append(names, fmt.Sprintf("%s/%s/%d", cell.TaskID, cell.Arm, cell.RunIndex))
		tasks = append(tasks, cell.TaskID)
	}
	task, _, _, named := SplitCell(name)
	ofTask := func(task string) bool { return strings.HasPrefix(name, task+"/") }
	if tasks = slices.Compact(tasks); named && !slices.ContainsFunc(tasks, ofTask) {
		return console.Usagef("%s has no task %s%s; it has %s", dir, task, near.Question(task, tasks),
			display.CutRunes(strings.Join(tasks, ", "), 300))
	}
	for part := name; part != ""; { // those of the same arm or task first
		if nearer := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
			return !strings.HasPrefix(n, part+"/")
		}); len(nearer) > 0 {
			names = nearer
			break
		}
		part = part[:max(0, strings.LastIndexByte(part, '/'))]
	}
	return console.Usagef("%s has no run %s (TASK/ARM/RUN); it has %s", dir, name,
		display.CutRunes(strings.Join(names, ", "), 300))
}

// page writes lines; the first error stays.
type page struct {
	w   io.Writer
	err error
}

func (p *page) line(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = display.Line(text)
		}
	}
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// shownCell is a run that is shown, with where it lies.
type shownCell struct {
	*versus.Cell
	con         *console.Console
	registry    *agent.Registry
	dir, family string
}

// show begins with what most readers come for: what came out, what failed, how the agent ended, and
// where to look further.
func (s *shownCell) show(w io.Writer, pairs []versus.Pair) error {
	p := &page{w: w}
	cell := s.Cell
	p.line("%s/%s/%d · %s · %s", cell.Task, cell.Arm, cell.Run, cell.Agent, outcome(cell))
	generated := ""
	if n := cell.Diff.Generated; n > 0 {
		generated = ", and " + report.Count(n, "generated file")
	}
	if notStarted(cell) {
		p.line("the agent was not started")
	} else {
		p.line("%s · %s agent time · %s · %s, +%d −%d%s · exit code %d", report.Count(cell.Turns, "turn"),
			display.Millis(cell.WallClockMs), display.FineCost(cell.CostUSD), report.Count(cell.Diff.Files, "file"),
			cell.Diff.Added, cell.Diff.Removed, generated, cell.ExitCode)
	}
	if cell.Problem != "" {
		p.line("the run could not be read: %s", cell.Problem)
	}
	s.showFailure(p)
	s.showEnd(p)
	s.showFiles(p)
	showDetails(p, cell)
	for i := range cell.Verdicts {
		showVerdict(p, &cell.Verdicts[i])
	}
	showPairwise(p, cell, pairs)
	return p.err
}

// notStarted reports whether a run ended before its agent was started.
func notStarted(cell *versus.Cell) bool {
	return cell.Treatment == nil && cell.Verdict == ledger.Error && cell.TracePath == "" && cell.Turns == 0
}

// showDetails shows how the run is scored, what the model was given, and the evidence.
func showDetails(p *page, cell *versus.Cell) {
	p.line("\nscores (heuristic, panel, blended; coverage %.2f):", cell.Coverage)
	for _, dimension := range evidence.Dimensions() {
		p.line("  %-13s %s  %s  %s", dimension, score(cell.Rubric.Of(dimension)), scoreIn(cell.Judged, dimension),
			scoreIn(cell.PerDimension, dimension))
	}
	p.line("  %-13s %s", "overall", score(cell.Blended))
	switch {
	case notStarted(cell):
		p.line("given to the model: nothing, the agent was not started")
	case p.err == nil:
		p.err = given.Write(p.w, cell.Treatment)
	}
	for _, cause := range cell.Errors {
		p.line("cause: %s (%s, %s): %s", cause.Category, cause.Tier, cause.Method, strings.Join(cause.Evidence, "; "))
		if len(cause.Tags) > 0 {
			p.line("  also: %s", strings.Join(cause.Tags, ", "))
		}
	}
	for _, flag := range cell.Integrity {
		p.line("flag: %s (%s) at %s: %s", flag.Kind, string(flag.Severity), flag.Address(), flag.Evidence)
	}
	for _, milestone := range cell.Milestones {
		p.line("milestone: %s after %.1f s, turn %d", milestone.Kind, float64(milestone.ElapsedMs)/1000,
			milestone.TurnIndex)
	}
	for _, file := range cell.Unseen {
		p.line("unseen: no edit in the trace changed %s", file)
	}
}

func showVerdict(p *page, verdict *judge.PanelVerdict) {
	p.line("panel on %s: %s (%d Pass, %d Fail, %d abstained)", verdict.Dimension, resultText(verdict.Result),
		verdict.Pass, verdict.Fail, verdict.Abstained)
	for _, vote := range verdict.Votes {
		text := vote.Critique
		if vote.Reason != "" {
			text += " (" + vote.Reason + ")"
		}
		p.line("  %s: %s: %s", vote.Member, resultText(vote.Result), text)
		for _, item := range vote.Evidence {
			p.line("    %s", item)
		}
		if vote.DroppedClaims > 0 {
			p.line("    %d dropped: the citation does not hold", vote.DroppedClaims)
		}
	}
}

func showPairwise(p *page, cell *versus.Cell, pairs []versus.Pair) {
	for i := range pairs {
		for _, verdict := range pairs[i].Pairwise {
			if verdict.Task == cell.Task && verdict.Run == cell.Run &&
				(verdict.AgentA == cell.Arm || verdict.AgentB == cell.Arm) {
				winner := cmp.Or(verdict.Winner, "no vote counts")
				p.line("compared: %s against %s: %s", verdict.AgentA, verdict.AgentB, winner)
			}
		}
	}
}

// outcome returns the verdict of a run, and what else became of it.
func outcome(cell *versus.Cell) string {
	if cell.Problem != "" {
		return fmt.Sprintf("no verdict (the recorded %s cannot be examined)", cell.Verdict)
	}
	switch cell.Status {
	case evidence.StatusDisqualified:
		return fmt.Sprintf("disqualified (its verdict %s does not count)", cell.Verdict)
	case evidence.StatusTimeout:
		return fmt.Sprintf("%s (timeout)", cell.Verdict)
	}
	return cell.Verdict
}

func resultText(result *string) string {
	if result == nil {
		return "no verdict"
	}
	return *result
}

func score(value *float64) string {
	if value == nil {
		return "—   "
	}
	return fmt.Sprintf("%.2f", *value)
}

func scoreIn(scores judge.Scores, dimension string) string {
	if value, known := scores[dimension]; known {
		return score(&value)
	}
	return score(nil)
}
