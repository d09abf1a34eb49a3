package versus

import (
	"cmp"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/stats"
)

// milestoneKinds are the nine milestones in the usual order. All but the last two, those of the
// check, are reached by the agent itself.
var milestoneKinds = []string{
	session.FirstSearch, session.FirstFileRead, session.FirstBashCommand, session.FirstFileEdit, session.FirstTestRun,
	session.FirstErrorRecovery, session.TaskCompletion, session.VerificationPass, session.VerificationFail,
}

// compareMilestones says when two arms reached their milestones, over pairs of runs of A and B.
func compareMilestones(runs [][2]*evidence.Run) ([]MilestoneGap, OrderGap) {
	gaps, order := []MilestoneGap{}, OrderGap{}
	for _, pair := range runs {
		order.add(pair)
	}
	for _, kind := range milestoneKinds {
		gap := MilestoneGap{Kind: kind}
		var elapsed, turns []float64
		for _, pair := range runs {
			a, b := reached(pair[0], kind), reached(pair[1], kind)
			if a == nil {
				gap.CensoredA++
			}
			if b == nil {
				gap.CensoredB++
			}
			if a != nil && b != nil {
				gap.Both++
				elapsed = append(elapsed, float64(a.ElapsedMs-b.ElapsedMs))
				turns = append(turns, float64(a.TurnIndex-b.TurnIndex))
			}
		}
		gap.DeltaElapsedMs, gap.DeltaTurn = ofSome(elapsed, stats.Median), ofSome(turns, stats.Median)
		if len(runs) > 0 {
			gaps = append(gaps, gap)
		}
	}
	return gaps, order
}

// reached returns when a run reached a milestone; nil if it did not, or its trace does not show it.
func reached(r *evidence.Run, kind string) *session.Milestone {
	for i := range r.Session.Milestones {
		if r.Session.Milestones[i].Kind == kind {
			return &r.Session.Milestones[i]
		}
	}
	return nil
}

// add counts the pairs of the agents' own milestones that both runs reached, each at different
// times, and those of them that came in the opposite order: Kendall's distance.
func (o *OrderGap) add(runs [2]*evidence.Run) {
	var both [][2]int64
	for _, kind := range milestoneKinds[:len(milestoneKinds)-2] {
		if a, b := reached(runs[0], kind), reached(runs[1], kind); a != nil && b != nil {
			both = append(both, [2]int64{a.ElapsedMs, b.ElapsedMs})
		}
	}
	for i, first := range both {
		for _, second := range both[i+1:] {
			inA, inB := cmp.Compare(first[0], second[0]), cmp.Compare(first[1], second[1])
			if inA == 0 || inB == 0 {
				continue
			}
			o.Pairs++
			if inA != inB {
				o.Discordant++
			}
		}
	}
}
