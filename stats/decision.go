package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Claim is the conclusion of an experiment.
type Claim string

// The five claims.
const (
	Improved     Claim = "improved"
	Regressed    Claim = "regressed"
	Equivalent   Claim = "equivalent"
	NotProven    Claim = "not proven"
	Insufficient Claim = "insufficient"
)

// The thresholds of the claim rule.
const (
	// MinClaimTasks is the number of tasks below which nothing is claimed.
	MinClaimTasks = 10
	// MaxUsefulMDE is the detectable effect above which an experiment is called insufficient rather
	// than not proven.
	MaxUsefulMDE = 0.30
)

// Exclusion counts the runs of one arm that were planned and those left out because the environment
// failed.
type Exclusion struct {
	Excluded int `json:"excluded"`
	Planned  int `json:"planned"`
}

// Rate returns the share of planned runs left out.
func (e Exclusion) Rate() float64 { return share(e.Excluded, e.Planned) }

// Kind says in which unit the sentence of a decision speaks.
type Kind string

// The kinds of measures.
const (
	// Rate is a share of runs: differences are shown in percentage points.
	Rate Kind = "rate"
	// Score is any other number: differences are shown as they are.
	Score Kind = "score"
	// Ratio is cost, time or another positive quantity compared by CompareRatio: differences are
	// shown in per cent.
	Ratio Kind = "ratio"
)

// Measure describes what was compared, for the sentence and for what counts as better.
type Measure struct {
	// Name is the subject, "pass rate" if empty.
	Name string
	// Kind is Rate if empty, or Ratio for a ratio comparison.
	Kind          Kind
	LowerIsBetter bool
	// Candidate and Baseline name the arms in the sentence.
	Candidate, Baseline string
}

// DecideConfig says what a claim takes. The zero value is the claim rule at α = 0.05 without an
// equivalence margin.
type DecideConfig struct {
	Alpha   float64
	Measure Measure
	// AdjustedP is the p-value after correction for the other tests of the report; nil means this
	// test stands alone.
	AdjustedP *float64
	// Candidate and Baseline are the exclusions of the two arms.
	Candidate, Baseline Exclusion
	// Looks is how often the experiment was looked at, each time with the choice to continue; 0
	// means once. The p-value is multiplied by [LooksFactor].
	Looks int
	// Among is the number of planned comparisons that this one was chosen from; 0 means 1. The
	// p-value is multiplied by it.
	Among int
	// WorstCases are the same comparison with outcomes that are not known for sure filled in as
	// unfavourably as they could be, in one direction and in the other. A claim must hold in each.
	WorstCases []Comparison
	// Unsure names those outcomes for the sentence, such as "3 missing runs".
	Unsure string
	// Withheld are reasons why nothing is claimed, whatever the numbers say: not even equivalence
	// or non-inferiority. The sentence begins with them.
	Withheld []string
	// Observed says what the numbers are, if not an experiment, e.g. "not one experiment": the
	// sentence begins with it.
	Observed string
	// Remark is what readers must know in the same breath as the claim; empty is nothing.
	Remark string
	// Margin is the largest difference that does not matter; 0 makes no equivalence claim. For
	// ratios it is a logarithm.
	Margin float64
	// NonInferior is the largest difference to the disadvantage of the candidate that does not
	// matter; 0 asks nothing.
	NonInferior float64
}

// NonInferiority answers whether the candidate is at most a margin worse than the baseline.
type NonInferiority struct {
	Margin float64 `json:"margin"`
	// Limit is the least favourable difference that the data allow, for all outcomes of runs
	// without one; nil where there is no interval.
	Limit *float64 `json:"limit"`
	Shown bool     `json:"shown"`
	// Against says why it is not shown although the limit is within the margin.
	Against []string `json:"against,omitempty"`
}

// Exclusions are the counts of both arms in a decision.
type Exclusions struct {
	Candidate Exclusion `json:"candidate"`
	Baseline  Exclusion `json:"baseline"`
}

// Decision is the answer to "did it get better": a claim, the evidence for it, and one sentence.
type Decision struct {
	Claim  Claim   `json:"claim"`
	Effect float64 `json:"effect"`
	// Lo and Hi are nil where the data allow no interval.
	Lo     *float64 `json:"lo"`
	Hi     *float64 `json:"hi"`
	Level  float64  `json:"level"`
	P      float64  `json:"p"`
	PAdj   float64  `json:"pAdj"`
	EValue *float64 `json:"eValue"`
	Method string   `json:"method"`
	// Draws and Seed say what a P that is not exact was drawn with.
	Draws    int        `json:"draws,omitempty"`
	Seed     uint64     `json:"seed,omitempty"`
	Interval string     `json:"intervalMethod,omitempty"`
	NTasks   int        `json:"nTasks"`
	NRuns    int        `json:"nRuns"`
	Excluded Exclusions `json:"excluded"`
	// NUnpaired counts tasks left out because only one arm had runs.
	NUnpaired int     `json:"nUnpaired"`
	MDE       float64 `json:"mde"`
	Sentence  string  `json:"sentence"`
	// Said is the sentence in its parts.
	Said said `json:"said"`
	// NonInferior is set where a margin for it was given.
	NonInferior *NonInferiority `json:"nonInferior,omitempty"`
	// Unsure says what withholds the claim that the observed outcomes would support: outcomes that
	// are not known for sure, in words.
	Unsure string `json:"unsure,omitempty"`
	// Possible are other claims that outcomes which are not known for sure could still bring about.
	Possible []Claim `json:"possible,omitempty"`
	// Obstacles say which parts of the claim rule were not met; empty when something was claimed.
	Obstacles []string `json:"obstacles,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
}

// MethodText names the method, and what it drew by chance.
func (d *Decision) MethodText() string {
	if d.Draws == 0 {
		return d.Method
	}
	return fmt.Sprintf("%s, %d random patterns with seed %d", d.Method, d.Draws, d.Seed)
}

// Decide turns a comparison into a claim.
//
// Formula: insufficient if there are fewer than [MinClaimTasks] tasks or there is no interval.
// Otherwise improved or regressed if adjusted p < α and the interval excludes 0 and nothing
// withholds the claim and the same holds in the worst case; equivalent if a margin is given and
// contains the whole interval in every worst case and nothing withholds the claim; insufficient if
// the detectable effect exceeds [MaxUsefulMDE]; else not proven. NonInferior is shown if the lower
// limit is above minus its margin in every worst case, nothing is withheld and there are as many
// tasks as for any claim. The interval for both is at the level 1−α/(tests·among·looks²), and for
// outcomes in [0, 1] the hull of that interval, the add-two interval, so that a few ties are not
// taken for sameness, and Newcombe's of gains and losses, each exact with tasks (or clusters) as
// trials, because rare large losses make the others too short.
//
// Use it for every sentence that says one arm is better.
//
// Do not use it on one of several comparisons of a report without AdjustedP: [DecideFamily].
func Decide(comparison Comparison, config DecideConfig) (Decision, error) {
	config.Alpha = cmp.Or(config.Alpha, DefaultAlpha)
	if err := config.check(comparison); err != nil {
		return Decision{}, err
	}
	decision := newDecision(comparison, config)
	decision.Obstacles = reasonsAgainst(comparison, config, decision.PAdj)
	decision.Claim = claim(comparison, config, decision.PAdj)
	if decision.Claim == Improved || decision.Claim == Regressed || decision.Claim == Equivalent {
		decision.Obstacles = nil
		if !holdsInWorstCases(decision, config) {
			decision.Claim, decision.Unsure = NotProven, config.Unsure+" could change the answer"
			decision.Obstacles = []string{decision.Unsure}
		}
	}
	decision.Possible = possible(decision, config)
	if len(config.Withheld) > 0 {
		if decision.Claim != Insufficient {
			decision.Claim = NotProven
		}
		decision.Obstacles = slices.Concat(config.Withheld, decision.Obstacles)
	}
	decision.NonInferior = nonInferior(comparison, config)
	decision.Said = say(decision, comparison, config)
	decision.Sentence = decision.Said.sentence()
	return decision, nil
}

// DecideFamily decides all comparisons of one report with Holm's correction over them.
//
// Formula: AdjustedP of each by [Holm] over the p-values of all, then [Decide].
//
// Use it once per report, for every pair of arms and every dimension in it.
//
// Do not use it for explorations that are not claimed: [BenjaminiHochberg].
func DecideFamily(comparisons []Comparison, configs []DecideConfig) ([]Decision, error) {
	if len(comparisons) != len(configs) {
		return nil, fmt.Errorf("%d comparisons but %d configurations", len(comparisons), len(configs))
	}
	ps := make([]float64, len(comparisons))
	for i, comparison := range comparisons {
		ps[i] = comparison.P
	}
	adjusted, err := Holm(ps)
	if err != nil {
		return nil, err
	}
	decisions := make([]Decision, len(comparisons))
	for i, comparison := range comparisons {
		config := configs[i]
		config.AdjustedP = &adjusted[i]
		if decisions[i], err = Decide(comparison, config); err != nil {
			return nil, fmt.Errorf("comparison %d: %w", i+1, err)
		}
	}
	return decisions, nil
}

// possible lists the claims of the worst cases, without the decision's own.
func possible(decision Decision, config DecideConfig) []Claim {
	var claims []Claim
	for _, worst := range config.WorstCases {
		found := claim(worst, config, math.Min(1, decision.factor()*worst.P))
		if (found == Improved || found == Regressed) && found != decision.Claim && !slices.Contains(claims, found) {
			claims = append(claims, found)
		}
	}
	return claims
}

// factor is by how much the p-value was adjusted.
func (d *Decision) factor() float64 {
	if d.P <= 0 {
		return 1
	}
	return math.Max(1, d.PAdj/d.P)
}

// holdsInWorstCases reports whether the claim is made in every worst case, too. The p-value of a
// worst case is adjusted by the same factor.
func holdsInWorstCases(decision Decision, config DecideConfig) bool {
	direction := math.Copysign(1, decision.Effect)
	for _, worst := range config.WorstCases {
		if decision.Claim != Equivalent && direction*worst.Est > direction*decision.Effect {
			continue // the other direction
		}
		if claim(worst, config, math.Min(1, decision.factor()*worst.P)) != decision.Claim {
			return false
		}
	}
	return true
}

func (c DecideConfig) check(comparison Comparison) error {
	if err := cmp.Or(
		checkOpenUnit("alpha", c.Alpha),
		checkNotNegative("margin", c.Margin),
		checkNotNegative("non-inferiority margin", c.NonInferior),
		checkUnit("p", comparison.P),
		checkUnit("adjusted p", *cmp.Or(c.AdjustedP, &comparison.P)),
		checkFinite("effect", comparison.Est, comparison.MDE),
	); err != nil {
		return err
	}
	for _, exclusion := range []Exclusion{c.Candidate, c.Baseline} {
		if exclusion.Excluded < 0 || exclusion.Planned < exclusion.Excluded {
			return fmt.Errorf("%d of %d planned runs excluded: the counts do not fit", exclusion.Excluded,
				exclusion.Planned)
		}
	}
	if comparison.Tasks < 1 {
		return ErrNoData
	}
	return nil
}

func newDecision(comparison Comparison, config DecideConfig) Decision {
	decision := Decision{
		Effect:    comparison.Est,
		Level:     DefaultLevel,
		P:         comparison.P,
		PAdj:      math.Min(1, *cmp.Or(config.AdjustedP, &comparison.P)*atLooks(config.Looks, config.Among)),
		EValue:    comparison.EValue,
		Method:    comparison.Method,
		Draws:     comparison.Draws,
		Seed:      comparison.Seed,
		NTasks:    comparison.Tasks,
		NRuns:     comparison.Runs,
		NUnpaired: comparison.Unpaired,
		MDE:       comparison.MDE,
		Excluded:  Exclusions{Candidate: config.Candidate, Baseline: config.Baseline},
		Warnings:  comparison.Warnings,
	}
	if interval := comparison.Interval; interval != nil {
		lo, hi := interval.Lo, interval.Hi
		decision.Lo, decision.Hi, decision.Level, decision.Interval = &lo, &hi, interval.Level, interval.Method
	}
	return decision
}

// significant follows the rule of each kind of evidence: a p-value must be below α, an e-value must
// have reached 1/α.
func significant(comparison Comparison, pAdj, alpha float64) bool {
	if comparison.EValue != nil {
		return pAdj <= alpha
	}
	return pAdj < alpha
}

func claim(comparison Comparison, config DecideConfig, pAdj float64) Claim {
	interval := comparison.Interval
	switch {
	case comparison.TooFew() != "" || interval == nil:
		return Insufficient
	case significant(comparison, pAdj, config.Alpha) && interval.Excludes(0):
		if (interval.Lo > 0) != config.Measure.LowerIsBetter {
			return Improved
		}
		return Regressed
	case config.Margin > 0 && withinMargin(comparison.limits(), config.Margin):
		return Equivalent
	case comparison.MDE > MaxUsefulMDE:
		return Insufficient
	}
	return NotProven
}

// limits returns the interval that margins are compared with; nil where the data allow none.
func (c Comparison) limits() *Interval {
	if c.Interval == nil || c.marginInterval == nil {
		return c.Interval
	}
	hull := c.Interval.hull(*c.marginInterval)
	return &hull
}

// nonInferior answers the question under the same guards as a claim; nil where nobody asked.
func nonInferior(comparison Comparison, config DecideConfig) *NonInferiority {
	if config.NonInferior == 0 {
		return nil
	}
	answer := &NonInferiority{Margin: config.NonInferior}
	answer.Against = slices.Clone(config.Withheld)
	if few := comparison.TooFew(); few != "" {
		answer.Against = append(answer.Against, few)
	}
	least := math.Inf(1)
	for _, one := range append([]Comparison{comparison}, config.WorstCases...) {
		interval := one.limits()
		if interval == nil {
			return answer
		}
		if low := interval.Lo; !config.Measure.LowerIsBetter {
			least = math.Min(least, low)
		} else {
			least = math.Min(least, -interval.Hi)
		}
	}
	answer.Limit, answer.Shown = &least, len(answer.Against) == 0 && least > -config.NonInferior
	return answer
}

func withinMargin(interval *Interval, margin float64) bool {
	return interval != nil && interval.Lo > -margin && interval.Hi < margin
}

// TooFew says that there are not enough tasks for a claim; empty where there are.
func (c Comparison) TooFew() string {
	if c.Tasks >= MinClaimTasks {
		return ""
	}
	return fmt.Sprintf("only %d of at least %d tasks", c.Tasks, MinClaimTasks)
}

func reasonsAgainst(comparison Comparison, config DecideConfig, pAdj float64) []string {
	var list []string
	if few := comparison.TooFew(); few != "" {
		list = append(list, few)
	}
	switch {
	case comparison.Interval == nil:
		list = append(list, "no confidence interval can be computed")
	case !comparison.Interval.Excludes(0):
		list = append(list, "the confidence interval includes zero")
	}
	if !significant(comparison, pAdj, config.Alpha) {
		list = append(list, fmt.Sprintf("%s = %.3g ≥ α = %g", labelP(comparison.P, pAdj), pAdj, config.Alpha))
	}
	return list
}
