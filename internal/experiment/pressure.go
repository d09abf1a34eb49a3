package experiment

import (
	"fmt"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// excuse takes a verdict back that says more about the machine than about the agent: the time ran
// out while other attempts ran and programs waited for the machine. The cell is tried again alone,
// and what it comes to then counts.
func (e *engine) excuse(r *ledger.Record, alone bool) {
	waited := r.Waited()
	if _, elsewhere := e.cfg.Executor.(remote); elsewhere || alone || waited == "" || r.Concurrency < 2 ||
		r.Verdict != ledger.Fail || r.Outcome != string(session.OutcomeTimeout) {
		return
	}
	r.Verdict, r.ErrorClass, r.ErrorCause = ledger.Error, ledger.ErrorResources, ledger.CausePressure
	r.ErrorMessage = fmt.Sprintf("the time ran out while %d attempts ran and programs waited for %s; it is tried "+
		"again alone", r.Concurrency, waited)
	r.Grade, r.Score = nil, nil
}

// excused reports whether the next attempt at a cell is made alone.
func excused(r *ledger.Record) bool {
	return r.Verdict == ledger.Error && r.ErrorCause == ledger.CausePressure
}
