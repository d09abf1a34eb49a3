package report

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// Load says what the machine and rate limits did to the runs of an arm.
type Load struct {
	// Concurrency is how many attempts ran at the same time at most.
	Concurrency int `json:"concurrency,omitempty"`
	// Held counts attempts whose calls the gateway held back because of rate limits, and Repeated
	// those that were tried again alone after their time ran out on an overloaded machine.
	Held     int `json:"held,omitempty"`
	Repeated int `json:"repeated,omitempty"`
	// Pressed counts runs that failed because their time ran out although they ran alone, on a
	// machine that was overloaded nevertheless.
	Pressed int `json:"pressed,omitempty"`
}

// loadOf counts over all attempts; nil where records say nothing.
func loadOf(records []ledger.Record) *Load {
	var l Load
	for i := range records {
		r := &records[i]
		l.Concurrency = max(l.Concurrency, r.Concurrency)
		if r.HeldMs > 0 {
			l.Held++
		}
		if r.ErrorCause == ledger.CausePressure {
			l.Repeated++
		}
		if r.Verdict == ledger.Fail && r.Outcome == string(session.OutcomeTimeout) && r.Waited() != "" {
			l.Pressed++
		}
	}
	if l == (Load{}) {
		return nil
	}
	return &l
}

// text says what happened; empty where nothing did.
func (l *Load) text() string {
	if l == nil {
		return ""
	}
	var parts []string
	if l.Held > 0 {
		parts = append(parts, Count(l.Held, "attempt")+" held back by rate limits")
	}
	if l.Repeated > 0 {
		parts = append(parts, Count(l.Repeated, "time limit")+" on an overloaded machine, tried again alone")
	}
	if l.Pressed > 0 {
		parts = append(parts, Count(l.Pressed, "run")+
			" failed at a time limit on a machine that other programs overloaded")
	}
	return strings.Join(parts, "; ")
}

// warnOfLoad names what load and rate limits did to the two, a shared loopback and different
// concurrency.
func warnOfLoad(a, b *Group) []string {
	var warnings []string
	if a.Load != nil && b.Load != nil {
		one, other := a.Load.Concurrency, b.Load.Concurrency
		if one > 0 && other > 0 && one != other {
			warnings = append(warnings, fmt.Sprintf("%s ran up to %s at a time and %s up to %d: on a busier machine "+
				"agents are slower and meet time limits earlier", a.Name, Count(one, "attempt"), b.Name, other))
		}
	}
	for _, g := range []*Group{a, b} {
		if network := g.Provenance.Network; network != sharedNetwork(network) {
			warnings = append(warnings, g.Name+": network "+sharedNetwork(network))
		}
		if text := g.Load.text(); text != "" {
			warnings = append(warnings, g.Name+": "+text)
		}
	}
	return warnings
}

// sharedNetwork says of the machine's network what it means for cells that ran at the same time.
func sharedNetwork(network string) string {
	if network == "host" {
		return network + " (cells of different tasks and arms share one loopback; those of a task take turns)"
	}
	return network
}
