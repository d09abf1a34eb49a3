package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/stats"
)

// MultiComparison is the answer for more than two arms: every comparison, corrected for how many
// there are, and a ranking.
type MultiComparison struct {
	Version int    `json:"version"`
	Measure string `json:"measure"`
	// NotPlanned says in what the question differs from the planned one.
	NotPlanned []string `json:"notPlanned,omitempty"`
	// Treatment says what the models of all arms were given.
	Treatment *Treatment `json:"treatment,omitempty"`
	// Baseline is the arm that all others are compared with; empty where all pairs are.
	Baseline string      `json:"baseline,omitempty"`
	Arms     []RankedArm `json:"arms"` // the best first
	Pairs    []ArmPair   `json:"pairs"`
	// Sets are arms that cannot be distinguished, the best first; an arm may be in several. They
	// need all pairs.
	Sets     [][]string `json:"sets,omitempty"`
	Warnings []string   `json:"warnings,omitempty"`
	// Imported says what the files of other harnesses that this was read from cannot promise.
	Imported string `json:"imported,omitempty"`
	// Controls say what the controls of the experiment showed.
	Controls []Control `json:"controls,omitempty"`
	// Validity is the page that says what a claim rests on.
	Validity string `json:"validity"`
	// FirstLines are said right below the headline.
	FirstLines []string `json:"-"`

	flow []string // what became of the planned runs
}

// RankedArm is one arm of the comparison.
type RankedArm struct {
	Name       string          `json:"name"`
	Provenance Provenance      `json:"provenance"`
	Rate       *stats.Interval `json:"rate,omitempty"`
	Bounds     *Bounds         `json:"bounds,omitempty"`
	CostUSD    *float64        `json:"costUsd"`
	// Missing, Retried and Limits count runs as in the totals of the arm.
	Missing int            `json:"missing,omitempty"`
	Retried int            `json:"retriedRuns,omitempty"`
	Limits  map[string]int `json:"limits,omitempty"`
	Flow    *Flow          `json:"flow,omitempty"`
	// Differs says in what the arm differs from the baseline.
	Differs []string `json:"differs,omitempty"`
	// Judge describes the judge; the comparison itself uses its verdicts uncorrected.
	Judge *JudgeReport `json:"judge,omitempty"`
}

// rankedHead are the columns of the ranking.
func (f *MultiComparison) rankedHead() []string {
	rate := "pass rate"
	if f.Measure == MeasureScore {
		rate = MeasureScore
	}
	return []string{"arm", rate, "missing", "retried", "at a limit", "spent"}
}

// cells are those of an arm behind its name.
func (a *RankedArm) cells() []string {
	limited, _ := byCount(a.Limits)
	return []string{
		BoundedPercent(a.Rate, a.Bounds), fmt.Sprint(a.Missing), fmt.Sprint(a.Retried), fmt.Sprint(limited),
		display.Cost(a.CostUSD),
	}
}

// ArmPair is one comparison of a family: B against A.
type ArmPair struct {
	A        string         `json:"a"`
	B        string         `json:"b"`
	Decision stats.Decision `json:"decision"`
	// Observed says why the two are no experiment; empty where they are one.
	Observed string `json:"observed,omitempty"`
	Facts
}

// CompareArms compares several groups: all pairs of them, or with toBaseline all others with the
// first. The chance of any false claim among the comparisons stays below alpha.
func CompareArms(groups []*Group, toBaseline bool, cfg CompareConfig) (*MultiComparison, error) {
	cfg = cfg.asPlanned(groups...)
	if q := groups[0].question; q.Alpha > 0 && len(q.Arms) > 2 && q.ToBaseline != toBaseline {
		cfg.NotPlanned = append(cfg.NotPlanned, "other pairs than the planned ones")
	}
	f := &MultiComparison{
		Version:    Version,
		Measure:    cfg.Measure,
		FirstLines: FirstLines(groups...),
		Controls:   groups[0].controls,
		Validity:   ValidityPage,
		flow:       flowLines(groups...),
		NotPlanned: cfg.NotPlanned,
	}
	if text := notPlannedText(cfg.NotPlanned); text != "" {
		f.FirstLines = append([]string{text}, f.FirstLines...)
	}
	f.Imported = importedLine(groups...)
	for _, g := range groups {
		rate, bounds, err := g.rate(cfg.Measure)
		if err != nil {
			return nil, err
		}
		f.Arms = append(f.Arms, RankedArm{
			Name:       g.Name,
			Provenance: g.Provenance,
			Rate:       rate,
			Bounds:     bounds,
			Judge:      g.Judge,
			CostUSD:    g.Totals.CostUSD,
			Missing:    g.Totals.Missing,
			Retried:    g.Totals.Retried,
			Limits:     g.Limits,
			Flow:       g.Flow,
			Differs:    g.Differs,
		})
	}
	f.Treatment = treatmentOf(stats.DefaultLevel, groups...)
	f.Warnings = warningsOf(groups...)
	var sides [][2]*Group
	for i, a := range groups {
		if toBaseline && i > 0 {
			break
		}
		for _, b := range groups[i+1:] {
			if !a.partOf(b) {
				sides = append(sides, [2]*Group{a, b})
			}
		}
	}
	if toBaseline {
		f.Baseline = groups[0].Name
	}
	if err := f.decide(sides, cfg); err != nil {
		return nil, err
	}
	slices.SortStableFunc(f.Arms, func(a, b RankedArm) int { return cmp.Compare(b.rate(), a.rate()) })
	if !toBaseline && f.observed() == "" { // who was only observed is not ranked
		f.Sets = f.indistinguishable()
	}
	return f, nil
}

func (f *MultiComparison) decide(sides [][2]*Group, cfg CompareConfig) error {
	cfg.Tests, cfg.Pairs = len(sides), len(sides)
	f.Pairs = make([]ArmPair, len(sides))
	claims := &Claims{}
	for i, side := range sides {
		p, err := NewPair(side[0], side[1], cfg)
		if err != nil {
			return err
		}
		f.Pairs[i] = ArmPair{A: side[0].Name, B: side[1].Name, Facts: p.Facts}
		f.warn(side, p)
		claims.Add(p.Comparison, p.Config, func(decision *stats.Decision) {
			f.Pairs[i].Decision, f.Pairs[i].Withheld = *decision, p.Decided(decision)
			f.Pairs[i].Observed = observed(f.Pairs[i].Withheld, side[0], side[1])
		})
	}
	return claims.Decide()
}

// warn says what readers must know about one pair.
func (f *MultiComparison) warn(side [2]*Group, p *Pair) {
	name := side[1].Name + " against " + side[0].Name + ": "
	if p.Same {
		f.Warnings = append(f.Warnings, name+sameText(side[0], side[1]))
	}
	for _, warning := range p.Warnings() {
		f.Warnings = append(f.Warnings, name+warning)
	}
	f.Warnings = p.AddAllowed(f.Warnings)
}

// warningsOf returns the warnings about groups, with their names. A warning about all groups
// appears once.
func warningsOf(groups ...*Group) []string {
	var all []string
	for _, g := range groups {
		for _, warning := range g.Warnings {
			if slices.Contains(g.alone, warning) {
				continue
			}
			name := "every arm"
			for _, other := range groups {
				if !slices.Contains(other.Warnings, warning) {
					name = g.Name
				}
			}
			if line := name + ": " + warning; !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	return all
}

func (a *RankedArm) rate() float64 {
	if a.Rate == nil {
		return -1
	}
	return a.Rate.Est
}

// indistinguishable lists the longest stretches of the ranking in which no two arms are
// distinguished.
func (f *MultiComparison) indistinguishable() [][]string {
	apart := map[[2]string]bool{}
	for _, pair := range f.Pairs {
		if claim := pair.Decision.Claim; claim == stats.Improved || claim == stats.Regressed {
			apart[[2]string{pair.A, pair.B}], apart[[2]string{pair.B, pair.A}] = true, true
		}
	}
	var sets [][]string
	end := 0
	for start := range f.Arms {
		stop := start + 1
		for stop < len(f.Arms) && !slices.ContainsFunc(f.Arms[start:stop], func(a RankedArm) bool {
			return apart[[2]string{a.Name, f.Arms[stop].Name}]
		}) {
			stop++
		}
		if stop > end {
			var set []string
			for _, arm := range f.Arms[start:stop] {
				set = append(set, arm.Name)
			}
			sets = append(sets, set)
			end = stop
		}
	}
	return sets
}

// facts returns the lines under the tables.
func (f *MultiComparison) facts() []string {
	var facts []string
	for i, set := range f.Sets {
		text := "stands alone"
		if len(set) > 1 {
			text = "no significant difference"
		}
		facts = append(facts, fmt.Sprintf("rank %d: %s (%s)", i+1, strings.Join(set, ", "), text))
	}
	facts = append(facts, fmt.Sprintf("%s; p-values are corrected for their number (Holm), confidence intervals are "+
		"not", Count(len(f.Pairs), "comparison")))
	least := 0.0
	for _, pair := range f.Pairs {
		least = max(least, pair.Decision.MDE)
	}
	facts = append(facts, "minimum detectable difference of a comparison (80% power, variance uncertain): "+
		Detectable(least))
	for _, pair := range f.Pairs {
		for _, reason := range pair.Withheld {
			facts = append(facts, fmt.Sprintf("no claim about %s and %s because: %s", pair.A, pair.B,
				reason.Sentence()))
		}
	}
	for _, pair := range f.Pairs {
		if text := RequestsText(pair.Requests); text != "" {
			facts = append(facts, fmt.Sprintf("%s against %s: %s", pair.B, pair.A, text))
		}
	}
	for _, arm := range f.Arms {
		if len(arm.Differs) > 0 {
			facts = append(facts, fmt.Sprintf("%s differs from the baseline in: %s", arm.Name,
				strings.Join(arm.Differs, ", ")))
		}
		for _, line := range arm.Judge.lines() {
			facts = append(facts, arm.Name+": "+line)
		}
	}
	return append(append(facts, f.flow...), f.Treatment.Lines...)
}

// observed heads comparisons of results that are no experiment; empty where all are one.
func (f *MultiComparison) observed() string {
	count, why := 0, ""
	for _, pair := range f.Pairs {
		if pair.Observed != "" {
			count, why = count+1, pair.Observed
		}
	}
	switch count {
	case 0:
		return ""
	case len(f.Pairs):
		return "Observed (" + why + ")"
	}
	return fmt.Sprintf("Observed (%s): %d of %s", why, count, Count(len(f.Pairs), "comparison"))
}

// headline is what readers must know before they see any number; empty is nothing.
func (f *MultiComparison) headline() string {
	remarks := []string{}
	if text := f.observed(); text != "" {
		remarks = append(remarks, text)
	}
	if withheld := len(slices.DeleteFunc(slices.Clone(f.Pairs), func(p ArmPair) bool {
		return len(p.Withheld) == 0
	})); withheld > 0 {
		remarks = append(remarks, fmt.Sprintf("claims are withheld about %d of %s", withheld,
			Count(len(f.Pairs), "comparison")))
	}
	if remark := f.Treatment.Remark(); remark != "" {
		remarks = append(remarks, remark)
	}
	return strings.Join(remarks, "; ")
}

// Text writes the family for a terminal.
func (f *MultiComparison) Text(w io.Writer) error {
	head := joined("\n", append([]string{display.Line(f.Imported), display.Line(f.headline())}, f.FirstLines...)...)
	if head != "" {
		fmt.Fprintf(w, "%s\n\n", head)
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(f.rankedHead(), "\t"))
	for i := range f.Arms {
		fmt.Fprintln(table, display.Line(f.Arms[i].Name)+"\t"+strings.Join(f.Arms[i].cells(), "\t"))
	}
	fmt.Fprintln(table, "\t\t\t\ncomparison\tdifference\tp (Holm)\tclaim")
	for _, pair := range f.Pairs {
		fmt.Fprintf(table, "%s against %s\t%s\t%.4f\t%s\n", display.Line(pair.B), display.Line(pair.A),
			effectText(&pair.Decision), pair.Decision.PAdj, pair.Decision.Claim)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	writeFacts(w, f.facts(), f.Warnings)
	return nil
}

// Markdown writes the family as Markdown.
func (f *MultiComparison) Markdown(w io.Writer) error {
	m := &markdown{}
	m.line("## %d arms compared\n", len(f.Arms))
	if f.Imported != "" {
		m.line("%s\n", cell(f.Imported))
	}
	if head := f.headline(); head != "" {
		m.line("**%s**\n", cell(head))
	}
	m.paragraphs(f.FirstLines)
	m.header(f.rankedHead()...)
	for i := range f.Arms {
		m.row(append([]string{cell(f.Arms[i].Name)}, f.Arms[i].cells()...)...)
	}
	m.line("")
	m.header("comparison", "difference", "p (Holm)", "claim")
	for _, pair := range f.Pairs {
		m.row(cell(pair.B+" against "+pair.A), effectText(&pair.Decision), fmt.Sprintf("%.4f", pair.Decision.PAdj),
			string(pair.Decision.Claim))
	}
	m.facts(f.facts())
	return m.end(w, f.Warnings)
}
