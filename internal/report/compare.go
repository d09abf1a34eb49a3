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

// CompareConfig says how two groups are compared.
type CompareConfig struct {
	// Measure is MeasurePass (default) or MeasureScore.
	Measure string
	Alpha   float64
	// Margin is the largest difference that does not matter; 0 makes no claim of equivalence.
	Margin float64
	Seed   uint64
	// Tests is the number of comparisons that share alpha; 0 is 1. It changes what can be detected,
	// not the test.
	Tests int
	// Allow are the reasons to withhold a claim that are accepted, such as "drift".
	Allow []string
}

func (cfg CompareConfig) withDefaults() CompareConfig {
	cfg.Measure, cfg.Alpha = cmp.Or(cfg.Measure, MeasurePass), cmp.Or(cfg.Alpha, stats.DefaultAlpha)
	return cfg
}

// Comparison is the answer to "did it get better": B against A.
type Comparison struct {
	Version  int             `json:"version"`
	A        Provenance      `json:"a"`
	B        Provenance      `json:"b"`
	Measure  string          `json:"measure"`
	RateA    *stats.Interval `json:"rateA,omitempty"`
	RateB    *stats.Interval `json:"rateB,omitempty"`
	Decision stats.Decision  `json:"decision"`
	// Withheld are the reasons for which nothing is claimed, whatever the numbers say.
	Withheld []Reason `json:"withheld,omitempty"`
	// Same is true where both arms are the same configuration: an A/A experiment.
	Same bool `json:"same,omitempty"`
	// Differs says in what the two arms differ, as they were declared.
	Differs []string `json:"differs,omitempty"`
	// Requests says in what the first requests of the two differ, as a rehearsal showed.
	Requests []RequestDifference `json:"requestDifferences,omitempty"`
	// Treatment says what the models of B and of A were given.
	Treatment *Treatment `json:"treatment,omitempty"`
	// Unsure counts the runs whose outcome is not certain. If there are any, Bounds enclose the
	// difference for all possible outcomes.
	Unsure Unsure  `json:"unsure,omitzero"`
	Bounds *Bounds `json:"bounds,omitempty"`
	// ErrorsA and ErrorsB count attempts that ended in errors, by class.
	ErrorsA map[string]int `json:"errorsA,omitempty"`
	ErrorsB map[string]int `json:"errorsB,omitempty"`
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
	Warnings []string  `json:"warnings,omitempty"`
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
// them has are left out and counted.
func Compare(a, b *Group, cfg CompareConfig) (*Comparison, error) {
	cfg = cfg.withDefaults()
	c := &Comparison{
		Version: Version,
		A:       a.Provenance,
		B:       b.Provenance,
		Measure: cfg.Measure,
		RateA:   a.PassRate,
		RateB:   b.PassRate,
		CostA:   a.Totals.CostUSD,
		CostB:   b.Totals.CostUSD,
		JudgeA:  a.Judge,
		JudgeB:  b.Judge,
		ErrorsA: a.Errors,
		ErrorsB: b.Errors,

		Machines: CompareMachines(a, b),
	}
	prepared, err := Prepare(a, b, cfg)
	if err != nil {
		return nil, err
	}
	c.Unsure, c.Bounds, c.Sequential = prepared.Unsure, prepared.Bounds, prepared.Sequential
	c.Withheld, c.Treatment, c.Differs = prepared.Withheld, prepared.Treatment, differing(a, b)
	c.Requests = CompareRequests(a, b)
	c.Decision, err = stats.Decide(prepared.Comparison, prepared.Config)
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", b.Name, a.Name, err)
	}
	pairs := prepared.pairs
	if design, _, err := stats.VarianceComponents(pairs); err == nil {
		c.Design = &design
	}
	if err := c.deltas(pairs, cfg.Measure); err != nil {
		return nil, err
	}
	c.Cost, c.Time, c.Turns = Ratios(a, b, cfg)
	c.warn(a, b, prepared)
	return c, nil
}

// Prepared is the basis of a decision about two groups. Several of them are decided together by
// stats.DecideFamily.
type Prepared struct {
	Comparison stats.Comparison
	Config     stats.DecideConfig
	Unsure     Unsure
	Bounds     *Bounds
	// Sequential marks a sequential analysis.
	Sequential bool
	// Withheld are the reasons for which nothing is claimed; Allowed were found and are accepted.
	Withheld, Allowed []Reason
	// Treatment says what the models of B and of A were given.
	Treatment *Treatment

	pairs []stats.Pair
}

// Prepare compares the groups as they are, B against A, and in both worst cases as well if outcomes
// are uncertain.
func Prepare(a, b *Group, cfg CompareConfig) (*Prepared, error) {
	cfg = cfg.withDefaults()
	withheld, allowed := Withheld(cfg.Allow, a, b)
	p, err := prepare(a, b, cfg)
	if err != nil {
		why := strings.Join(append([]string{""}, Sentences(withheld)...), ": ")
		return nil, fmt.Errorf("compare %s with %s%s: %w", b.Name, a.Name, why, err)
	}
	p.Withheld, p.Allowed, p.Treatment = withheld, allowed, CompareTreatment(b, a)
	p.Config.Withheld, p.Config.Remark = Sentences(withheld), p.Treatment.Remark()
	return p, nil
}

func prepare(a, b *Group, cfg CompareConfig) (*Prepared, error) {
	p := &Prepared{Config: stats.DecideConfig{
		Alpha:     cfg.Alpha,
		Measure:   stats.Measure{Candidate: b.Name, Baseline: a.Name},
		Margin:    cfg.Margin,
		Looks:     1 + max(a.looks, b.looks),
		Candidate: stats.Exclusion{Excluded: b.Totals.Missing, Planned: b.Totals.Planned},
		Baseline:  stats.Exclusion{Excluded: a.Totals.Missing, Planned: a.Totals.Planned},
	}}
	if cfg.Measure == MeasureScore {
		p.Config.Measure.Name, p.Config.Measure.Kind = "score", stats.Score
	}
	p.pairs = pairUp(a, b, func(r *ledger.Record) (float64, bool) { return outcomeOf(r, cfg.Measure) })
	var err error
	if p.Comparison, err = p.compare(a, b, p.pairs, cfg); err != nil {
		return nil, err
	}
	p.Unsure.A, p.Unsure.B = a.unsure(), b.unsure()
	if p.Config.Unsure = p.Unsure.text(); p.Config.Unsure == "" {
		return p, nil
	}
	for _, fillA := range []float64{1, 0} {
		worst, err := p.compare(a, b, filledPairs(a, b, cfg.Measure, fillA, 1-fillA), cfg)
		if err != nil {
			return nil, err
		}
		p.Config.WorstCases = append(p.Config.WorstCases, worst)
	}
	p.Bounds = &Bounds{
		Worst: p.Config.WorstCases[0].Est,
		Best:  p.Config.WorstCases[1].Est,
	}
	if low, high := p.Config.WorstCases[0].Interval, p.Config.WorstCases[1].Interval; low != nil && high != nil {
		p.Bounds.Lo, p.Bounds.Hi = low.Lo, high.Hi
	}
	return p, nil
}

// filledPairs is pairUp, with fillA and fillB in place of outcomes that are uncertain.
func filledPairs(a, b *Group, measure string, fillA, fillB float64) []stats.Pair {
	fill := map[*Group]float64{a: fillA, b: fillB}
	var pairs []stats.Pair
	at := map[string]int{}
	add := func(g *Group, task, cluster string, value float64) {
		i, known := at[task]
		if !known {
			i = len(pairs)
			at[task] = i
			pairs = append(pairs, stats.Pair{Task: task, Cluster: cluster})
		}
		if g == a {
			pairs[i].Baseline = append(pairs[i].Baseline, value)
		} else {
			pairs[i].Candidate = append(pairs[i].Candidate, value)
		}
	}
	for _, g := range []*Group{a, b} {
		for i := range g.records {
			r := &g.records[i]
			value, ok := outcomeOf(r, measure)
			if !ok || r.Unverified > 0 {
				value = fill[g]
			}
			add(g, r.TaskID, r.Cluster, value)
		}
		for i := range g.Tasks {
			for range g.Tasks[i].absent {
				add(g, g.Tasks[i].TaskID, g.Tasks[i].Cluster, fill[g])
			}
		}
	}
	return pairs
}

func outcomeOf(r *ledger.Record, measure string) (float64, bool) {
	switch {
	case r.Verdict == ledger.Error:
		return 0, false
	case measure == MeasureScore && r.Score != nil:
		return *r.Score, true
	case r.Verdict == ledger.Pass:
		return 1, true
	default:
		return 0, true
	}
}

// pairUp collects a quantity of both groups task by task.
func pairUp(a, b *Group, value func(*ledger.Record) (float64, bool)) []stats.Pair {
	byTask := map[string]*stats.Pair{}
	collect := func(g *Group, into func(*stats.Pair) *[]float64) {
		for i := range g.records {
			r := &g.records[i]
			v, ok := value(r)
			if !ok {
				continue
			}
			pair := byTask[r.TaskID]
			if pair == nil {
				pair = &stats.Pair{Task: r.TaskID, Cluster: r.Cluster}
				byTask[r.TaskID] = pair
			}
			list := into(pair)
			*list = append(*list, v)
		}
	}
	collect(a, func(p *stats.Pair) *[]float64 { return &p.Baseline })
	collect(b, func(p *stats.Pair) *[]float64 { return &p.Candidate })
	var pairs []stats.Pair
	for _, id := range slices.Sorted(maps.Keys(byTask)) {
		pairs = append(pairs, *byTask[id])
	}
	return pairs
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
				p, err := stats.FisherExact(passes(pair.Candidate), d.NB, passes(pair.Baseline), d.NA)
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

func passes(outcomes []float64) int {
	n := 0
	for _, o := range outcomes {
		if o == 1 {
			n++
		}
	}
	return n
}

func (c *Comparison) warn(a, b *Group, prepared *Prepared) {
	if a.Provenance.FamilyRevision != b.Provenance.FamilyRevision {
		c.Warnings = append(c.Warnings,
			"the two were measured on different revisions of the family; changed tasks are compared as if they were "+
				"the same")
	}
	if a.Provenance.Experiment != b.Provenance.Experiment {
		c.Warnings = append(c.Warnings,
			"the two are different experiments: they did not run side by side, so anything that changed "+
				"between them confounds the comparison")
	}
	for _, reason := range prepared.Allowed {
		c.Warnings = append(c.Warnings, reason.allowedText())
	}
	same := SameArm(a, b)
	switch differ := a.Provenance.Faults != b.Provenance.Faults; {
	case same && differ && a.Provenance.Faults == "":
		c.Warnings = append(c.Warnings, "faults were injected into the model calls of the second (--faults), not of "+
			"the first: the difference measures how robust the arm is")
	case differ:
		c.Warnings = append(c.Warnings, "different faults were injected into the model calls of the two (--faults), "+
			"which confounds the comparison")
	case same:
		c.Same = true
		c.Warnings = append(c.Warnings, sameText(a, b, len(prepared.Withheld)+len(prepared.Allowed) == 0))
	}
	if a.Judge != nil && b.Judge != nil && a.Judge.Corrected != nil && b.Judge.Corrected != nil &&
		a.Judge.Corrected.Caveat != "" {
		c.Warnings = append(c.Warnings, "the judge on both arms: "+a.Judge.Corrected.Caveat)
	}
	if c.Sequential {
		c.Warnings = append(c.Warnings,
			"sequential analysis: the claim uses an e-process, which remains valid under optional stopping; "+
				"after an early stop, the estimated effect is biased towards the result that triggered it")
	}
	if warning := c.Machines.Warning(); warning != "" {
		c.Warnings = append(c.Warnings, warning)
	}
	c.Warnings = append(c.Warnings, warningsOf(a, b)...)
	c.Warnings = append(c.Warnings, c.Decision.Warnings...)
}

// SameArm reports whether two groups are of the same configuration.
func SameArm(a, b *Group) bool {
	return a.Provenance.ArmHash == b.Provenance.ArmHash && a.Provenance.ArmHash != ""
}

// sameText is what readers must know about two arms that are the same. Only arms that ran side by
// side, with nothing that changed, differ by chance alone.
func sameText(a, b *Group, steady bool) string {
	switch {
	case a.Provenance.Experiment != b.Provenance.Experiment:
		return "both arms are the same configuration, measured in two experiments"
	case !steady:
		return "both arms are the same: an A/A experiment"
	}
	return "both arms are the same: an A/A experiment; unless their models have different addresses, any " +
		"difference is noise"
}

// NonInferior reports whether B is at most a margin worse than A: the lower limit of the difference
// is above minus the margin, even if every missing run counts against B. Without an interval it is
// false.
func NonInferior(decision *stats.Decision, bounds *Bounds, margin float64) bool {
	return decision.Lo != nil && *decision.Lo > -margin && (bounds == nil || bounds.Lo > -margin)
}

// Pairs returns the verdicts of two groups task by task, as a pilot for planning; A is the
// baseline.
func Pairs(a, b *Group) []stats.Pair {
	return pairUp(a, b, func(r *ledger.Record) (float64, bool) { return outcomeOf(r, MeasurePass) })
}
