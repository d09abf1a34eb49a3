package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// underPressure are the shares of the time in which programs waited for the machine from which a
// time limit says little about the agent.
var underPressure = map[string]float64{"cpu": 0.5, "memory": 0.1, "io": 0.5}

// pressures names what the programs of an attempt had to wait for; empty where they did not, or
// where the kernel does not tell.
func pressures(r *ledger.Record) string {
	var found []string
	for what, least := range underPressure {
		if share := r.Pressure[what]; share >= least {
			found = append(found, fmt.Sprintf("%s for %.0f%% of the time", what, 100*share))
		}
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// excuse takes a verdict back that says more about the machine than about the agent: the time ran
// out while other attempts ran and programs waited for the machine. The cell is tried again alone,
// and what it comes to then counts.
func (e *engine) excuse(r *ledger.Record, alone bool) {
	waited := pressures(r)
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
