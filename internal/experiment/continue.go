package experiment

import (
	"cmp"
	"math"
	"time"

	"github.com/fit-eval/fit/ledger"
)

// unforeseen stands for a limit that must be larger, by nobody knows how much.
const unforeseen = -1

// spare is how much more than expected a budget gets that was too small.
const spare = 1.1

// Sufficient returns budgets with which an experiment that a budget stopped can be continued to its
// end: those that are smaller than what is spent and what the cells that are left probably need are
// raised, to a negative number where nothing has shown yet what a cell needs. A budget in dollars
// that cannot be kept, because prices are unknown, becomes one in tokens.
func (p *Plan) Sufficient(budgets Budgets, records []ledger.Record, probes []Probe) Budgets {
	spent := newSpending()
	for i := range probes {
		spent.probed(&probes[i])
	}
	for i := range records {
		spent.add(&records[i])
	}
	left := p.left(records)
	usd, tokens, unpriced := spent.total()
	whole, rest := need{usd: usd, tokens: float64(tokens)}, need{}
	var arm, armRest need // of the arm that needs the most
	var wall, wallRest float64
	for _, planned := range p.Arms {
		a := spent.arm(planned.Name)
		expected, _, _ := spent.expect(a, p.Cell)
		cells := float64(left[planned.Name])
		own := need{usd: cells * expected.usd, tokens: cells * expected.tokens}
		rest.usd, rest.tokens = rest.usd+own.usd, rest.tokens+own.tokens
		myUSD, myTokens := spent.accounts.spentBy(planned.Name)
		arm.usd, armRest.usd = larger(arm.usd, armRest.usd, myUSD, own.usd)
		arm.tokens, armRest.tokens = larger(arm.tokens, armRest.tokens, float64(myTokens), own.tokens)
		each := a.wall.Seconds() / float64(max(1, attemptsAt(records, planned.Name)))
		wall, wallRest = larger(wall, wallRest, a.wall.Seconds(), each*cells)
	}
	budgets.Experiment.raise(whole, rest, unpriced > 0)
	budgets.Arm.raise(arm, armRest, unpriced > 0)
	if budgets.Arm.Wall > 0 {
		budgets.Arm.Wall = time.Duration(math.Ceil(raised(budgets.Arm.Wall.Seconds(), wall, wallRest))) * time.Second
	}
	return budgets
}

// left counts the cells of each arm that have no verdict.
func (p *Plan) left(records []ledger.Record) map[string]int {
	done := map[ledger.Cell]bool{}
	for i := range records {
		done[records[i].Cell()] = done[records[i].Cell()] || records[i].Verdict != ledger.Error
	}
	left := map[string]int{}
	for _, cell := range p.Cells() {
		if !done[cell.Key()] {
			left[cell.Arm]++
		}
	}
	return left
}

func attemptsAt(records []ledger.Record, arm string) (n int) {
	for i := range records {
		if records[i].Arm == arm {
			n++
		}
	}
	return n
}

// larger returns the pair whose sum is larger.
func larger(spent, rest, otherSpent, otherRest float64) (float64, float64) {
	if otherSpent+otherRest > spent+rest {
		return otherSpent, otherRest
	}
	return spent, rest
}

// raise makes the limits large enough for what is spent and what is left.
func (b *Budget) raise(spent, rest need, unpriced bool) {
	if b.USD > 0 && unpriced {
		b.USD, b.Tokens = 0, cmp.Or(b.Tokens, 1)
	}
	b.USD = math.Ceil(100*raised(b.USD, spent.usd, rest.usd)-1e-6) / 100
	b.Tokens = int64(math.Ceil(raised(float64(b.Tokens), spent.tokens, rest.tokens) - 1e-6))
}

// raised returns a limit that is large enough; 0 limits nothing.
func raised(limit, spent, rest float64) float64 {
	switch {
	case limit <= 0:
		return 0
	case rest <= 0:
		return unforeseen
	case limit < spare*(spent+rest):
		return spare * (spent + rest)
	}
	return limit
}
