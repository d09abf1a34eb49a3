package versus

import (
	"maps"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report/failure"
)

// cells lists every attempt that counts with evidence and verdicts.
func (b *builder) cells() []Cell {
	cells := make([]Cell, len(b.source.cells))
	for i := range cells {
		cells[i] = b.cell(i)
	}
	return cells
}

func (b *builder) cell(i int) Cell {
	attempt := &b.source.cells[i]
	run, record := attempt.Run, attempt.Record
	cell := Cell{
		Task:        record.TaskID,
		Agent:       record.Agent,
		Arm:         record.Arm,
		Run:         record.RunIndex,
		Status:      run.Status,
		Resolved:    run.Resolved(),
		Rubric:      run.Rubric,
		Judged:      judge.Scores{},
		Usage:       run.Session.Usage,
		WallClockMs: run.Efficiency.WallClockMs,
		Turns:       run.Efficiency.Turns,
		ExitCode:    run.Session.ExitCode,
		Milestones:  orEmpty(run.Session.Milestones),
		Diff: Diff{
			Files:     run.Session.Diff.Files,
			Added:     run.Session.Diff.Insertions,
			Removed:   run.Session.Diff.Deletions,
			Generated: run.Session.Diff.Generated,
		},
		Errors:    []evidence.ErrorAttribution{},
		Integrity: orEmpty(run.Session.Integrity),
		Verdicts:  []judge.PanelVerdict{},
		Unseen:    []string{},
		Treatment: record.Treatment,
		Problem:   attempt.Problem,

		Verdict:      record.Verdict,
		FailedChecks: orEmpty(failure.Checks(record)),
		Cause:        failure.CauseOf(record),
		CostUSD:      record.CostUSD,
		Directory:    record.RunDir,
		TracePath:    record.AgentTracePath,
	}
	if record.AgentError != nil {
		cell.AgentError = record.AgentError.Message
	}
	if run.Attribution != nil {
		cell.Errors = append(cell.Errors, *run.Attribution)
	}
	for _, file := range run.Files {
		if file.Edit == evidence.EditUnseen {
			cell.Unseen = append(cell.Unseen, file.Path)
		}
	}
	b.addVerdicts(i, &cell)
	cell.rerank()
	heuristic := judge.Scores{}
	for _, dimension := range evidence.Dimensions() {
		if score := run.Rubric.Of(dimension); score != nil {
			heuristic[dimension] = *score
		}
	}
	verify := run.Session.Verify
	cell.unverified = verify != nil && !verify.Passed
	weights := b.source.options.Weights
	blended := weights.Blend(heuristic, cell.Judged, cell.unverified, run.Disqualified())
	cell.PerDimension, cell.Blended, cell.Coverage = blended.PerDimension, blended.Overall, blended.Coverage
	least, most := maps.Clone(cell.Judged), maps.Clone(cell.Judged)
	for j := range cell.Verdicts {
		if verdict := &cell.Verdicts[j]; verdict.Result == nil {
			least[verdict.Dimension], most[verdict.Dimension], cell.undecided = 0, 1, true
		}
	}
	cell.least = weights.Blend(heuristic, least, cell.unverified, run.Disqualified()).Overall
	cell.most = weights.Blend(heuristic, most, cell.unverified, run.Disqualified()).Overall
	return cell
}

// addVerdicts adds what the panel says about a cell, in the order of the dimensions.
func (b *builder) addVerdicts(i int, cell *Cell) {
	if b.judgement == nil {
		return
	}
	verdicts := b.judgement.Result.Cells[i].Dimensions
	cell.Verdicts = make([]judge.PanelVerdict, 0, len(verdicts))
	for _, dimension := range evidence.Dimensions() {
		verdict, asked := verdicts[dimension]
		if !asked {
			continue
		}
		cell.Verdicts = append(cell.Verdicts, verdict)
		if score := verdict.Score(); score != nil {
			cell.Judged[dimension] = *score
		}
		for _, vote := range verdict.Votes {
			cell.DroppedClaims += vote.DroppedClaims
		}
	}
}

// rerank lets the panel decide why an attempt failed, among the causes that need an understanding
// of the change: work that resolves the root cause and leaves requirements open is incomplete.
func (c *Cell) rerank() {
	if len(c.Errors) == 0 || !evidence.Rerankable(c.Errors[0].Category) {
		return
	}
	correct, known := c.passed(evidence.Correctness)
	complete, asked := c.passed(evidence.Completeness)
	if !known || !asked || correct == 0 || complete == 1 {
		return
	}
	cause := &c.Errors[0]
	cause.Category, cause.Method, cause.Evidence = evidence.CauseIncompleteFix, evidence.MethodLLM, []string{}
	for i := range c.Verdicts {
		verdict := &c.Verdicts[i]
		if verdict.Dimension != evidence.Completeness {
			continue
		}
		cause.Confidence = float64(verdict.Fail) / float64(verdict.Pass+verdict.Fail)
		for _, vote := range verdict.Votes {
			if vote.Result != nil && *vote.Result == judge.Fail {
				cause.Evidence = append(cause.Evidence, vote.Evidence...)
			}
		}
	}
}

// passed returns the panel's result in a dimension as 1 or 0; false where there is none.
func (c *Cell) passed(dimension string) (float64, bool) {
	for i := range c.Verdicts {
		if v := &c.Verdicts[i]; v.Dimension == dimension && v.Result != nil {
			if *v.Result == judge.Pass {
				return 1, true
			}
			return 0, true
		}
	}
	return 0, false
}

// critical counts the flags that disqualify the cell.
func (c *Cell) critical() int {
	n := 0
	for i := range c.Integrity {
		if c.Integrity[i].Disqualifies() {
			n++
		}
	}
	return n
}

// orEmpty turns nil into an empty list, so that readers of JSON need not distinguish them.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
