package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/fit-eval/fit/internal/report/failure"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// Task is the result of one task in a group.
type Task struct {
	TaskID  string `json:"taskId"`
	Cluster string `json:"cluster,omitempty"`
	// N counts runs with a verdict, C those that passed. Errors are runs that ended in an error,
	// Missing planned ones without a verdict.
	N       int `json:"n"`
	C       int `json:"c"`
	Errors  int `json:"errors"`
	Missing int `json:"missing"`
	// Rate is the pass rate of the task, its runs taken as independent; nil without runs.
	Rate    *stats.Interval  `json:"rate,omitempty"`
	PassAtK map[string]Value `json:"passAtK"`
	// PassAtKInterval are the limits that belong to it.
	PassAtKInterval map[string]stats.Interval `json:"passAtKInterval,omitempty"`
	// MeanScore and ScoreAtK are set for tasks with scores.
	MeanScore *float64         `json:"meanScore,omitempty"`
	ScoreAtK  map[string]Value `json:"scoreAtK,omitempty"`
	Checks    []CheckRate      `json:"checks,omitempty"`
	// Agreement measures how far the judge's votes agree, if a run has several.
	Agreement *Agreement `json:"agreement,omitempty"`
	Runs      []Run      `json:"runs,omitempty"`

	outcomes []float64
	scores   []float64
	planned  int
	absent   []int // runs without any record
}

// Value is an estimate, or the reason why there is none.
type Value struct {
	Est float64
	Err string
}

// MarshalJSON gives a number, or {"error":"k > n"}.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.Err != "" {
		return json.Marshal(map[string]string{"error": v.Err})
	}
	return json.Marshal(v.Est)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(content []byte) error {
	*v = Value{}
	if err := json.Unmarshal(content, &v.Est); err == nil {
		return nil
	}
	var reason struct {
		Error string `json:"error"`
	}
	err := json.Unmarshal(content, &reason)
	v.Err = reason.Error
	return err
}

// Run is one run of a task.
type Run struct {
	RunIndex   int           `json:"runIndex"`
	Attempt    int           `json:"attempt"`
	Verdict    string        `json:"verdict"`
	Grade      string        `json:"grade,omitempty"`
	Judge      string        `json:"judge,omitempty"`
	Score      *float64      `json:"score,omitempty"`
	CostUSD    *float64      `json:"costUsd"`
	Turns      int           `json:"turns"`
	DurationMs int64         `json:"durationMs"`
	ErrorClass string        `json:"errorClass,omitempty"`
	Summary    string        `json:"judgeSummary,omitempty"`
	Notes      []string      `json:"notes,omitempty"` // what went wrong, in words
	Rows       []failure.Row `json:"rows,omitempty"`
	TracePath  string        `json:"agentTracePath,omitempty"`
	DiffPath   string        `json:"diffPath,omitempty"`
}

func buildTask(id string, records []ledger.Record, planned []int, in Input) (Task, error) {
	t := Task{TaskID: id, PassAtK: map[string]Value{}, planned: len(records)}
	for _, run := range planned {
		if !slices.ContainsFunc(records, func(r ledger.Record) bool { return r.RunIndex == run }) {
			t.absent = append(t.absent, run)
			t.planned++
		}
	}
	scored := false
	for i := range records {
		r := &records[i]
		t.Cluster = cmp.Or(t.Cluster, r.Cluster)
		if r.Verdict == ledger.Error {
			t.Errors++
			continue
		}
		t.N++
		outcome := 0.0
		if r.Verdict == ledger.Pass {
			t.C++
			outcome = 1
		}
		t.outcomes = append(t.outcomes, outcome)
		if r.Score != nil {
			scored = true
			outcome = *r.Score
		}
		t.scores = append(t.scores, outcome)
	}
	t.Missing = t.planned - t.N
	if !scored {
		t.scores = nil
	}
	t.Checks, t.Agreement = checkRates(records), agreementOf(records)
	if in.Detail {
		for i := range records {
			t.Runs = append(t.Runs, runOf(&records[i]))
		}
	}
	return t, t.estimate(in)
}

// estimate fills in pass@k and score@k.
func (t *Task) estimate(in Input) error {
	if t.N > 0 {
		rate, err := stats.Wilson(t.C, t.N, in.Level)
		if err != nil {
			return err
		}
		t.Rate = &rate
		t.PassAtKInterval = map[string]stats.Interval{}
	}
	for _, k := range in.K {
		key := strconv.Itoa(k)
		value, err := atK(func() (float64, error) { return stats.PassAtK(t.N, t.C, k) }, t.N, k)
		if err != nil {
			return err
		}
		t.PassAtK[key] = value
		if value.Err == "" {
			if interval, err := stats.PassAtKInterval(t.N, t.C, k, in.Level); err == nil {
				t.PassAtKInterval[key] = interval
			}
		}
	}
	if t.scores == nil {
		return nil
	}
	t.MeanScore, t.ScoreAtK = new(stats.Mean(t.scores)), map[string]Value{}
	for _, k := range in.K {
		value, err := atK(func() (float64, error) { return stats.ScoreAtK(t.scores, k) }, len(t.scores), k)
		if err != nil {
			return err
		}
		t.ScoreAtK[strconv.Itoa(k)] = value
	}
	return nil
}

// atK turns "too few runs" into a value that says so.
func atK(estimate func() (float64, error), n, k int) (Value, error) {
	if k > n {
		return Value{Err: stats.ErrKExceedsN.Error()}, nil
	}
	est, err := estimate()
	if errors.Is(err, stats.ErrKExceedsN) {
		return Value{Err: stats.ErrKExceedsN.Error()}, nil
	}
	return Value{Est: est}, err
}

func runOf(r *ledger.Record) Run {
	run := Run{
		RunIndex:   r.RunIndex,
		Attempt:    r.Attempt,
		Verdict:    r.Verdict,
		Score:      r.Score,
		CostUSD:    r.CostUSD,
		Turns:      r.Turns,
		DurationMs: r.DurationMs,
		ErrorClass: r.ErrorClass,
		TracePath:  r.AgentTracePath,
		DiffPath:   r.DiffPath,
		Rows:       failure.RowsOf(r),
		Notes:      notesOf(r),
	}
	if r.Grade != nil {
		run.Grade = r.Grade.Verdict
	}
	if r.JudgeVerdict != nil {
		run.Judge, run.Summary = r.JudgeVerdict.Verdict, r.JudgeVerdict.Summary
	}
	return run
}
