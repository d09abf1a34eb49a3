package judge

import (
	"math"
	"slices"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/stats"
)

// Which runs are compared with each other.
const (
	PairsOff = "off"
	// PairsTies compares in the dimensions in which the panel's verdict on both is the same.
	PairsTies = "ties"
	PairsAll  = "all"
)

// PairwiseVerdict is the comparison of two arms on one task and run, made in both orders.
type PairwiseVerdict struct {
	// Winner is an arm or "tie"; empty where no vote counts.
	Winner string `json:"winner"`
	// PerDimension holds an arm or "tie" for each dimension that was compared and in which a vote
	// counts.
	PerDimension map[string]string `json:"perDimension"`
	// BiasDetected says that a member's answer depended on the order.
	BiasDetected bool       `json:"biasDetected"`
	AgentA       string     `json:"agentA"`
	AgentB       string     `json:"agentB"`
	Votes        []SwapVote `json:"votes"`
	Task         string     `json:"task"`
	Run          int        `json:"run"`
}

// SwapVote is a member's answers in both orders.
type SwapVote struct {
	Model     string `json:"model"`
	Member    string `json:"member"`
	Dimension string `json:"dimension"`
	// OrderAB is the winner when A was shown first, OrderBA when B was: an arm, "tie", or empty
	// where the member abstained.
	OrderAB string `json:"orderAB"`
	OrderBA string `json:"orderBA"`
	// Reconciled is the vote; empty where an answer is missing.
	Reconciled    string `json:"reconciled"`
	Bias          bool   `json:"bias"`
	DroppedClaims int    `json:"droppedClaims"`
}

// Swaps measures how much the order of presentation mattered to a member.
type Swaps struct {
	stats.SwapSummary
	PerDimension map[string]stats.SwapSummary `json:"perDimension"`
	// Dropped says that the order matters too much: the member's comparisons do not count.
	Dropped bool `json:"dropped"`
}

// The bounds beyond which a member does not compare: on fewer pairs that were decisive a flip rate
// is noise.
const (
	maxFlipRate      = 0.30
	minCoverage      = 0.5
	minDecisivePairs = 10
)

// couple is a pair of runs to compare, by their index.
type couple struct{ a, b int }

// couples returns the pairs of runs of one task and number by two arms.
func couples(subjects []Subject) []couple {
	type repetition struct {
		task string
		run  int
	}
	earlier := map[repetition][]int{}
	var found []couple
	for b := range subjects {
		at := subjects[b].cell()
		key := repetition{at.TaskID, at.RunIndex}
		for _, a := range earlier[key] {
			if subjects[a].cell().Arm != at.Arm {
				found = append(found, couple{a, b})
			}
		}
		earlier[key] = append(earlier[key], b)
	}
	return found
}

// compared reports whether two runs are compared in a dimension.
func (d *deriver) compared(cells []CellVerdicts, c couple, dimension string) bool {
	mode := d.settings.Mode
	if !d.subjects[c.a].asked(mode, dimension) || !d.subjects[c.b].asked(mode, dimension) {
		return false
	}
	if d.settings.Pairwise == PairsAll {
		return true
	}
	a, b := cells[c.a].Dimensions[dimension].Result, cells[c.b].Dimensions[dimension].Result
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// comparePairs derives every comparison, then leaves out the members to whom the order matters too
// much.
func (d *deriver) comparePairs(cells []CellVerdicts) []PairwiseVerdict {
	if d.settings.Pairwise == PairsOff {
		return nil
	}
	verdicts := []PairwiseVerdict{}
	views := map[string]swapViews{} // by member
	for _, c := range couples(d.subjects) {
		if verdict := d.compare(cells, c, views); verdict.PerDimension != nil {
			verdicts = append(verdicts, verdict)
		}
	}
	for i := range d.members {
		d.members[i].Swaps = summarise(views[d.members[i].member.Name])
	}
	for i := range verdicts {
		d.decidePair(&verdicts[i])
	}
	return verdicts
}

// swapViews returns a member's views of all pairs, by dimension.
type swapViews map[string][]stats.SwapView

// compare derives the votes on one pair.
func (d *deriver) compare(cells []CellVerdicts, c couple, views map[string]swapViews) PairwiseVerdict {
	a, b := newView(&d.subjects[c.a]), newView(&d.subjects[c.b])
	verdict := PairwiseVerdict{
		AgentA: a.subject.cell().Arm,
		AgentB: b.subject.cell().Arm,
		Task:   a.subject.cell().TaskID,
		Run:    a.subject.cell().RunIndex,
		Votes:  []SwapVote{},
	}
	for _, dimension := range d.settings.Dimensions {
		if !d.compared(cells, c, dimension) {
			continue
		}
		verdict.PerDimension = map[string]string{}
		ab, ba := pair(d.frames, dimension, a, b), pair(d.frames, dimension, b, a)
		for i := range d.members {
			m := &d.members[i]
			if !m.isActive() || !d.selected(dimension, m.member.Name) {
				continue
			}
			vote, view, valid := d.swap(m.member, ab, ba, &verdict)
			verdict.Votes = append(verdict.Votes, vote)
			if valid {
				if views[m.member.Name] == nil {
					views[m.member.Name] = swapViews{}
				}
				views[m.member.Name][dimension] = append(views[m.member.Name][dimension], view)
			}
		}
	}
	return verdict
}

// swap reads a member's answers in both orders and reconciles them.
func (d *deriver) swap(m Member, ab, ba *question, v *PairwiseVerdict) (SwapVote, stats.SwapView, bool) {
	vote := SwapVote{Model: m.Model, Member: m.Name, Dimension: ab.dimension}
	first, missingFirst := ab.answer(m, d.find)
	second, missingSecond := ba.answer(m, d.find)
	for _, missing := range []*request{missingFirst, missingSecond} {
		if missing != nil {
			d.missing++
		}
	}
	vote.DroppedClaims = first.dropped + second.dropped
	validFirst := missingFirst == nil && !first.abstained
	validSecond := missingSecond == nil && !second.abstained
	var view stats.SwapView
	if validFirst {
		view.WhenAFirst = winnerOf(first.result, stats.WinnerA, stats.WinnerB)
		vote.OrderAB = v.arm(view.WhenAFirst)
	}
	if validSecond {
		view.WhenBFirst = winnerOf(second.result, stats.WinnerB, stats.WinnerA)
		vote.OrderBA = v.arm(view.WhenBFirst)
	}
	if !validFirst || !validSecond {
		return vote, view, false
	}
	winner, bias := view.Reconcile()
	vote.Reconciled, vote.Bias = v.arm(winner), bias
	v.BiasDetected = v.BiasDetected || bias
	return vote, view, true
}

func winnerOf(result string, x, y stats.Winner) stats.Winner {
	switch result {
	case winnerX:
		return x
	case winnerY:
		return y
	}
	return stats.WinnerT
}

// arm names a winner as the seed does: by the arm, or "tie".
func (v *PairwiseVerdict) arm(winner stats.Winner) string {
	switch winner {
	case stats.WinnerA:
		return v.AgentA
	case stats.WinnerB:
		return v.AgentB
	}
	return winnerTie
}

// summarise measures how much the order matters to a member; nil where it compared nothing.
func summarise(views swapViews) *Swaps {
	if len(views) == 0 {
		return nil
	}
	swaps := &Swaps{PerDimension: map[string]stats.SwapSummary{}}
	var all []stats.SwapView
	for _, dimension := range evidence.Dimensions() {
		if len(views[dimension]) == 0 {
			continue
		}
		all = append(all, views[dimension]...)
		// it fails on unknown winners only
		swaps.PerDimension[dimension], _ = stats.SummariseSwaps(views[dimension])
	}
	swaps.SwapSummary, _ = stats.SummariseSwaps(all)
	swaps.Dropped = swaps.FlipRate > maxFlipRate && swaps.Coverage >= minCoverage && swaps.Decisive >= minDecisivePairs
	return swaps
}

// narrowLead is the weighted lead below which a comparison is a tie.
const narrowLead = 0.10

// decidePair takes the strict majority of the reconciled votes in each dimension, and weighs the
// dimensions.
func (d *deriver) decidePair(v *PairwiseVerdict) {
	lead, voted := 0.0, false
	weights := DefaultWeights()
	for _, dimension := range d.settings.Dimensions {
		tally := map[string]int{}
		counted := 0
		for _, vote := range v.Votes {
			if vote.Dimension == dimension && vote.Reconciled != "" && !d.dropped(vote.Member) {
				counted++
				tally[vote.Reconciled]++
			}
		}
		if counted == 0 {
			continue
		}
		voted = true
		v.PerDimension[dimension] = winnerTie
		switch {
		case 2*tally[v.AgentA] > counted:
			v.PerDimension[dimension] = v.AgentA
			lead += weights[dimension].Weight
		case 2*tally[v.AgentB] > counted:
			v.PerDimension[dimension] = v.AgentB
			lead -= weights[dimension].Weight
		}
	}
	switch {
	case !voted: // nobody has said that they are equal
	case math.Abs(lead) < narrowLead-1e-12:
		v.Winner = winnerTie
	case lead > 0:
		v.Winner = v.AgentA
	default:
		v.Winner = v.AgentB
	}
}

func (d *deriver) dropped(member string) bool {
	return slices.ContainsFunc(d.members, func(s seat) bool {
		return s.member.Name == member && s.Swaps != nil && s.Swaps.Dropped
	})
}
