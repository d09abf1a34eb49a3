package experiment

import (
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/ledger"
)

// TestNothingIsChargedTwice: an attempt on this machine pays its calls as they happen, one
// elsewhere is charged what its record says, and so is what no call showed.
func TestNothingIsChargedTwice(t *testing.T) {
	for name, test := range map[string]struct {
		paid float64 // by its calls
		cost float64 // in its record
		want float64
	}{
		"on this machine":            {paid: 2, cost: 2, want: 2},
		"elsewhere":                  {paid: 0, cost: 2, want: 2},
		"with more than calls show":  {paid: 1, cost: 2, want: 2},
		"with a record of less cost": {paid: 3, cost: 2, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSpending()
			cell := Cell{Arm: "a", TaskID: "t"}
			if test.paid > 0 {
				s.accounts.Attempt(cell).Charge(test.paid, 10)
			}
			s.arm("a").inFlight = 1
			s.settle(&ledger.Record{Arm: "a", TaskID: "t", Verdict: ledger.Pass, CostUSD: &test.cost})
			if usd, _, _ := s.total(); usd != test.want {
				t.Errorf("$%g are spent, want $%g", usd, test.want)
			}
			if usd, _ := s.accounts.spentBy("a"); usd != test.want {
				t.Errorf("the arm has spent $%g, want $%g", usd, test.want)
			}
		})
	}
}

// TestWhatAnAttemptHasPaidIsNotHeldAgain: an attempt in flight is expected to cost a dollar, and
// has paid most of it.
func TestWhatAnAttemptHasPaidIsNotHeldAgain(t *testing.T) {
	s, cost := newSpending(), 1.0
	s.add(&ledger.Record{Arm: "a", TaskID: "t", Verdict: ledger.Pass, CostUSD: &cost})
	budgets := Budgets{Experiment: Budget{USD: 3}}
	for range 2 {
		if verdict, why := s.allow("a", budgets, Budget{}, time.Second); verdict != launchYes {
			t.Fatalf("verdict %d: %s", verdict, why)
		}
	}
	s.accounts.Attempt(Cell{Arm: "a", TaskID: "t", RunIndex: 1}).Charge(0.9, 0)
	if mine, all := s.held("a", Budget{}); mine != all || mine.usd < 1.09 || mine.usd > 1.11 {
		t.Errorf("$%g are held by the arm, and $%g by all; want $1.10", mine.usd, all.usd)
	}
	if verdict, _ := s.allow("a", budgets, Budget{}, time.Second); verdict != launchWait {
		t.Errorf("verdict %d: a third attempt must wait", verdict)
	}
}

// TestABudgetSaysWhatTheNextCellNeeds: in the unit of the budget.
func TestABudgetSaysWhatTheNextCellNeeds(t *testing.T) {
	for name, test := range map[string]struct {
		budget Budget
		want   string
	}{
		"dollars": {Budget{USD: 0.05}, "$0.03 are spent, and the next cell needs about $0.03; rerun"},
		"tokens":  {Budget{Tokens: 2000}, "1500 are spent, and the next cell needs about 1500 tokens; rerun"},
	} {
		t.Run(name, func(t *testing.T) {
			s, cost := newSpending(), 0.03
			s.add(&ledger.Record{
				Arm:     "a",
				TaskID:  "t",
				Verdict: ledger.Pass,
				CostUSD: &cost,
				Tokens:  &ledger.UsageJSON{InputTokens: 1500},
			})
			verdict, why := s.allow("a", Budgets{Experiment: test.budget}, Budget{}, time.Second)
			if verdict != launchStopped || !strings.Contains(why, test.want) {
				t.Errorf("verdict %d: %q, want %q", verdict, why, test.want)
			}
		})
	}
}
