package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// DiscordantEValue returns the evidence against "both arms win equally often" after w wins and l
// losses among discordant tasks.
//
// Formula: E = 2^{w+l}·B(½+w, ½+l)/B(½, ½), the Beta(½, ½) mixture of likelihood ratios. Under the
// null hypothesis E ≥ 1/α ever happens with probability at most α.
//
// Use it to look after every task, and stop when E ≥ 1/α.
//
// Do not use it with several runs per task ([CompareSequential]), nor multiply in a second look at
// the same task.
func DiscordantEValue(wins, losses int) (float64, error) {
	if err := checkDiscordantCounts(wins, losses); err != nil {
		return 0, err
	}
	w, l := float64(wins), float64(losses)
	evidence := math.Exp((w+l)*math.Ln2 + mathext.Lbeta(0.5+w, 0.5+l) - mathext.Lbeta(0.5, 0.5))
	return math.Min(evidence, math.MaxFloat64), nil // about a thousand wins in a row exceed what a float64 holds
}

// discordantProcess accumulates the evidence of single-run binary tasks, one task at a time. The
// zero value has seen nothing.
type discordantProcess struct {
	wins, losses int
	highest      float64
}

// Add records one task: whether the candidate and whether the baseline passed it. Tasks must come
// in an order fixed beforehand.
func (p *discordantProcess) Add(candidate, baseline bool) {
	switch {
	case candidate == baseline:
	case candidate:
		p.wins++
	default:
		p.losses++
	}
	p.highest = math.Max(p.highest, p.E())
}

// E returns the evidence now.
func (p *discordantProcess) E() float64 {
	value, _ := DiscordantEValue(p.wins, p.losses) // counts are never negative
	return value
}

// Highest returns the most evidence seen so far; 1/Highest is a p-value that may be read at any
// time.
func (p *discordantProcess) Highest() float64 { return math.Max(1, p.highest) }

// boundedProcess accumulates the evidence of per-task differences in [−1, 1], one task at a time,
// for both directions. The zero value has seen nothing.
type boundedProcess struct {
	bets    bettors
	highest float64
}

// bettors are a gambler on "better" and one on "worse".
type bettors struct {
	up, down bettor
}

func (b *bettors) bet(difference float64) {
	b.up.bet(difference)
	b.down.bet(-difference)
}

func (b *bettors) meanWealth() float64 { return (b.up.wealth() + b.down.wealth()) / 2 }

// bettor is a gambler who bets that differences are positive: λ_t = clip(S/(¼+Q), 0, ½), K_t =
// K_{t−1}(1 + λ_t d_t).
type bettor struct {
	logWealth, sum, squares float64
}

func (b *bettor) bet(difference float64) {
	stake := clamp(b.sum/(0.25+b.squares), 0, 0.5)
	b.logWealth += math.Log1p(stake * difference)
	b.sum += difference
	b.squares += difference * difference
}

// wealth is cut so that two of them can be added.
func (b *bettor) wealth() float64 { return math.Min(math.Exp(b.logWealth), math.MaxFloat64/2) }

// Add records the difference of one task, candidate minus baseline. Tasks must come in an order
// fixed beforehand, each once.
func (p *boundedProcess) Add(difference float64) error {
	if !(difference >= -1 && difference <= 1) {
		return fmt.Errorf("difference must be a number between -1 and 1, not %v", difference)
	}
	p.bets.bet(difference)
	p.highest = math.Max(p.highest, p.E())
	return nil
}

// E returns the two-sided evidence now: the mean of the wealth of a gambler on "better" and one on
// "worse".
func (p *boundedProcess) E() float64 { return p.bets.meanWealth() }

// Highest returns the most two-sided evidence seen so far; 1/Highest is a p-value that may be read
// at any time.
func (p *boundedProcess) Highest() float64 { return math.Max(1, p.highest) }

// methodConfidenceSequence names intervals that hold at all times at once.
const methodConfidenceSequence = "confidence-sequence"

// confidenceGrid is how finely candidates for the mean are tried on the way out from the observed
// one, before the limit is refined.
const confidenceGrid = 100

// boundedConfidenceSequence returns an interval for the mean of differences in [−1, 1] that may be
// read after every task.
//
// Formula: all means m for which the average wealth of two bettors on (d_t − m)/(1 + |m|) and its
// negative never reached 1/α (the bets of [boundedProcess]); searched outwards from the observed
// mean.
//
// Use it with [boundedProcess]: 0 is outside exactly when the process has stopped.
//
// Do not use it for a sample of fixed size, where it is about half as wide again as Student's t.
func boundedConfidenceSequence(differences []float64, level float64) (Interval, error) {
	if err := checkSample(differences, level); err != nil {
		return Interval{}, err
	}
	for _, difference := range differences {
		if math.Abs(difference) > 1 {
			return Interval{}, fmt.Errorf("difference must be a number between -1 and 1, not %v", difference)
		}
	}
	mean, variance := moments(differences)
	survives := func(m float64) bool { return survivesBets(differences, m, 1/(1-level)) }
	interval := Interval{
		Est:    mean,
		Lo:     searchLimit(mean, -1, survives),
		Hi:     searchLimit(mean, 1, survives),
		SE:     math.Sqrt(variance / float64(len(differences))),
		Level:  level,
		Method: methodConfidenceSequence,
	}
	return interval.cutTo(-1), nil
}

// searchLimit walks from the mean towards an end of the scale until a candidate is rejected, then
// bisects.
func searchLimit(mean, end float64, survives func(float64) bool) float64 {
	step := math.Copysign(1.0/confidenceGrid, end-mean)
	inside, outside := mean, mean
	for {
		outside += step
		if math.Abs(outside) >= 1 {
			return end
		}
		if !survives(outside) {
			break
		}
		inside = outside
	}
	for range 24 {
		if middle := (inside + outside) / 2; survives(middle) {
			inside = middle
		} else {
			outside = middle
		}
	}
	return outside
}

func survivesBets(differences []float64, mean, bound float64) bool {
	var both bettors
	for _, difference := range differences {
		both.bet((difference - mean) / (1 + math.Abs(mean)))
		if both.meanWealth() >= bound {
			return false
		}
	}
	return true
}

// discordantConfidenceSequence returns an interval for the difference of two paired pass rates that
// may be read after every task, from the wins and losses in their order (true is a win) among n
// tasks in all.
//
// Formula: all win shares θ for which the Beta(½, ½) mixture against θ, B(½+w, ½+l)/(B(½,
// ½)·θ^w·(1−θ)^l), never reached 1/α; as a difference (b+c)/n·(2θ−1), that is, given the observed
// share of discordant tasks.
//
// Use it with [discordantProcess]: 0 is outside exactly when the process has stopped.
//
// Do not use it where the share of discordant tasks is itself in question: its uncertainty is not
// in the limits (their sign is not affected).
func discordantConfidenceSequence(order []bool, n int, level float64) (Interval, error) {
	if err := checkOpenUnit("level", level); err != nil {
		return Interval{}, err
	}
	if n < 1 || len(order) > n {
		return Interval{}, fmt.Errorf("%d discordant tasks among %d", len(order), n)
	}
	low, high := 0.0, 1.0
	wins, losses := 0, 0
	for _, win := range order {
		if win {
			wins++
		} else {
			losses++
		}
		from, to := shareLimits(float64(wins), float64(losses), level)
		low, high = math.Max(low, from), math.Min(high, to)
	}
	discordant := float64(len(order)) / float64(n)
	if len(order) == 0 {
		return Interval{
			Lo:       -1,
			Hi:       1,
			Level:    level,
			Method:   methodConfidenceSequence,
			Warnings: []string{"the arms did not differ on any task"},
		}, nil
	}
	return Interval{
		Est:    float64(wins-losses) / float64(n),
		Lo:     discordant * (2*low - 1),
		Hi:     discordant * (2*high - 1),
		Level:  level,
		Method: methodConfidenceSequence,
	}.cutTo(-1), nil
}

// shareLimits solves mixture/likelihood = 1/α on both sides of the observed share by bisection; the
// likelihood falls away from its peak.
func shareLimits(wins, losses, level float64) (low, high float64) {
	mixture := mathext.Lbeta(0.5+wins, 0.5+losses) - mathext.Lbeta(0.5, 0.5)
	bound := -math.Log(1 - level)
	rejected := func(share float64) bool {
		likelihood := 0.0
		if wins > 0 {
			likelihood += wins * math.Log(share)
		}
		if losses > 0 {
			likelihood += losses * math.Log1p(-share)
		}
		return mixture-likelihood >= bound
	}
	peak := wins / (wins + losses)
	bisect := func(outside, inside float64) float64 {
		if !rejected(outside) {
			return outside
		}
		for range 60 {
			middle := (outside + inside) / 2
			if rejected(middle) {
				outside = middle
			} else {
				inside = middle
			}
		}
		return outside
	}
	return bisect(0, peak), bisect(1, peak)
}
