package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// The measures that can decide a comparison.
const (
	MeasurePass  = "pass"
	MeasureScore = "score"
)

// CompareConfig says how two groups are compared. Zero fields are as planned.
type CompareConfig struct {
	// Measure is MeasurePass or MeasureScore.
	Measure string
	Alpha   float64
	// Margin is the largest difference that does not matter; 0 makes no claim of equivalence.
	Margin float64
	// NonInferior is the non-inferiority margin of B; 0 asks nothing.
	NonInferior float64
	Seed        uint64
	// Tests is the number of comparisons that share alpha; 0 is 1. It changes what can be detected,
	// not the test.
	Tests int
	// Pairs is the number of pairs of arms that are compared; 0 is 1. If the experiment has planned
	// more, somebody has chosen these, and their p-values are corrected for all.
	Pairs int
	// Allow are the reasons to withhold a claim that are accepted, such as "drift".
	Allow []string
	// NotPlanned says what is asked for that the plan of the experiment does not ask.
	NotPlanned []string

	withholds   bool // what is not planned may claim more than what is
	otherMargin bool // the margin of non-inferiority is not the planned one
}

// Comparison is the answer to "did it get better": B against A.
type Comparison struct {
	Version int        `json:"version"`
	A       Provenance `json:"a"`
	B       Provenance `json:"b"`
	// nameA and nameB tell arms of the same name apart by their directory.
	nameA, nameB string
	Measure      string `json:"measure"`
	// NotPlanned says in what the question differs from the planned one.
	NotPlanned []string        `json:"notPlanned,omitempty"`
	RateA      *stats.Interval `json:"rateA,omitempty"`
	RateB      *stats.Interval `json:"rateB,omitempty"`
	BoundsA    *Bounds         `json:"boundsA,omitempty"`
	BoundsB    *Bounds         `json:"boundsB,omitempty"`
	Decision   stats.Decision  `json:"decision"`
	Facts
	// Differs says in what the two arms differ, as they were declared.
	Differs []string `json:"differs,omitempty"`
	// Treatment says what the models of B and of A were given.
	Treatment *Treatment `json:"treatment,omitempty"`
	// ErrorsA and ErrorsB count attempts that ended in errors, by class.
	ErrorsA map[string]int `json:"errorsA,omitempty"`
	ErrorsB map[string]int `json:"errorsB,omitempty"`
	// LimitsA and LimitsB count runs that a limit ended, by limit.
	LimitsA map[string]int `json:"limitsA,omitempty"`
	LimitsB map[string]int `json:"limitsB,omitempty"`
	// Sequential is true for a sequential analysis; the decision allows for
	// that.
	Sequential bool `json:"sequential,omitempty"`
	// Design is the estimate of the variances, for planning a larger experiment.
	Design *stats.Design `json:"design,omitempty"`
	Tasks  []TaskDelta   `json:"tasks"`
	// Cost, Time and Turns are ratios, B over A; they are shown with their intervals and claim
	// nothing.
	Cost  *Ratio `json:"cost,omitempty"`
	Time  *Ratio `json:"time,omitempty"`
	Turns *Ratio `json:"turns,omitempty"`
	// CostA and CostB are the total costs of the two groups.
	CostA *float64 `json:"costA"`
	CostB *float64 `json:"costB"`
	// JudgeA and JudgeB describe the judge; the comparison itself uses its verdicts uncorrected.
	JudgeA *JudgeReport `json:"judgeA,omitempty"`
	JudgeB *JudgeReport `json:"judgeB,omitempty"`
	// Machines says whether both arms ran on similar machines; nil if there was only one.
	Machines *Machines `json:"machines,omitempty"`
	// FlowA and FlowB count what became of the planned runs, and First is the result of first
	// attempts alone; nil where no run was retried.
	FlowA *Flow          `json:"flowA,omitempty"`
	FlowB *Flow          `json:"flowB,omitempty"`
	First *FirstAttempts `json:"firstAttempts,omitempty"`
	// Controls say what the controls of the experiment showed.
	Controls []Control `json:"controls,omitempty"`
	// SignedA and SignedB say what is signed of the ledgers.
	SignedA  *Signing `json:"signedA,omitempty"`
	SignedB  *Signing `json:"signedB,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Imported says what the files of other harnesses that this was read from cannot promise; empty
	// where fit ran everything.
	Imported string `json:"imported,omitempty"`
	// Validity is the page that says what a claim rests on.
	Validity string `json:"validity"`
	// FirstLines are said right below the sentence: what was accepted, the result of first
	// attempts, what is signed, the controls, and how many experiments there were.
	FirstLines []string `json:"-"`

	flow []string // what became of the planned runs
}

// Facts are what is known about two arms, B against A, beside the decision about them.
type Facts struct {
	// Withheld are the reasons for which nothing is claimed, whatever the numbers say.
	Withheld []Reason `json:"withheld,omitempty"`
	// Same is true where both arms are the same configuration: an A/A experiment.
	Same bool `json:"same,omitempty"`
	// Requests says in what the first requests of the two differ, as a rehearsal showed.
	Requests []RequestDifference `json:"requestDifferences,omitempty"`
	// Unsure counts the runs whose outcome is not certain. If there are any, Bounds enclose the
	// difference for all possible outcomes.
	Unsure Unsure  `json:"unsure,omitzero"`
	Bounds *Bounds `json:"bounds,omitempty"`
	// Retries says how often the arms were drawn again; nil if no run was.
	Retries *Retries `json:"retries,omitempty"`
	// FailedCalls says in how many of their runs the provider failed model calls, which were
	// repeated; nil if it failed none.
	FailedCalls *Retries `json:"failedCalls,omitempty"`
}

// TaskDelta is the difference on one task.
type TaskDelta struct {
	TaskID string  `json:"taskId"`
	NA     int     `json:"nA"`
	NB     int     `json:"nB"`
	MeanA  float64 `json:"meanA"`
	MeanB  float64 `json:"meanB"`
	Delta  float64 `json:"delta"`
	// P is Fisher's exact test on the runs of this task, PAdj the same after Holm's correction over
	// all tasks; nil without runs of both.
	P    *float64 `json:"p,omitempty"`
	PAdj *float64 `json:"pAdj,omitempty"`
}

// Compare measures B against A. The two must have worked on the same tasks; tasks that only one of
// them has are counted, and a claim holds for all outcomes that the other could have had.
func Compare(a, b *Group, cfg CompareConfig) (*Comparison, error) {
	cfg = cfg.asPlanned(a, b)
	c := &Comparison{
		NotPlanned: cfg.NotPlanned,
		Version:    Version,
		A:          a.Provenance,
		B:          b.Provenance,
		Measure:    cfg.Measure,
		CostA:      a.Totals.CostUSD,
		CostB:      b.Totals.CostUSD,
		JudgeA:     a.Judge,
		JudgeB:     b.Judge,
		ErrorsA:    a.Errors,
		ErrorsB:    b.Errors,
		LimitsA:    a.Limits,
		LimitsB:    b.Limits,
		Differs:    differing(a, b),
		SignedA:    a.Signed,
		SignedB:    b.Signed,
		Imported:   importedLine(a, b),
		FirstLines: FirstLines(a, b),
		Controls:   a.controls,
		Validity:   ValidityPage,
		FlowA:      a.Flow,
		FlowB:      b.Flow,
		First:      firstAttempts(a, b),
		flow:       flowLines(a, b),
	}
	if c.First != nil {
		c.FirstLines = append([]string{c.First.text}, c.FirstLines...)
	}
	var err error
	if c.RateA, c.BoundsA, err = a.rate(cfg.Measure); err != nil {
		return nil, err
	}
	if c.RateB, c.BoundsB, err = b.rate(cfg.Measure); err != nil {
		return nil, err
	}
	pair, err := NewPair(a, b, cfg)
	if err != nil {
		return nil, err
	}
	c.FirstLines = append(pair.AddAllowed(nil), c.FirstLines...)
	c.nameA, c.nameB = a.Name, b.Name
	c.Facts, c.Sequential, c.Treatment, c.Machines = pair.Facts, pair.Sequential, pair.Treatment, pair.Machines
	c.Decision, err = stats.Decide(pair.Comparison, pair.Config)
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", b.Name, a.Name, err)
	}
	c.Withheld = pair.Decided(&c.Decision)
	if design, _, err := stats.VarianceComponents(pair.outcomes); err == nil {
		c.Design = &design
	}
	if err := c.deltas(pair.outcomes, cfg.Measure); err != nil {
		return nil, err
	}
	c.Cost, c.Time, c.Turns = Ratios(a, b, cfg)
	c.warn(a, b, pair)
	return c, nil
}

// Differ reports whether the comparison claims that the arms differ.
func (c *Comparison) Differ() bool {
	return c.Decision.Claim == stats.Improved || c.Decision.Claim == stats.Regressed
}

// Pair is two groups that are compared, B against A, before anything is decided. Several of them
// are decided together by Claims.
type Pair struct {
	Facts
	Comparison stats.Comparison
	Config     stats.DecideConfig
	// Sequential marks a sequential analysis.
	Sequential bool
	// Allowed are reasons to withhold a claim that were found and are accepted.
	Allowed []Reason
	// Remark says in what the answer is not the planned one about pass rates.
	Remark string
	// Treatment says what the models of B and of A were given, Machines whether they ran on like
	// machines.
	Treatment *Treatment
	Machines  *Machines

	outcomes    []stats.Pair
	basis       Basis
	allow       []string
	otherMargin bool
}

// Decided returns the reasons for which nothing is claimed, those that the decision shows included.
func (p *Pair) Decided(decision *stats.Decision) []Reason {
	p.basis.Decision = decision
	if p.otherMargin {
		refuse(decision.NonInferior)
	}
	p.Withheld, _ = Withhold(p.allow, &p.basis)
	return p.Withheld
}

// Warnings say what else than the arms themselves may have made a difference: limits, retries and
// machines.
func (p *Pair) Warnings() []string {
	warnings := append(warnOfLimits(p.basis.Groups[0], p.basis.Groups[1]),
		warnOfLoad(p.basis.Groups[0], p.basis.Groups[1])...)
	for _, warning := range []string{p.Retries.warning(), p.FailedCalls.warning(), p.Machines.Warning()} {
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return warnings
}

// NewPair compares the groups as they are, B against A, and in both worst cases as well if outcomes
// are uncertain. Where it fails, as with stats.ErrNoData, the pair has everything but the
// comparison.
func NewPair(a, b *Group, cfg CompareConfig) (*Pair, error) {
	cfg = cfg.asPlanned(a, b)
	retries, failedCalls := CompareRetries(a, b), CompareFailedCalls(a, b)
	a, b = Beside(a, b)
	p := &Pair{
		Facts: Facts{
			Same:     sameArm(a, b),
			Requests: compareRequests(a, b),
			Unsure:   Unsure{A: a.unsure(), B: b.unsure()},
		},
		Treatment: treatmentOf(stats.DefaultLevel, b, a),
		Machines:  compareMachines(a, b),
	}
	first, second, added := together(a, b, cfg.Measure)
	p.Unsure.A.Unplanned, p.Unsure.A.UnplannedRuns = added[0].Unplanned, added[0].UnplannedRuns
	p.Unsure.B.Unplanned, p.Unsure.B.UnplannedRuns = added[1].Unplanned, added[1].UnplannedRuns
	p.Retries, p.FailedCalls = retries, failedCalls
	p.outcomes = PairOutcomes(first, second, nil)
	p.otherMargin = cfg.otherMargin
	p.basis, p.allow = Basis{Groups: []*Group{a, b}}, cfg.Allow
	p.basis.count(first, second, p.outcomes)
	remark := ""
	if cfg.withholds {
		p.basis.NotPlanned = cfg.NotPlanned
	} else {
		remark = notPlannedText(cfg.NotPlanned)
	}
	if cfg.Alpha > stats.DefaultAlpha {
		remark = joined("; ", remark, fmt.Sprintf("at α = %g", cfg.Alpha))
	}
	chosen := unplannedPairs(max(1, cfg.Pairs), a, b)
	if chosen > 1 {
		remark = joined("; ", remark, fmt.Sprintf("corrected for the %d comparisons of %s", a.question.pairs(),
			map[bool]string{true: "all arms", false: "the plan"}[a.Imported != ""]))
	}
	if p.Remark = remark; cfg.Measure == MeasureScore {
		p.Remark = joined("; ", "about scores", remark)
	}
	p.Withheld, p.Allowed = Withhold(cfg.Allow, &p.basis)
	p.Config = stats.DecideConfig{
		Alpha:       cfg.Alpha,
		Measure:     stats.Measure{Candidate: b.Name, Baseline: a.Name},
		Margin:      cfg.Margin,
		NonInferior: cfg.NonInferior,
		Looks:       1 + max(a.looks, b.looks),
		Among:       chosen,
		Candidate:   p.basis.Exclusions.Candidate,
		Baseline:    p.basis.Exclusions.Baseline,
		Unsure:      p.Unsure.text(),
		Withheld:    Sentences(p.Withheld),
		Observed:    observed(p.Withheld, a, b),
		Remark:      joined("; ", remark, scopeOf(a, b), p.Treatment.Remark()),
	}
	if cfg.Measure == MeasureScore {
		p.Config.Measure.Name, p.Config.Measure.Kind = "score", stats.Score
	}
	if err := p.compare(a, b, first, second, cfg); err != nil {
		why := strings.Join(append([]string{""}, p.Config.Withheld...), ": ")
		return p, fmt.Errorf("compare %s with %s%s: %w", b.Name, a.Name, why, err)
	}
	return p, nil
}

// compare compares the outcomes, and those of both worst cases.
func (p *Pair) compare(a, b *Group, first, second []Outcome, cfg CompareConfig) error {
	var err error
	if p.Comparison, err = p.test(a, b, p.outcomes, cfg); err != nil {
		return err
	}
	if p.basis.Tasks = p.Comparison.Tasks; p.Config.Unsure == "" {
		return nil
	}
	for _, fillA := range []float64{1, 0} {
		worst, err := p.test(a, b, PairOutcomes(first, second, &[2]float64{fillA, 1 - fillA}), cfg)
		if err != nil {
			return err
		}
		p.Config.WorstCases = append(p.Config.WorstCases, worst)
	}
	low, high := p.Config.WorstCases[0], p.Config.WorstCases[1]
	p.Bounds = &Bounds{Worst: low.Est, Best: high.Est}
	if low.Interval != nil && high.Interval != nil {
		p.Bounds.Lo, p.Bounds.Hi = low.Interval.Lo, high.Interval.Hi
	}
	return nil
}

// Claims collects what a report may claim, so that the chance of any false claim among them stays
// below alpha.
type Claims struct {
	comparisons []stats.Comparison
	configs     []stats.DecideConfig
	settle      []func(*stats.Decision)
}

// Add adds a comparison; settle gets the decision about it.
func (c *Claims) Add(comparison stats.Comparison, config stats.DecideConfig, settle func(*stats.Decision)) {
	c.comparisons, c.configs = append(c.comparisons, comparison), append(c.configs, config)
	c.settle = append(c.settle, settle)
}

// Decide decides about all of them together.
func (c *Claims) Decide() error {
	if len(c.comparisons) == 0 {
		return nil
	}
	decisions, err := stats.DecideFamily(c.comparisons, c.configs)
	if err != nil {
		return err
	}
	for i := range decisions {
		c.settle[i](&decisions[i])
	}
	return nil
}

// pairing collects a quantity of two groups task by task; the first is the baseline.
type pairing map[string]*stats.Pair

func (p pairing) add(side int, task, cluster string, value float64) {
	if p[task] == nil {
		p[task] = &stats.Pair{Task: task}
	}
	p[task].Cluster = cmp.Or(p[task].Cluster, cluster) // a task without any record of an arm has it of the other
	if side == 0 {
		p[task].Baseline = append(p[task].Baseline, value)
	} else {
		p[task].Candidate = append(p[task].Candidate, value)
	}
}

func (p pairing) sorted() []stats.Pair {
	var pairs []stats.Pair
	for _, id := range slices.Sorted(maps.Keys(p)) {
		pairs = append(pairs, *p[id])
	}
	return pairs
}

func outcomeOf(r *ledger.Record, measure string) (float64, bool) {
	switch {
	case r.Verdict == ledger.Error:
		return 0, false
	case measure == MeasureScore && r.Score != nil:
		return *r.Score, true
	}
	return indicator(r.Verdict == ledger.Pass), true
}

// pairUp collects a quantity of both groups task by task. A is the baseline.
func pairUp(a, b *Group, value func(side int, r *ledger.Record) (float64, bool)) []stats.Pair {
	found := pairing{}
	for side, g := range []*Group{a, b} {
		for i := range g.records {
			if v, ok := value(side, &g.records[i]); ok {
				found.add(side, g.records[i].TaskID, g.records[i].Cluster, v)
			}
		}
	}
	return found.sorted()
}

// deltas fills in the difference on every task, with its own test, corrected for the number of
// tasks.
func (c *Comparison) deltas(pairs []stats.Pair, measure string) error {
	var tested []int
	var ps []float64
	for _, pair := range pairs {
		d := TaskDelta{TaskID: pair.Task, NA: len(pair.Baseline), NB: len(pair.Candidate)}
		d.MeanA, d.MeanB = stats.Mean(pair.Baseline), stats.Mean(pair.Candidate)
		if d.NA > 0 && d.NB > 0 {
			d.Delta = d.MeanB - d.MeanA
			// outcomes that decided when to stop need a test that allows for it
			if measure == MeasurePass && !c.Sequential {
				p, err := stats.FisherExact(countPasses(pair.Candidate), d.NB, countPasses(pair.Baseline), d.NA)
				if err != nil {
					return fmt.Errorf("task %s: %w", pair.Task, err)
				}
				d.P = &p
				tested, ps = append(tested, len(c.Tasks)), append(ps, p)
			}
		}
		c.Tasks = append(c.Tasks, d)
	}
	if len(ps) == 0 {
		return nil
	}
	adjusted, err := stats.Holm(ps)
	if err != nil {
		return err
	}
	for i, at := range tested {
		c.Tasks[at].PAdj = &adjusted[i]
	}
	return nil
}

func countPasses(outcomes []float64) int {
	n := 0
	for _, o := range outcomes {
		if o == 1 {
			n++
		}
	}
	return n
}

func (c *Comparison) warn(a, b *Group, pair *Pair) {
	if a.Provenance.FamilyRevision != b.Provenance.FamilyRevision {
		c.Warnings = append(c.Warnings, "the two were measured on different revisions of the family; changed tasks "+
			"are compared as if they were the same")
	}
	c.Warnings = pair.AddAllowed(c.Warnings)
	switch differ := a.Provenance.Faults != b.Provenance.Faults; {
	case sameConfiguration(a, b) && differ && a.Provenance.Faults == "":
		c.Warnings = append(c.Warnings, "faults were injected into the model calls of the second (--faults), not of "+
			"the first: the difference measures how robust the arm is")
	case differ:
		c.Warnings = append(c.Warnings, "different faults were injected into the model calls of the two (--faults), "+
			"which confounds the comparison")
	case c.Same:
		c.Warnings = append(c.Warnings, sameText(a, b))
	}
	if a.Judge != nil && b.Judge != nil && a.Judge.Corrected != nil && b.Judge.Corrected != nil &&
		a.Judge.Corrected.Caveat != "" {
		c.Warnings = append(c.Warnings, fmt.Sprintf("the judge on %s and %s: %s", a.Name, b.Name,
			a.Judge.Corrected.Caveat))
	}
	if c.Sequential {
		c.Warnings = append(c.Warnings, "sequential analysis: the claim uses an e-process, which remains valid under "+
			"optional stopping; after an early stop, the estimated effect is biased towards the result that triggered it")
	}
	c.Warnings = slices.Concat(c.Warnings, pair.Warnings(), warningsOf(a, b), c.Decision.Warnings)
}

// sameConfiguration reports whether two groups are of the same configuration.
func sameConfiguration(a, b *Group) bool {
	return a.Provenance.ArmHash == b.Provenance.ArmHash && a.Provenance.ArmHash != ""
}

// sameArm reports whether nothing on purpose differs between two groups.
func sameArm(a, b *Group) bool {
	return sameConfiguration(a, b) && a.Provenance.Faults == b.Provenance.Faults
}

// sameText is what readers must know about two arms that are the same. It does not say that they
// differ by chance alone: the world around them was not checked.
func sameText(a, b *Group) string {
	if !oneExperiment(a, b) {
		return "both arms are the same configuration, measured in two experiments"
	}
	return "both arms are the same configuration: an A/A experiment"
}

// Pairs returns the verdicts of two groups task by task, as a pilot for planning; A is the
// baseline.
func Pairs(a, b *Group) []stats.Pair {
	return PairOutcomes(a.Passes(), b.Passes(), nil)
}
