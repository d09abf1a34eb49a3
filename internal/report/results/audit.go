package results

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// Auditor examines attempts for cheating, in run directories that say what their tasks are.
type Auditor struct {
	// Dialects are the formats that traces may have; Prices computes costs that agents do not
	// report.
	Dialects session.Dialects
	Prices   session.Prices
}

// FindingOf returns what the evidence about an attempt means for who counts.
func FindingOf(e *evidence.Examined) report.Finding {
	return report.Finding{Cheats: e.Cheats(), Problem: e.Problem}
}

// audit examines the attempts that count. Where the tasks are not known, it returns why.
func (a Auditor) audit(ctx context.Context, ledgers []Ledger) (found map[report.Attempt]report.Finding,
	unexamined string, err error,
) {
	found = map[report.Attempt]report.Finding{}
	for i := range ledgers {
		dir := filepath.Dir(ledgers[i].Path)
		tasks, err := evidence.ReadTasks(dir, ledgers[i].tasks)
		if err != nil {
			return nil, err.Error(), nil
		}
		files := &evidence.Directory{Root: dir, Dialects: a.Dialects, Prices: a.Prices}
		last := ledger.Last(ledgers[i].Contents.Records)
		if _, err := os.Stat(filepath.Join(dir, experiment.RunsDir)); err != nil && slices.ContainsFunc(last,
			func(r ledger.Record) bool { return len(r.Artifacts) > 0 }) {
			// what another harness recorded does not rest on the traces that import-results kept
			if slices.ContainsFunc(last, func(r ledger.Record) bool { return r.Imported == nil }) {
				unexamined = "the files of its runs are not beside " + ledgers[i].Path
			}
			continue
		}
		if len(tasks) == 0 { // what would be cheating is not known, but the files must be what was recorded
			if err := files.Verify(ctx, last, func(r *ledger.Record, problem string) {
				found[report.AttemptOf(r)] = report.Finding{Problem: problem}
			}); err != nil {
				return nil, "", err
			}
			continue
		}
		examined, err := files.Examine(ctx, tasks, last)
		if err != nil {
			return nil, "", err
		}
		for j := range examined {
			found[report.AttemptOf(examined[j].Record)] = FindingOf(&examined[j])
		}
	}
	return found, unexamined, nil
}
