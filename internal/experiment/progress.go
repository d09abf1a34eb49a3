package experiment

import (
	"time"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// Progress is the progress of an experiment, as data; the command shows it.
type Progress struct {
	Total    int `json:"total"`
	Done     int `json:"done"` // cells with their final record, earlier processes included
	Passed   int `json:"passed"`
	Failed   int `json:"failed"`
	Errors   int `json:"errors"` // cells that ended in an error for good
	Retries  int `json:"retries"`
	InFlight int `json:"inFlight"`
	// Rate is the pass rate over all arms so far, runs of one task taken as replicates; nil before
	// the first verdict.
	Rate     *stats.Interval `json:"rate,omitempty"`
	CostUSD  float64         `json:"costUsd"`
	Unpriced int             `json:"unpriced,omitempty"` // attempts whose cost is unknown
	Tokens   int64           `json:"tokens"`
	Elapsed  time.Duration   `json:"elapsedNs"`
	// ETA is the time that is left at the pace so far; 0 is unknown.
	ETA time.Duration `json:"etaNs,omitempty"`
	// Last is the record that has just been made; nil in the first and last report.
	Last *ledger.Record `json:"-"`
}

// tally keeps the numbers of the progress.
type tally struct {
	total, done, passed, failed, errors, retries int
	doneByProcess                                int // in this process: earlier ones say nothing about the pace
	outcomes                                     map[string][]float64
	verdicts                                     int
	rate                                         *stats.Interval
	ratedAt                                      int
}

func (t *tally) end(task, verdict string) {
	t.done++
	switch verdict {
	case ledger.Pass, ledger.Fail:
		outcome := 0.0
		if verdict == ledger.Pass {
			t.passed++
			outcome = 1
		} else {
			t.failed++
		}
		t.verdicts++
		t.outcomes[task] = append(t.outcomes[task], outcome)
	default:
		t.errors++
	}
}

// interval is recomputed with each verdict at first, and later only when the number of verdicts has
// grown by a hundredth: long experiments would spend their time on it.
func (t *tally) interval() *stats.Interval {
	if t.verdicts == 0 || t.rate != nil && t.verdicts-t.ratedAt < 1+t.verdicts/100 {
		return t.rate
	}
	tasks := make([][]float64, 0, len(t.outcomes))
	for _, outcomes := range t.outcomes {
		tasks = append(tasks, outcomes)
	}
	if rate, err := stats.PassRate(tasks, stats.DefaultLevel); err == nil {
		t.rate, t.ratedAt = &rate, t.verdicts
	}
	return t.rate
}

func (e *engine) report(last *ledger.Record) {
	if e.cfg.Progress != nil {
		e.cfg.Progress(e.progress(last))
	}
}

func (e *engine) progress(last *ledger.Record) Progress {
	usd, tokens, unpriced := e.dir.spent.total()
	p := Progress{
		Total:    e.tally.total,
		Done:     e.tally.done,
		Passed:   e.tally.passed,
		Failed:   e.tally.failed,
		Errors:   e.tally.errors,
		Retries:  e.tally.retries,
		InFlight: e.inFlight,
		Rate:     e.tally.interval(),
		CostUSD:  usd,
		Tokens:   tokens,
		Unpriced: unpriced,
		Elapsed:  e.cfg.Now().Sub(e.began),
		Last:     last,
	}
	if left := p.Total - p.Done; left > 0 && e.tally.doneByProcess > 0 && !e.paused {
		p.ETA = time.Duration(float64(p.Elapsed) / float64(e.tally.doneByProcess) * float64(left))
	}
	return p
}
