package judge

import (
	"cmp"
	"slices"

	"github.com/fit-eval/fit/stats"
)

// The rules by which members are chosen.
const (
	// minSelectLabels is how many labels of each kind the dev split needs: fewer would choose by
	// chance.
	minSelectLabels = 5
	// chosenMembers is the size of a chosen panel.
	chosenMembers = 3
	// panelGain is how much better than its best member a panel must be to be worth its price.
	panelGain = 0.02
)

// Choice says which members judge a dimension, and why.
type Choice struct {
	Dimension string   `json:"dimension"`
	Members   []string `json:"members"`
	// Accuracy is that of each member on the dev split, best first; Panel that of the members
	// together.
	Accuracy []stats.Calibration `json:"accuracy"`
	Panel    stats.Calibration   `json:"panel"`
	// ErrorCorrelation and EffectiveVotes say how much the members share their errors; nil if it is
	// unknown.
	ErrorCorrelation *float64 `json:"errorCorrelation"`
	EffectiveVotes   *float64 `json:"effectiveVotes"`
}

// Select chooses members for each dimension that has labels: the one with the highest Youden index
// on the dev split, and those that add most to it, unless the panel is hardly better than its best
// member. The result must be derived from all members.
func (l *Labels) Select(result *Result) (Selection, []Choice) {
	selection, choices := Selection{}, []Choice{}
	for _, dimension := range l.dimensionsLabelled() {
		ballots := l.ballots(result, dimension)
		if choice, ok := choose(dimension, ballots); ok {
			selection[dimension] = choice.Members
			choices = append(choices, choice)
		}
	}
	return selection, choices
}

// ballot is a labelled run with the votes of the members; a member that abstained has none.
type ballot struct {
	human bool
	votes map[string]bool
}

func (l *Labels) ballots(result *Result, dimension string) []ballot {
	verdicts := result.verdicts(dimension)
	var found []ballot
	for _, one := range l.Labels {
		if one.Dimension != dimension || one.Split != SplitDev {
			continue
		}
		b := ballot{human: one.Passed(), votes: map[string]bool{}}
		for _, vote := range verdicts[one.Cell()].Votes {
			if vote.Result != nil {
				b.votes[vote.Member] = *vote.Result == Pass
			}
		}
		found = append(found, b)
	}
	return found
}

// accuracy counts how often the majority of members is right. Runs without a majority are left out.
func accuracy(ballots []ballot, members []string) stats.Calibration {
	var c stats.Calibration
	for _, b := range ballots {
		verdict := PanelVerdict{}
		for _, member := range members {
			if passed, voted := b.votes[member]; voted && passed {
				verdict.Pass++
			} else if voted {
				verdict.Fail++
			}
		}
		verdict.decide(len(members))
		if verdict.Result != nil {
			c.Count(b.human, *verdict.Result == Pass)
		}
	}
	return c
}

func choose(dimension string, ballots []ballot) (Choice, bool) {
	choice := Choice{Dimension: dimension}
	names := map[string]bool{}
	for _, b := range ballots {
		for name := range b.votes {
			names[name] = true
		}
	}
	for _, name := range sortedKeys(names) {
		c := accuracy(ballots, []string{name})
		c.Agent = name
		if c.M1 >= minSelectLabels && c.M0 >= minSelectLabels {
			choice.Accuracy = append(choice.Accuracy, c)
		}
	}
	if len(choice.Accuracy) == 0 {
		return Choice{}, false
	}
	slices.SortStableFunc(choice.Accuracy, func(a, b stats.Calibration) int {
		return cmp.Compare(b.Youden(), a.Youden())
	})
	best := choice.Accuracy[0]
	choice.Members = grow(ballots, choice.Accuracy)
	choice.Panel = accuracy(ballots, choice.Members)
	if len(choice.Members) > 1 && !(youden(choice.Panel) >= best.Youden()+panelGain) {
		choice.Members, choice.Panel = []string{best.Agent}, best
	}
	choice.Panel.Agent = ""
	choice.correlate(ballots)
	return choice, true
}

// grow adds the member that makes the panel best, until it is full.
func grow(ballots []ballot, ranked []stats.Calibration) []string {
	members := []string{ranked[0].Agent}
	for len(members) < min(chosenMembers, len(ranked)) {
		best, gain := "", 0.0
		for _, candidate := range ranked {
			if slices.Contains(members, candidate.Agent) {
				continue
			}
			with := youden(accuracy(ballots, append(slices.Clone(members), candidate.Agent)))
			if best == "" || with > gain {
				best, gain = candidate.Agent, with
			}
		}
		members = append(members, best)
	}
	return members
}

// youden returns −1 if one of the kinds is missing, because nothing is known then.
func youden(c stats.Calibration) float64 {
	if c.M1 == 0 || c.M0 == 0 {
		return -1
	}
	return c.Youden()
}

// correlate measures how much the members share their errors, over the runs on which all have
// voted.
func (c *Choice) correlate(ballots []ballot) {
	if len(c.Members) < 2 {
		return
	}
	wrong := make([][]bool, len(c.Members))
	for _, b := range ballots {
		complete := !slices.ContainsFunc(c.Members, func(name string) bool { _, voted := b.votes[name]; return !voted })
		for i, name := range c.Members {
			if complete {
				wrong[i] = append(wrong[i], b.votes[name] != b.human)
			}
		}
	}
	correlation, err := stats.ErrorCorrelation(wrong)
	if err != nil {
		return
	}
	c.ErrorCorrelation = &correlation
	if votes, err := stats.EffectiveVotes(len(c.Members), correlation); err == nil {
		c.EffectiveVotes = &votes
	}
}
