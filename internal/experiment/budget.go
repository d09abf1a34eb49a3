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
	Arm Budget `json:"arm,omitzero"`
	// Experiment limits the whole experiment: dollars, tokens, and the time of this process.
	Experiment Budget `json:"experiment,omitzero"`
}

// spending is what an experiment has spent, in its accounts, and what the attempts of each arm show
// about those to come. Attempts that failed have cost money, too.
type spending struct {
	accounts *Accounts
	arms     map[string]*armSpending
}

type armSpending struct {
	wall     time.Duration
	unpriced int       // attempts that consumed tokens at an unknown price
	costs    []float64 // of attempts that ended with a verdict, sorted
	used     []float64 // tokens of those, sorted
	inFlight int
}

// need is what attempts may need.
type need struct {
	usd    float64
	tokens float64
}

func newSpending() *spending {
	return &spending{accounts: NewAccounts(), arms: map[string]*armSpending{}}
}

func (s *spending) arm(name string) *armSpending {
	a := s.arms[name]
	if a == nil {
		a = &armSpending{}
		s.arms[name] = a
	}
	return a
}

// add adds an attempt that is over.
func (s *spending) add(r *ledger.Record) {
	a := s.arm(r.Arm)
	a.wall += time.Duration(r.DurationMs) * time.Millisecond
	tokens := r.Tokens.Total()
	s.accounts.settle(r)
	if r.CostUSD == nil && (tokens > 0 || r.Tokens == nil && r.Verdict != ledger.Error) {
		a.unpriced++
	}
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
func (s *spending) probed(p *Probe) {
	tokens := p.Tokens.Total()
	s.accounts.charge(p.Who, p.CostUSD, tokens)
	if p.CostUSD == nil && tokens > 0 {
		s.arm(p.Who).unpriced++
	}
}

func insertSorted(values []float64, value float64) []float64 {
	at, _ := slices.BinarySearch(values, value)
	return slices.Insert(values, at, value)
}

// total sums over the arms.
func (s *spending) total() (usd float64, tokens int64, unpriced int) {
	usd, tokens = s.accounts.whole.Spent()
	for _, a := range s.arms {
		unpriced += a.unpriced
	}
	return usd, tokens, unpriced
}

// Accounts returns the accounts that pay for the experiment. Spending of earlier processes counts.
func (d *Directory) Accounts() *Accounts { return d.spent.accounts }

// held returns what the attempts in flight of an arm, and of all arms, may still need. Those that
// were started before anything was known are valued at what is known now.
func (s *spending) held(arm string, cell Budget) (mine, all need) {
	for name, a := range s.arms {
		expected, _, _ := s.expect(a, cell)
		rest := s.accounts.rest(name, a.inFlight, expected)
		all.usd, all.tokens = all.usd+rest.usd, all.tokens+rest.tokens
		if name == arm {
			mine = rest
		}
	}
	return mine, all
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
func (s *spending) expect(a *armSpending, cell Budget) (expected need, usdKnown, tokensKnown bool) {
	expected = need{usd: p90(a.costs), tokens: p90(a.used)}
	usdKnown, tokensKnown = len(a.costs) > 0, len(a.used) > 0
	for _, other := range s.arms {
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

// allow decides whether a cell may start. The text says why not.
func (s *spending) allow(arm string, budgets Budgets, cell Budget, elapsed time.Duration) (launch, string) {
	a := s.arm(arm)
	expected, usdKnown, tokensKnown := s.expect(a, cell)
	usd, tokens, unpriced := s.total()
	myUSD, myTokens := s.accounts.spentBy(arm)
	mine, held := s.held(arm, cell)
	whole, own := budgets.Experiment, budgets.Arm
	if (whole.USD > 0 || own.USD > 0) && unpriced > 0 {
		return launchStopped,
			"the price of the model is unknown, so a budget in dollars cannot be kept; give the budget in tokens, or " +
				"a price file (FIT_PRICES)"
	}
	if whole.Wall > 0 && elapsed >= whole.Wall {
		return launchStopped, fmt.Sprintf(
			"the experiment's time of %s is used up%s",
			whole.Wall,
			LargerBudget,
		)
	}
	if (whole.USD > 0 || own.USD > 0) && !usdKnown && a.inFlight > 0 || (whole.Tokens > 0 || own.Tokens > 0) &&
		!tokensKnown && a.inFlight > 0 {
		return launchWait, ""
	}
	for _, bound := range []struct {
		limit, spent, held, next float64
		unit                     func(float64) string
		verdict                  launch
		text                     string
	}{
		{
			whole.USD, usd, held.usd, expected.usd, display.Dollars, launchStopped,
			fmt.Sprintf("the experiment's budget of %s: %s are spent", display.Dollars(whole.USD),
				display.Dollars(usd)),
		},
		{
			own.USD, myUSD, mine.usd, expected.usd, display.Dollars, launchNever,
			fmt.Sprintf("the budget of arm %s of %s: %s are spent", arm, display.Dollars(own.USD),
				display.Dollars(myUSD)),
		},
		{
			float64(whole.Tokens), float64(tokens), held.tokens, expected.tokens, tokenCount, launchStopped,
			fmt.Sprintf("the experiment's budget of %d tokens: %d are spent", whole.Tokens, tokens),
		},
		{
			float64(own.Tokens), float64(myTokens), mine.tokens, expected.tokens, tokenCount, launchNever,
			fmt.Sprintf("the budget of arm %s of %d tokens: %d are spent", arm, own.Tokens, myTokens),
		},
		{
			own.Wall.Seconds(), a.wall.Seconds(), 0, 0, nil, launchNever,
			fmt.Sprintf("the time of arm %s of %s is used up", arm, own.Wall),
		},
	} {
		switch {
		case bound.limit <= 0 || bound.spent < bound.limit && bound.spent+bound.held+bound.next <= bound.limit:
			continue
		case bound.held > 0 && bound.spent < bound.limit && bound.spent+bound.next <= bound.limit:
			return launchWait, "" // attempts in flight may turn out cheaper than reserved
		case bound.spent >= bound.limit:
			return bound.verdict, bound.text + LargerBudget
		default:
			return bound.verdict, fmt.Sprintf("%s, and the next cell needs about %s%s", bound.text,
				needs(bound.next, bound.unit), LargerBudget)
		}
	}
	a.inFlight++
	return launchYes, ""
}

// LargerBudget is the advice for a budget that is used up, to be added to the error.
const LargerBudget = "; rerun the command with a larger budget to continue"

func needs(next float64, unit func(float64) string) string {
	if next <= 0 {
		return "an unknown amount"
	}
	return unit(next)
}

func tokenCount(n float64) string { return fmt.Sprintf("%.0f tokens", n) }

// settle adds an attempt that was in flight.
func (s *spending) settle(r *ledger.Record) {
	s.arm(r.Arm).inFlight--
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
func (s *spending) estimate(left map[string]int, cell Budget, budgets Budgets) Estimate {
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
