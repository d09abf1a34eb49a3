package report

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/ledger"
)

// TestImplausibleCountsAreInTheReport: a reader learns why a cost is not known.
func TestImplausibleCountsAreInTheReport(t *testing.T) {
	a, b := treated(armRuns("a", repeat("PP", 12)...), nil), treated(armRuns("b", repeat("PF", 12)...), nil)
	b[3].Treatment.Implausible, b[3].Treatment.Miscounted = 2, "1000000000000 tokens"
	wantIn(t, strings.Join(compared(t, CompareConfig{}, a, b).Warnings, "\n"),
		"b: the model's service reported implausible numbers of tokens in 1 run, first: 1000000000000 tokens")
}

// TestASharedLoopbackIsNamed: a server that one cell starts is there for the others, too.
func TestASharedLoopbackIsNamed(t *testing.T) {
	const says = "network host (cells of different tasks and arms share one loopback; those of a task take turns)"
	for network, shared := range map[string]bool{"host": true, "model": false} {
		a, b := armRuns("a", repeat("PP", 12)...), armRuns("b", repeat("PF", 12)...)
		for i := range a {
			a[i].Network, b[i].Network = network, network
		}
		text := textOf(t, compared(t, CompareConfig{}, a, b))
		if strings.Contains(text, "a: "+says) != shared || strings.Contains(text, "b: "+says) != shared {
			t.Errorf("network %s:\n%s", network, text)
		}
	}
}

// TestDifferentConcurrencyIsNamed: two arms that ran on machines of different load are not alike,
// and what rate limits and load did to each is counted.
func TestDifferentConcurrencyIsNamed(t *testing.T) {
	a, b := treated(armRuns("a", repeat("PP", 12)...), nil), treated(armRuns("b", repeat("PF", 12)...), nil)
	for i := range a {
		a[i].Concurrency, b[i].Concurrency = 1, 8
	}
	b[0].HeldMs = 4000
	first := b[1]
	first.Verdict, first.ErrorClass, first.ErrorCause = ledger.Error, ledger.ErrorResources, ledger.CausePressure
	first.Final = false
	b[1].Attempt = 2
	b[3].Outcome, b[3].Pressure = "timeout", map[string]float64{"cpu": .9}
	warnings := strings.Join(compared(t, CompareConfig{}, a, append(b, first)).Warnings, "\n")
	wantIn(t, warnings, "a ran up to 1 attempt at a time and b up to 8")
	wantIn(t, warnings, "b: 1 attempt held back by rate limits; 1 time limit on an overloaded machine, tried again alone; "+
		"1 run failed at a time limit on a machine that other programs overloaded")
}
