package versus

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/session"
)

// promptSection says how the system prompts of two agents differ, or that they were not captured;
// those that are the same are left out.
func promptSection(pairs []Pair) section {
	s := section{title: "System prompts", head: []string{"pair", "label", "status", "bytes", "lines"}}
	for i := range pairs {
		p := &pairs[i]
		name := p.A + ", " + p.B
		for _, side := range [][2]string{{p.A, p.Prompts.A}, {p.B, p.Prompts.B}} {
			if side[1] == evidence.PromptsNotCaptured {
				s.rows = append(s.rows, []string{name, dash, side[0] + ": " + side[1], dash, dash})
			}
		}
		tools := map[string]int{} // by status: a row for each would be a long table
		for _, label := range p.Prompts.Labels {
			if label.Status == evidence.PromptSame {
				continue
			}
			if strings.HasPrefix(label.Label, session.ToolLabel) {
				tools[label.Status]++
				continue
			}
			s.rows = append(s.rows, []string{
				name, label.Label, label.Status, fmt.Sprintf("%d, %d", label.BytesA, label.BytesB),
				fmt.Sprintf("+%d −%d", label.Added, label.Removed),
			})
		}
		for _, status := range slices.Sorted(maps.Keys(tools)) {
			s.rows = append(s.rows, []string{name, report.Count(tools[status], "tool"), status, dash, dash})
		}
	}
	return s
}

// pairwiseSection counts the comparisons that the panel made of two runs, in both orders.
func pairwiseSection(pairs []Pair) section {
	s := section{
		title: "Compared side by side, by the panel",
		head:  []string{"pair", "dimension", "n", "first wins", "second wins", "ties", "no winner", "flip rate"},
	}
	for i := range pairs {
		p := &pairs[i]
		flips := dash
		if p.FlipRate != nil {
			flips = fmt.Sprintf("%.2f", *p.FlipRate)
		}
		count := func(dimension string, winner func(*judge.PairwiseVerdict) (string, bool)) {
			n, wins := 0, map[string]int{}
			for j := range p.Pairwise {
				if who, compared := winner(&p.Pairwise[j]); compared {
					n++
					wins[who]++
				}
			}
			if n == 0 {
				return
			}
			first, second, none := wins[p.A], wins[p.B], wins[""]
			row := []string{p.A + " against " + p.B, dimension}
			for _, number := range []int{n, first, second, n - first - second - none, none} {
				row = append(row, fmt.Sprint(number))
			}
			s.rows = append(s.rows, append(row, flips))
		}
		count("all", func(v *judge.PairwiseVerdict) (string, bool) { return v.Winner, true })
		for _, dimension := range evidence.Dimensions() {
			count(dimension, func(v *judge.PairwiseVerdict) (string, bool) {
				of := func(vote judge.SwapVote) bool { return vote.Dimension == dimension }
				return v.PerDimension[dimension], slices.ContainsFunc(v.Votes, of)
			})
		}
	}
	return s
}

// judgeSection says who judged, how well, and what that cost.
func (r *EvalReport) judgeSection() section {
	s := section{
		title: "Judges",
		head:  []string{"member", "model", "verdicts", "abstained", "dropped claims", "flip rate", "cost", "left out"},
	}
	for i := range r.Panel.Members {
		m := &r.Panel.Members[i]
		flips, out := dash, dash
		if m.Swaps != nil {
			flips = fmt.Sprintf("%.2f of %d", m.Swaps.FlipRate, m.Swaps.Decisive)
		}
		if m.LeftOut != "" {
			out = m.LeftOut
		}
		s.rows = append(s.rows, []string{
			m.Name, m.Model, fmt.Sprint(m.Verdicts), fmt.Sprint(m.Abstained), fmt.Sprint(m.DroppedClaims), flips,
			costText(m.Cost), out,
		})
	}
	if len(s.rows) == 0 {
		return section{}
	}
	if r.Panel.NEff != nil {
		s.lines = append(s.lines, fmt.Sprintf("effective number of judges: %.2f", *r.Panel.NEff))
	}
	for i := range r.Calibration {
		s.lines = append(s.lines, calibrationText(&r.Calibration[i]))
	}
	return s
}

func calibrationText(c *judge.Calibration) string {
	text := fmt.Sprintf("calibration of %s: %s", c.Dimension, c.Status)
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	if c.TPR != nil && c.TNR != nil {
		text += fmt.Sprintf("; passes %.2f of %d good runs, fails %.2f of %d bad ones", *c.TPR, c.M1, *c.TNR, c.M0)
	}
	if c.Carried {
		text += " (measured in another run directory)"
	}
	return text
}

func costText(c judge.Cost) string {
	switch c.Unpriced {
	case 0:
		return display.FineDollars(c.USD)
	case c.Replies:
		return "unknown"
	}
	return fmt.Sprintf("%s and %s without a price", display.FineDollars(c.USD), report.Count(c.Unpriced, "reply"))
}
