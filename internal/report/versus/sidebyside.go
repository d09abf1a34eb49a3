package versus

import (
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/stats"
)

// sideBySide compares the runs of the same task and number of two arms: when they reached which
// milestone, and what system prompts they had.
func (b *builder) sideBySide(pair *Pair, first, second *arm) {
	type slot struct {
		task string
		run  int
	}
	others := map[slot]*attempt{}
	for _, run := range second.runs {
		others[slot{run.Task, run.Run}] = run.attempt
	}
	var runs [][2]*evidence.Run
	for _, run := range first.runs {
		own, other := run.attempt, others[slot{run.Task, run.Run}]
		if other == nil {
			continue
		}
		if pair.Prompts.A == "" { // system prompts differ little between runs
			pair.Prompts = comparePrompts(b.prompts(own), b.prompts(other))
		}
		runs = append(runs, [2]*evidence.Run{own.Run, other.Run})
	}
	pair.Prompts.Labels = orEmpty(pair.Prompts.Labels)
	pair.Milestones, pair.Order = compareMilestones(runs)
}

// maxPromptLines bounds the changed lines of system prompts that are shown of a pair.
const maxPromptLines = 200

// comparePrompts compares by label and line. All lines are counted; the first are shown.
func comparePrompts(a, b []evidence.PromptText) evidence.PromptComparison {
	compared := evidence.ComparePrompts(a, b)
	room := maxPromptLines
	for i := range compared.Labels {
		label := &compared.Labels[i]
		label.Lines = label.Lines[:min(len(label.Lines), room)]
		room -= len(label.Lines)
	}
	return compared
}

// prompts returns what reached the model of a run beside the conversation. If the record of its
// calls cannot be read, the report says so and uses what the trace shows.
func (b *builder) prompts(of *attempt) []evidence.PromptText {
	if of.files == nil {
		return of.Run.Prompts
	}
	if known, ok := b.prompted[of.Run]; ok {
		return known
	}
	list, err := of.files.Prompts(of.Record, of.Run)
	if err != nil {
		b.report.Warnings = append(b.report.Warnings, err.Error())
	}
	if b.prompted == nil {
		b.prompted = map[*evidence.Run][]evidence.PromptText{}
	}
	b.prompted[of.Run] = list
	return list
}

// swaps adds the comparisons that judges made in both orders, and how often the order decided.
func (b *builder) swaps(pair *Pair, one, two *arm) error {
	if b.judgement == nil {
		return nil
	}
	first, second := one.Provenance.Arm, two.Provenance.Arm
	var views []stats.SwapView
	for _, verdict := range b.judgement.Result.Pairs {
		same := verdict.AgentA == first && verdict.AgentB == second
		if !same && (verdict.AgentA != second || verdict.AgentB != first) {
			continue
		}
		pair.Pairwise = append(pair.Pairwise, verdict)
		for _, vote := range verdict.Votes {
			if vote.OrderAB == "" || vote.OrderBA == "" {
				continue
			}
			views = append(views, stats.SwapView{
				WhenAFirst: winner(vote.OrderAB, verdict.AgentA, verdict.AgentB),
				WhenBFirst: winner(vote.OrderBA, verdict.AgentA, verdict.AgentB),
			})
		}
	}
	if len(views) == 0 {
		return nil
	}
	summary, err := stats.SummariseSwaps(views)
	if err != nil {
		return err
	}
	pair.Primacy, pair.Recency = summary.Primacy, summary.Recency
	if summary.Decisive > 0 {
		pair.FlipRate = &summary.FlipRate
	}
	return nil
}

func winner(named, a, b string) stats.Winner {
	switch named {
	case a:
		return stats.WinnerA
	case b:
		return stats.WinnerB
	}
	return stats.WinnerT
}
