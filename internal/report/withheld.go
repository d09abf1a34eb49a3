package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// Reason is why a claim, or a gate, is withheld whatever the numbers say.
type Reason struct {
	Key  string `json:"key"`
	Text string `json:"text"`
	// WayOut says what to do about it.
	WayOut string `json:"wayOut,omitempty"`
	// Allow is the value of --allow that accepts it; empty: nothing does.
	Allow string `json:"allow,omitempty"`
}

// Basis is what a claim or a gate rests on.
type Basis struct {
	// Groups is one for a gate, and two for a comparison, the baseline first.
	Groups []*Group
	// Tasks counts those with outcomes on both sides of a comparison, Exclusions its runs without
	// one.
	Tasks      int
	Exclusions stats.Exclusions
	// NotPlanned says in what the question differs from the planned one.
	NotPlanned []string
	// Panel is set where judges' verdicts are compared.
	Panel *Panel
	// Decision is set once it is made.
	Decision *stats.Decision
}

// Panel is what is known about the judges whose verdicts are compared.
type Panel struct {
	// Status is that of the calibration.
	Status string
	// Labelled says that people labelled runs of both arms, some as passed and some as failed.
	Labelled bool
}

// The keys of reasons.
const (
	reasonDrift         = "drift"
	reasonNotDelivered  = "not_delivered"
	reasonContaminated  = "contaminated"
	reasonReplayed      = "replayed"
	reasonUnplanned     = "unplanned"
	reasonHistorical    = "historical"
	reasonUnsigned      = "unsigned"
	reasonControls      = "controls"
	reasonTooFewTasks   = "too_few_tasks"
	reasonExclusionGap  = "exclusion_gap"
	reasonFlags         = "open_flags"
	reasonUnreadable    = "unreadable"
	reasonRegraded      = "regraded"
	reasonNotCalibrated = "not_calibrated"
	reasonLabels        = "labels"
	reasonUnsure        = "unsure"
	reasonNotPlanned    = "not_planned"
)

// maxExclusionGap is the difference of the arms' shares of runs without an outcome from which on
// nothing is claimed.
const maxExclusionGap = 0.05

// reasons is the one list of what withholds a claim or a gate. find looks at what it rests on and
// says what is wrong with it. Adding a reason takes a row here and a case in
// TestEveryReasonWithholdsAClaim.
var reasons = []struct {
	key    string
	allow  string // the value of --allow that accepts it
	wayOut string // where nothing accepts it
	find   func(*Basis) []string
}{
	{key: reasonDrift, allow: reasonDrift, find: drift},
	{key: reasonNotDelivered, wayOut: "repair the arm and run it in a new directory", find: undelivered},
	{key: reasonContaminated, wayOut: "keep it from the other arm and run both in a new directory", find: contaminated},
	{key: reasonReplayed, wayOut: "run them without --replay", find: replayed},
	{key: reasonUnplanned, wayOut: "report each experiment with its own plan.json", find: unplanned},
	{key: reasonNotPlanned, wayOut: "ask what was planned, or plan it with run and run anew", find: notPlanned},
	{key: reasonHistorical, allow: reasonHistorical, find: historical},
	{key: reasonUnsigned, allow: reasonUnsigned, find: unsigned},
	{key: reasonControls, wayOut: "find what else differs, and run all arms in a new directory", find: failedControls},
	{key: reasonTooFewTasks, wayOut: "add tasks", find: tooFewTasks},
	{key: reasonExclusionGap, wayOut: "run the same tasks on both; --retry-errors repeats runs", find: exclusionGap},
	{key: reasonFlags, wayOut: "fit versus audit shows them, and clears what is not cheating", find: openFlags},
	{key: reasonUnreadable, wayOut: "restore the files that the ledger names", find: unreadable},
	{key: reasonRegraded, wayOut: "revoke the key, and run it in a new directory without its workers", find: regraded},
	{key: reasonNotCalibrated, wayOut: "label runs with fit versus calibrate", find: notCalibrated},
	{key: reasonLabels, wayOut: "label passed and failed runs of both with fit versus calibrate", find: lacksLabels},
	{key: reasonUnsure, wayOut: "--retry-errors repeats missing runs; else add tasks", find: unsureAnswer},
}

// Withhold returns the reasons for which nothing is claimed about a basis and no gate on it passes,
// and those that were found and are allowed.
func Withhold(allow []string, basis *Basis) (withheld, allowed []Reason) {
	for _, r := range reasons {
		texts := r.find(basis)
		if len(texts) == 0 {
			continue
		}
		found := Reason{Key: r.key, Text: strings.Join(texts, "; "), Allow: r.allow}
		if found.WayOut = r.wayOut; r.allow != "" {
			found.WayOut = fmt.Sprintf("--allow %s accepts it", r.allow)
		} else if len(basis.each(func(g *Group) string { return g.Imported })) > 0 { // fit cannot repeat them
			found.WayOut = strings.NewReplacer("--retry-errors repeats missing runs; else ", "",
				"; --retry-errors repeats runs", "", "with its own plan.json", "whole").Replace(r.wayOut)
		}
		if r.allow != "" && slices.Contains(allow, r.allow) {
			allowed = append(allowed, found)
		} else {
			withheld = append(withheld, found)
		}
	}
	return withheld, allowed
}

// observed heads the numbers of two groups that are no experiment; empty where they are one.
func observed(withheld []Reason, a, b *Group) string {
	for _, r := range withheld {
		switch {
		case r.Key == reasonReplayed:
			return "replayed"
		case r.Key == reasonUnplanned, r.Key == reasonHistorical && !oneExperiment(a, b):
			return "not one experiment"
		}
	}
	return ""
}

// Counted reports whether a decision finds the reason by itself, from its numbers.
func (r Reason) Counted() bool { return r.Key == reasonTooFewTasks || r.Key == reasonUnsure }

// StopsGates reports whether a gate on a comparison fails. Too few tasks are a claim of their own,
// insufficient, for which gates can ask.
func (r Reason) StopsGates() bool { return r.Key != reasonTooFewTasks }

// replayed counts the runs that were answered from records: they say nothing about what was changed
// since their answers were recorded.
func replayed(basis *Basis) []string {
	answered, runs, requests, differed, how := 0, 0, 0, 0, ""
	for _, g := range basis.Groups {
		for i := range g.records {
			r := &g.records[i]
			if r.Verdict == ledger.Error {
				continue
			}
			runs++
			if r.Replay == "" || r.ReplayedCalls != nil && *r.ReplayedCalls == 0 { // a model answered all
				continue
			}
			answered++
			if r.ReplayedCalls != nil {
				requests, differed = requests+*r.ReplayedCalls, differed+r.ReplayDiffered
				how = cmp.Or(how, r.ReplayDifference)
			}
		}
	}
	if answered == 0 {
		return nil
	}
	text := fmt.Sprintf("%d of %s were answered from the records of another experiment", answered, Count(runs, "run"))
	switch {
	case differed > 0:
		text += fmt.Sprintf(", whose requests differed in %d of %d cases, first: %s", differed, requests, how)
	case requests > 0:
		text += fmt.Sprintf(", to the same %s", Count(requests, "request"))
	}
	return []string{text}
}

// unplanned says why nobody knows which runs are missing.
func unplanned(basis *Basis) []string {
	return basis.each(func(g *Group) string { return g.unplanned })
}

// each collects what there is to say about the groups, once.
func (b *Basis) each(say func(*Group) string) []string {
	var found []string
	for _, g := range b.Groups {
		if text := say(g); text != "" && !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	return found
}

// tooFewTasks applies to comparisons: the limits of a single rate know how few tasks it has.
func tooFewTasks(basis *Basis) []string {
	few := stats.Comparison{Tasks: basis.Tasks}.TooFew()
	if len(basis.Groups) < 2 || few == "" {
		return nil
	}
	return []string{few}
}

func exclusionGap(basis *Basis) []string {
	gap := math.Abs(basis.Exclusions.Candidate.Rate() - basis.Exclusions.Baseline.Rate())
	if gap < maxExclusionGap-1e-12 {
		return nil
	}
	return []string{fmt.Sprintf("exclusion rates differ by %.1f points", 100*gap)}
}

// openFlags applies to comparisons: they take a disqualified run as failed, which favours the other
// arm. A gate on one arm has counted the worst.
func openFlags(basis *Basis) []string {
	open := 0
	for _, g := range basis.Groups {
		open += g.flags
	}
	if len(basis.Groups) < 2 || open == 0 {
		return nil
	}
	return []string{Count(open, "open integrity flag")}
}

// unreadable names arms some of whose runs nobody could examine.
func unreadable(basis *Basis) []string {
	return basis.each(func(g *Group) string {
		if len(g.unread) == 0 {
			return g.unexamined
		}
		return fmt.Sprintf("%s of %s cannot be examined: %s", Count(len(g.unread), "run"), g.Name, g.unread[0])
	})
}

// regraded names passes of workers that the coordinator of a fleet graded otherwise.
func regraded(basis *Basis) []string {
	var found []string
	for _, g := range basis.Groups {
		for i := range g.records {
			if r := &g.records[i]; r.Regraded != "" && r.Regraded != r.Verdict {
				found = append(found, fmt.Sprintf("%s: the result that key %s signed says %s, and grading it again %s",
					r.Key(), r.SignedBy, r.Verdict, r.Regraded))
			}
		}
	}
	return found
}

func notCalibrated(basis *Basis) []string {
	switch p := basis.Panel; {
	case p == nil || p.Status == stats.StatusOK:
		return nil
	case p.Status == stats.StatusUncalibrated:
		return []string{"the panel is not calibrated: its errors are in the difference"}
	default:
		return []string{"the calibration is not valid: " + p.Status}
	}
}

func lacksLabels(basis *Basis) []string {
	if p := basis.Panel; p == nil || p.Status != stats.StatusOK || p.Labelled {
		return nil
	}
	return []string{"an arm lacks labels of both kinds: the panel may be kinder to it"}
}

// unsureAnswer says that a claim would not hold for all outcomes of the runs without a certain one.
func unsureAnswer(basis *Basis) []string {
	if basis.Decision == nil || basis.Decision.Unsure == "" {
		return nil
	}
	return []string{basis.Decision.Unsure}
}

// Sentence says why, and the way out.
func (r Reason) Sentence() string { return r.Text + "; " + r.WayOut }

// Sentences returns those of the reasons that a decision does not find by itself.
func Sentences(reasons []Reason) []string {
	var list []string
	for _, r := range reasons {
		if !r.Counted() {
			list = append(list, r.Sentence())
		}
	}
	return list
}

// AddAllowed adds to warnings, once each, the reasons that were found and are accepted.
func (p *Pair) AddAllowed(warnings []string) []string {
	for _, reason := range p.Allowed {
		if text := reason.allowedText(); !slices.Contains(warnings, text) {
			warnings = append(warnings, text)
		}
	}
	return warnings
}

// allowedText is the warning about a reason that was allowed.
func (r Reason) allowedText() string {
	return fmt.Sprintf("allowed by --allow %s: %s", r.Allow, r.Text)
}

// warnOfPairs says what withholds a claim about an arm and the first one, the baseline, and which
// arms are the same. What the groups say of themselves is not repeated.
func (r *Report) warnOfPairs(allow []string) {
	for i := 1; i < len(r.Groups); i++ {
		a, b := Beside(&r.Groups[0], &r.Groups[i])
		if a.partOf(b) {
			continue
		}
		add := func(text string) {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s against %s: %s", b.Name, a.Name, text))
		}
		basis := &Basis{Groups: []*Group{a, b}}
		first, second, _ := together(a, b, MeasurePass)
		basis.count(first, second, PairOutcomes(first, second, nil))
		withheld, allowed := Withhold(allow, basis)
		for _, reason := range withheld {
			if !slices.Contains(slices.Concat(a.Withheld, b.Withheld), reason) {
				add("no claim because: " + reason.Sentence())
			}
		}
		for _, reason := range allowed {
			if text := reason.allowedText(); !slices.Contains(slices.Concat(a.Warnings, b.Warnings), text) {
				add(text)
			}
		}
		if sameArm(a, b) {
			add(sameText(a, b))
		}
	}
}

// count fills in how many tasks have outcomes on both sides, and how many runs have none.
func (b *Basis) count(baseline, candidate []Outcome, pairs []stats.Pair) {
	for i := range pairs {
		if len(pairs[i].Baseline) > 0 && len(pairs[i].Candidate) > 0 {
			b.Tasks++
		}
	}
	b.Exclusions = stats.Exclusions{Baseline: missingOf(baseline), Candidate: missingOf(candidate)}
}

// missingOf counts the outcomes that are not known.
func missingOf(outcomes []Outcome) stats.Exclusion {
	e := stats.Exclusion{Planned: len(outcomes)}
	for i := range outcomes {
		if !outcomes[i].Known {
			e.Excluded++
		}
	}
	return e
}
