package experiment

import (
	"fmt"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// Budgets limit what an experiment spends. The budget of a cell is part of the plan, because it
// decides how far an agent gets; these two may be raised when an experiment is continued.
type Budgets struct {
	// Arm bounds each arm: dollars, tokens, and the sum of the durations of its attempts.
	Arm Budget
	// Experiment limits the whole experiment: dollars, tokens, and the time of this process.
	Experiment Budget
}

// spending adds up what was spent, by arm. Attempts that failed have cost money, too.
type spending map[string]*armSpending

type armSpending struct {
	usd      float64
	tokens   int64
	wall     time.Duration
	unpriced int       // attempts that consumed tokens at an unknown price
	costs    []float64 // of attempts that ended with a verdict, sorted
	used     []float64 // tokens of those, sorted
	inFlight int
	reserved reservation
}

type reservation struct {
	usd    float64
	tokens float64
}

func (s spending) arm(name string) *armSpending {
	a := s[name]
	if a == nil {
		a = &armSpending{}
		s[name] = a
	}
	return a
}

func (s spending) add(r *ledger.Record) {
	a := s.arm(r.Arm)
	a.wall += time.Duration(r.DurationMs) * time.Millisecond
	tokens := r.Tokens.Total()
	a.charge(r.CostUSD, tokens, tokens > 0 || r.Tokens == nil && r.Verdict != ledger.Error)
	if r.Verdict == ledger.Error {
		return
	}
	if r.CostUSD != nil {
		a.costs = insertSorted(a.costs, *r.CostUSD)
	}
	if r.Tokens != nil {
		a.used = insertSorted(a.used, float64(tokens))
	}
}

// probed adds a probe. It says nothing about what a cell costs.
func (s spending) probed(p *Probe) {
	tokens := p.Tokens.Total()
	s.arm(p.Who).charge(p.CostUSD, tokens, tokens > 0)
}

// charge adds a cost; nil is unknown, which counts if something was used.
func (a *armSpending) charge(usd *float64, tokens int64, used bool) {
	a.tokens += tokens
	switch {
	case usd != nil:
		a.usd += *usd
	case used:
		a.unpriced++
	}
}

func insertSorted(values []float64, value float64) []float64 {
	at, _ := slices.BinarySearch(values, value)
	return slices.Insert(values, at, value)
}

// total sums over the arms.
func (s spending) total() (usd float64, tokens int64, unpriced int) {
	for _, a := range s {
		usd, tokens, unpriced = usd+a.usd, tokens+a.tokens, unpriced+a.unpriced
	}
	return usd, tokens, unpriced
}

// Spent is the cost of attempts and probes.
type Spent struct {
	USD    float64
	Tokens int64
}

// Spent returns what every arm has spent in this directory.
func (d *Directory) Spent() map[string]Spent {
	spent := map[string]Spent{}
	for name, arm := range d.spent {
		spent[name] = Spent{USD: arm.usd, Tokens: arm.tokens}
	}
	return spent
}

// held returns what the attempts in flight may still need. Those that were started before anything
// was known are valued at what is known now.
func (s spending) held(cell Budget) reservation {
	var sum reservation
	for _, a := range s {
		held := s.heldBy(a, cell)
		sum.usd, sum.tokens = sum.usd+held.usd, sum.tokens+held.tokens
	}
	return sum
}

func (s spending) heldBy(a *armSpending, cell Budget) reservation {
	expected, _, _ := s.expect(a, cell)
	n := float64(a.inFlight)
	return reservation{usd: max(a.reserved.usd, n*expected.usd), tokens: max(a.reserved.tokens, n*expected.tokens)}
}

// p90 returns the value that nine of ten did not exceed.
func p90(sorted []float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*9/10)]
}

// expect returns what the next cell of an arm may need: what nine of ten cells of the arm needed,
// else what a cell is allowed, else what cells of other arms needed, which is a guess, or else
// unknown.
func (s spending) expect(a *armSpending, cell Budget) (expected reservation, usdKnown, tokensKnown bool) {
	expected = reservation{usd: p90(a.costs), tokens: p90(a.used)}
	usdKnown, tokensKnown = len(a.costs) > 0, len(a.used) > 0
	for _, other := range s {
		if len(a.costs) == 0 {
			expected.usd = max(expected.usd, p90(other.costs))
		}
		if len(a.used) == 0 {
			expected.tokens = max(expected.tokens, p90(other.used))
		}
	}
	if !usdKnown && cell.USD > 0 {
		expected.usd, usdKnown = cell.USD, true
	}
	if !tokensKnown && cell.Tokens > 0 {
		expected.tokens, tokensKnown = float64(cell.Tokens), true
	}
	return expected, usdKnown, tokensKnown
}

// launch says whether the next cell of an arm may start.
type launch int

const (
	launchYes     launch = iota
	launchWait           // until one in flight has shown what such a cell costs
	launchNever          // the arm's budget is used up
	launchStopped        // the experiment's is
)

// allow decides whether a cell may start and reserves what it will need. The text says why not.
func (s spending) allow(arm string, budgets Budgets, cell Budget, elapsed time.Duration) (launch, reservation,
	string,
) {
	a := s.arm(arm)
	expected, usdKnown, tokensKnown := s.expect(a, cell)
	usd, tokens, unpriced := s.total()
	held, mine := s.held(cell), s.heldBy(a, cell)
	whole, own := budgets.Experiment, budgets.Arm
	if (whole.USD > 0 || own.USD > 0) && unpriced > 0 {
		return launchStopped, reservation{},
			"the price of the model is unknown, so a budget in dollars cannot be kept; give the budget in tokens, or " +
				"a price file (FIT_PRICES)"
	}
	if whole.Wall > 0 && elapsed >= whole.Wall {
		return launchStopped, reservation{}, fmt.Sprintf(
			"the experiment's time of %s is used up%s",
			whole.Wall,
			LargerBudget,
		)
	}
	if (whole.USD > 0 || own.USD > 0) && !usdKnown && a.inFlight > 0 || (whole.Tokens > 0 || own.Tokens > 0) &&
		!tokensKnown && a.inFlight > 0 {
		return launchWait, reservation{}, ""
	}
	for _, bound := range []struct {
		limit, spent, held, next float64
		verdict                  launch
		text                     string
	}{
		{
			whole.USD, usd, held.usd, expected.usd, launchStopped,
			fmt.Sprintf("the experiment's budget of %s: %s are spent", display.Dollars(whole.USD),
				display.Dollars(usd)),
		},
		{
			own.USD, a.usd, mine.usd, expected.usd, launchNever,
			fmt.Sprintf("the budget of arm %s of %s: %s are spent", arm, display.Dollars(own.USD),
				display.Dollars(a.usd)),
		},
		{
			float64(whole.Tokens), float64(tokens), held.tokens, expected.tokens, launchStopped,
			fmt.Sprintf("the experiment's budget of %d tokens: %d are spent", whole.Tokens, tokens),
		},
		{
			float64(own.Tokens), float64(a.tokens), mine.tokens, expected.tokens, launchNever,
			fmt.Sprintf("the budget of arm %s of %d tokens: %d are spent", arm, own.Tokens, a.tokens),
		},
		{
			own.Wall.Seconds(), a.wall.Seconds(), 0, 0, launchNever,
			fmt.Sprintf("the time of arm %s of %s is used up", arm, own.Wall),
		},
	} {
		switch {
		case bound.limit <= 0 || bound.spent < bound.limit && bound.spent+bound.held+bound.next <= bound.limit:
			continue
		case bound.held > 0 && bound.spent < bound.limit && bound.spent+bound.next <= bound.limit:
			return launchWait, reservation{}, "" // attempts in flight may turn out cheaper than reserved
		case bound.spent >= bound.limit:
			return bound.verdict, reservation{}, bound.text + LargerBudget
		default:
			return bound.verdict, reservation{},
				fmt.Sprintf("%s, and the next cell needs about %s%s", bound.text, needs(bound.next), LargerBudget)
		}
	}
	a.inFlight++
	a.reserved.usd, a.reserved.tokens = a.reserved.usd+expected.usd, a.reserved.tokens+expected.tokens
	return launchYes, expected, ""
}

// LargerBudget is the advice for a budget that is used up, to be added to the error.
const LargerBudget = "; rerun the command with a larger budget to continue"

func needs(next float64) string {
	if next <= 0 {
		return "an unknown amount"
	}
	return fmt.Sprintf("%.4g", next)
}

// settle replaces a reservation with the actual spending.
func (s spending) settle(held reservation, r *ledger.Record) {
	a := s.arm(r.Arm)
	a.inFlight--
	a.reserved.usd, a.reserved.tokens = max(0, a.reserved.usd-held.usd), max(0, a.reserved.tokens-held.tokens)
	if a.inFlight == 0 {
		a.reserved = reservation{}
	}
	s.add(r)
}

// Estimate is what the rest of an experiment will need, according to what is known.
type Estimate struct {
	Cells int // still to be run
	// USD is the expected cost, and USDHigh the cost if every cell cost what nine of ten do not
	// exceed; Known is false if no cell has ended yet.
	USD     float64
	USDHigh float64
	Known   bool
	// AtMost is the limit that budgets give; 0 is none.
	AtMost float64
	Tokens int64
}

// estimate forecasts the cells that are left, by arm.
func (s spending) estimate(left map[string]int, cell Budget, budgets Budgets) Estimate {
	e := Estimate{Known: true}
	for arm, cells := range left {
		e.Cells += cells
		a := s.arm(arm)
		if len(a.costs) == 0 {
			e.Known = false
			continue
		}
		e.USD += float64(cells) * stats.Mean(a.costs)
		e.USDHigh += float64(cells) * p90(a.costs)
		e.Tokens += int64(float64(cells) * stats.Mean(a.used))
	}
	if cell.USD > 0 {
		e.AtMost = float64(e.Cells) * cell.USD
	}
	if whole := budgets.Experiment.USD; whole > 0 && (e.AtMost == 0 || whole < e.AtMost) {
		e.AtMost = whole
	}
	return e
}
