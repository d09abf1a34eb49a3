package view

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/control"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/ledger"
)

// The states of a cell.
const (
	statePass    = "pass"
	stateFail    = "fail"
	stateError   = "error"
	stateRetry   = "retry" // an attempt failed, and another follows
	stateRunning = "running"
	stateWaiting = "waiting"
)

// cell is one place of the grid.
type cell struct {
	Task       string   `json:"task"`
	Arm        string   `json:"arm"`
	Run        int      `json:"run"`
	State      string   `json:"state"`
	Attempt    int      `json:"attempt"`
	Attempts   int      `json:"attempts"`
	Score      *float64 `json:"score"`
	CostUSD    *float64 `json:"costUsd"`
	Turns      int      `json:"turns"`
	DurationMs int64    `json:"durationMs"`
	Tokens     int64    `json:"tokens"`
	ErrorClass string   `json:"errorClass"`
	Why        string   `json:"why"`
	StartMs    int64    `json:"startMs"`
	Judge      string   `json:"judge"`
	Checks     string   `json:"checks"`
	Notes      int      `json:"notes,omitempty"`
	Tags       []string `json:"tags,omitempty"`
	NotStarted bool     `json:"notStarted,omitempty"`
	Of         *cellOf  `json:"of,omitempty"` // where a cell of a comparison belongs
}

// runDir returns the directory of an attempt's files in the run directory.
func (c *cell) runDir(attempt int) string {
	return experiment.Cell{Arm: c.Arm, TaskID: c.Task, RunIndex: c.Run}.RunDir(attempt)
}

// maxReason bounds the line that says why a cell did not pass.
const maxReason = 200

// grid puts the cells together: what was planned, what was recorded, what was begun.
func (s *snapshot) grid(started []experiment.Started) {
	if s.plan != nil {
		for _, planned := range s.plan.Cells() {
			s.cell(ledger.Cell{Arm: planned.Arm, TaskID: planned.TaskID, RunIndex: planned.RunIndex})
		}
	}
	last := ledger.Last(s.found.Records)
	for i := range last {
		s.cell(last[i].Cell()).record(&last[i], len(s.attempts[last[i].Cell()]))
	}
	if s.report != nil {
		for i := range s.report.Groups {
			group := &s.report.Groups[i]
			for j := range group.Tasks {
				task := &group.Tasks[j]
				for k := range task.Runs {
					run := &task.Runs[k]
					key := ledger.Cell{Arm: group.Provenance.Arm, TaskID: task.TaskID, RunIndex: run.RunIndex}
					s.cell(key).explain(run)
				}
			}
		}
	}
	for _, one := range started {
		c := s.cell(ledger.Cell{Arm: one.Arm, TaskID: one.TaskID, RunIndex: one.RunIndex})
		if one.Attempt > c.Attempt {
			c.Attempt, c.StartMs = one.Attempt, one.StartMs
			c.Attempts = max(c.Attempts, one.Attempt)
		}
	}
	arms := map[string]int{}
	for i, arm := range s.arms() {
		arms[arm] = i
	}
	slices.SortStableFunc(s.cells, func(a, b *cell) int {
		return cmp.Or(strings.Compare(a.Task, b.Task), a.Run-b.Run, arms[a.Arm]-arms[b.Arm])
	})
}

// cell returns the cell with a key, and makes it if need be.
func (s *snapshot) cell(key ledger.Cell) *cell {
	c := s.byKey[key]
	if c == nil {
		c = &cell{
			Task:  key.TaskID,
			Arm:   key.Arm,
			Run:   key.RunIndex,
			State: stateWaiting,
		}
		s.byKey[key] = c
		s.cells = append(s.cells, c)
	}
	return c
}

func (c *cell) record(r *ledger.Record, attempts int) {
	c.Attempt, c.Attempts = r.Attempt, max(attempts, r.Attempt)
	c.Score, c.CostUSD, c.Turns, c.DurationMs = r.Score, r.CostUSD, r.Turns, r.DurationMs
	c.Tokens, c.ErrorClass, c.StartMs = r.Tokens.Total(), r.ErrorClass, r.StartMs
	c.NotStarted = notStarted(r)
	switch {
	case r.Verdict == ledger.Pass:
		c.State = statePass
	case r.Verdict == ledger.Fail:
		c.State = stateFail
	case r.Final:
		c.State = stateError
	case r.ErrorClass == ledger.ErrorInterrupted:
		c.State = stateWaiting
	default:
		c.State = stateRetry
	}
	c.Why = oneLine(r.ErrorMessage)
}

// notStarted reports whether an attempt ended before its agent was started, so that its numbers say
// nothing about the agent.
func notStarted(r *ledger.Record) bool {
	nothing := r.AgentTracePath == "" && r.Treatment == nil && r.Turns == 0 && r.Tokens.Total() == 0
	return r.Verdict == ledger.Error && nothing
}

// explain adds what the report says about the run.
func (c *cell) explain(run *report.Run) {
	if (c.State == statePass || c.State == stateFail) && run.Verdict != c.State { // an audit says otherwise
		c.State, c.Score, c.ErrorClass = run.Verdict, run.Score, run.ErrorClass
		if c.State == stateFail {
			c.Why = "disqualified for a sign of cheating"
		}
	}
	checks := make([]byte, 0, len(run.Rows))
	for _, row := range run.Rows {
		switch {
		case row.Pass == nil:
			checks = append(checks, '-')
		case *row.Pass:
			checks = append(checks, 'P')
		default:
			checks = append(checks, 'F')
			if c.Why == "" && c.State == stateFail {
				c.Why = oneLine(strings.TrimSuffix(row.Check+": "+row.Message, ": "))
			}
		}
	}
	c.Checks, c.Judge = string(checks), run.Judge
	if c.Why == "" && c.State != statePass && len(run.Notes) > 0 {
		c.Why = oneLine(run.Notes[0])
	}
	if c.Why == "" && c.State == stateFail && run.Judge == ledger.Fail {
		c.Why = oneLine("judge: " + run.Summary)
	}
}

func oneLine(text string) string { return display.CutRunes(display.Line(text), maxReason) }

// arms returns the arms in the order of the plan or of the report, then those that only the ledger
// knows.
func (s *snapshot) arms() []string {
	var names []string
	if s.plan != nil {
		for _, arm := range s.plan.Arms {
			names = append(names, arm.Name)
		}
	} else if s.report != nil {
		for i := range s.report.Groups {
			if arm := s.report.Groups[i].Provenance.Arm; !slices.Contains(names, arm) {
				names = append(names, arm)
			}
		}
	}
	for _, c := range s.cells {
		if !slices.Contains(names, c.Arm) {
			names = append(names, c.Arm)
		}
	}
	return names
}

// live returns the cells with the state of running attempts. Those are what the process that works
// in the directory says: an attempt without a record may also have been interrupted.
func (s *snapshot) live(status *control.Status) []cell {
	running := map[cellName]bool{}
	if status != nil {
		for _, one := range status.Running {
			running[cellName{Task: one.Task, Arm: one.Arm, Run: one.Run}] = true
		}
	}
	cells := make([]cell, len(s.cells))
	for i, c := range s.cells {
		cells[i] = *c
		if running[*c.name()] {
			cells[i].State = stateRunning
		}
	}
	if s.at.path != "" {
		annotate(s.at.path, cells)
	}
	return cells
}

// cellsAnswer is the answer of /api/experiments/{x}/cells.
type cellsAnswer struct {
	Version int      `json:"version"`
	Tasks   []string `json:"tasks"`
	Arms    []string `json:"arms"`
	Runs    []int    `json:"runs"`
	Cells   []cell   `json:"cells"`
}

func (s *Server) cells(r *http.Request, at location) (any, error) {
	snap := s.snapshot(at)
	answer := cellsAnswer{
		Version: version,
		Tasks:   []string{},
		Arms:    append([]string{}, snap.arms()...),
		Runs:    []int{},
		Cells:   snap.live(s.pollStatus(r.Context(), at)),
	}
	for i := range answer.Cells {
		c := &answer.Cells[i]
		if n := len(answer.Tasks); n == 0 || answer.Tasks[n-1] != c.Task {
			answer.Tasks = append(answer.Tasks, c.Task)
		}
		if !slices.Contains(answer.Runs, c.Run) {
			answer.Runs = append(answer.Runs, c.Run)
		}
	}
	slices.Sort(answer.Runs)
	return answer, nil
}
