package evidence

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/fit-eval/fit/session"
)

// Comparison sets two attempts side by side. Deltas are B's value minus A's.
type Comparison struct {
	Milestones []MilestoneDelta `json:"milestones"`
	// OrderA and OrderB are the milestones that each reached, in order, such as
	// read<search<edit<test.
	OrderA string `json:"orderA"`
	OrderB string `json:"orderB"`
	// Discordant is the Kendall distance of the two orders: how many of the Pairs of milestones
	// that both reached at different times came in the opposite order.
	Discordant int              `json:"discordant"`
	Pairs      int              `json:"pairs"`
	Efficiency []EfficiencyPair `json:"efficiency"`
	Prompts    PromptComparison `json:"prompts"`
}

// MilestoneDelta compares when two attempts reached a milestone. A milestone that one did not reach
// is censored: its delta is not known, and never 0.
type MilestoneDelta struct {
	Kind string `json:"kind"`
	// A and B are reached, unreached, or unseen: it happened, and the trace does not show when.
	A              string `json:"a"`
	B              string `json:"b"`
	ElapsedA       *int64 `json:"elapsedA"`
	ElapsedB       *int64 `json:"elapsedB"`
	DeltaElapsedMs *int64 `json:"deltaElapsedMs"`
	DeltaTurn      *int   `json:"deltaTurn"`
}

// Whether a milestone was reached.
const (
	Reached   = "reached"
	Unreached = "unreached"
	Unseen    = "unseen"
)

// EfficiencyPair is one figure of two attempts; nil is not known.
type EfficiencyPair struct {
	Name string   `json:"name"`
	A    *float64 `json:"a"`
	B    *float64 `json:"b"`
	// LogRatio is ln(B/A), where both are positive.
	LogRatio *float64 `json:"logRatio"`
}

// PromptComparison compares the system prompts of two attempts by label and line.
type PromptComparison struct {
	// A and B are captured or not captured.
	A      string       `json:"a"`
	B      string       `json:"b"`
	Labels []PromptDiff `json:"labels"`
	// PrefixA and PrefixB are the SHA-256 of everything that stands before the conversation. Where
	// they are equal, a provider's cache can serve both.
	PrefixA string `json:"prefixA,omitempty"`
	PrefixB string `json:"prefixB,omitempty"`
}

// Whether system prompts were captured.
const (
	PromptsCaptured    = "captured"
	PromptsNotCaptured = "not captured"
)

// PromptDiff compares the texts of one label.
type PromptDiff struct {
	Label   string `json:"label"`
	Status  string `json:"status"` // same, different, only-a, only-b
	BytesA  int    `json:"bytesA"`
	BytesB  int    `json:"bytesB"`
	Added   int    `json:"added"`   // lines that only B has
	Removed int    `json:"removed"` // lines that only A has
	// Lines are the changed lines, with + or - in front, as far as there is room.
	Lines []string `json:"lines,omitempty"`
}

// Compare sets two attempts side by side.
func Compare(a, b *Run) Comparison {
	c := Comparison{
		Milestones: []MilestoneDelta{},
		OrderA:     order(a),
		OrderB:     order(b),
		Efficiency: compareEfficiency(&a.Efficiency, &b.Efficiency),
		Prompts:    ComparePrompts(a.Prompts, b.Prompts),
	}
	for _, kind := range milestoneKinds {
		c.Milestones = append(c.Milestones, compareMilestone(kind, a, b))
	}
	c.Discordant, c.Pairs = kendall(a, b)
	return c
}

// milestoneKinds are the nine milestones in the usual order.
var milestoneKinds = []string{
	session.FirstSearch, session.FirstFileRead, session.FirstBashCommand, session.FirstFileEdit, session.FirstTestRun,
	session.FirstErrorRecovery, session.TaskCompletion, session.VerificationPass, session.VerificationFail,
}

// find returns when a run reached a milestone; nil if it did not.
func find(r *Run, kind string) *session.Milestone {
	for i := range r.Session.Milestones {
		if r.Session.Milestones[i].Kind == kind {
			return &r.Session.Milestones[i]
		}
	}
	return nil
}

// reached says whether a run reached a milestone. An edit that changed a file without being seen
// happened, and nobody knows when.
func reached(r *Run, kind string) string {
	switch {
	case find(r, kind) != nil:
		return Reached
	case kind == session.FirstFileEdit && len(r.Files) > 0:
		return Unseen
	}
	return Unreached
}

func compareMilestone(kind string, a, b *Run) MilestoneDelta {
	d := MilestoneDelta{Kind: kind, A: reached(a, kind), B: reached(b, kind)}
	atA, atB := find(a, kind), find(b, kind)
	if atA != nil {
		d.ElapsedA = &atA.ElapsedMs
	}
	if atB != nil {
		d.ElapsedB = &atB.ElapsedMs
	}
	if atA != nil && atB != nil {
		elapsed, turn := atB.ElapsedMs-atA.ElapsedMs, atB.TurnIndex-atA.TurnIndex
		d.DeltaElapsedMs, d.DeltaTurn = &elapsed, &turn
	}
	return d
}

// shortNames are those of the milestones in an order.
var shortNames = map[string]string{
	session.FirstFileRead: "read", session.FirstFileEdit: "edit", session.FirstTestRun: "test",
	session.FirstBashCommand: "bash", session.FirstSearch: "search", session.FirstErrorRecovery: "recovery",
	session.TaskCompletion: "completion",
}

// order lists the milestones of the agent's own doing in the order in which they were reached;
// those of the same moment are joined by =.
func order(r *Run) string {
	var list []session.Milestone
	for _, m := range r.Session.Milestones {
		if shortNames[m.Kind] != "" {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b session.Milestone) int {
		return cmp.Or(cmp.Compare(a.ElapsedMs, b.ElapsedMs), strings.Compare(shortNames[a.Kind], shortNames[b.Kind]))
	})
	var out strings.Builder
	for i, m := range list {
		switch {
		case i == 0:
		case m.ElapsedMs == list[i-1].ElapsedMs:
			out.WriteByte('=')
		default:
			out.WriteByte('<')
		}
		out.WriteString(shortNames[m.Kind])
	}
	return out.String()
}

// kendall counts the pairs of milestones that both runs reached, each at different times, and those
// of them that came in the opposite order.
func kendall(a, b *Run) (discordant, pairs int) {
	var both []string
	for _, kind := range milestoneKinds {
		if shortNames[kind] != "" && find(a, kind) != nil && find(b, kind) != nil {
			both = append(both, kind)
		}
	}
	for i, first := range both {
		for _, second := range both[i+1:] {
			inA := cmp.Compare(find(a, first).ElapsedMs, find(a, second).ElapsedMs)
			inB := cmp.Compare(find(b, first).ElapsedMs, find(b, second).ElapsedMs)
			if inA == 0 || inB == 0 {
				continue
			}
			pairs++
			if inA != inB {
				discordant++
			}
		}
	}
	return discordant, pairs
}

// compareEfficiency sets the figures of two runs side by side.
func compareEfficiency(a, b *Efficiency) []EfficiencyPair {
	whole := func(n int64) *float64 { return score(float64(n)) }
	elapsed := func(ms *int64) *float64 {
		if ms == nil {
			return nil
		}
		return whole(*ms)
	}
	figures := func(e *Efficiency) []*float64 {
		calls := 0
		for _, n := range e.ToolCalls {
			calls += n
		}
		return []*float64{
			whole(e.WallClockMs), whole(int64(e.Turns)), whole(int64(calls)), whole(e.Usage.InputTokens),
			whole(e.Usage.OutputTokens), whole(e.Usage.CacheReadTokens), whole(e.Usage.CacheWriteTokens),
			e.Usage.CostUSD,
			whole(int64(e.EditsAttempted)), whole(int64(e.EditsFailed)), e.ExplorationShare, elapsed(e.FirstEditMs),
			elapsed(e.GreenMs), e.CacheHitRatio,
		}
	}
	names := []string{
		"wallClockMs", "turns", "toolCalls", "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens",
		"costUsd", "editsAttempted", "editsFailed", "explorationShare", "firstEditMs", "greenMs", "cacheHitRatio",
	}
	ofA, ofB := figures(a), figures(b)
	pairs := make([]EfficiencyPair, len(names))
	for i, name := range names {
		pairs[i] = EfficiencyPair{Name: name, A: ofA[i], B: ofB[i]}
		if ofA[i] != nil && ofB[i] != nil && *ofA[i] > 0 && *ofB[i] > 0 {
			pairs[i].LogRatio = score(math.Log(*ofB[i] / *ofA[i]))
		}
	}
	return pairs
}
