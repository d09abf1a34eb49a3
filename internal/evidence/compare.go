package evidence

import (
	"cmp"

	"github.com/fit-eval/fit/session"
)

// Comparison sets the milestones of two attempts side by side. Deltas are B's value minus A's.
type Comparison struct {
	Milestones []MilestoneDelta `json:"milestones"`
	// Discordant is the Kendall distance of the orders in which they were reached: how many of the
	// Pairs of milestones that both reached at different times came in the opposite order.
	Discordant int `json:"discordant"`
	Pairs      int `json:"pairs"`
}

// MilestoneDelta compares when two attempts reached a milestone. A milestone that one did not reach
// is censored: its delta is not known, and never 0.
type MilestoneDelta struct {
	Kind string `json:"kind"`
	// A and B are reached, unreached, or unseen, which means that it happened but the trace does
	// not show when.
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

// PromptComparison compares the system prompts of two attempts by label and line.
type PromptComparison struct {
	// A and B are captured or not captured.
	A      string       `json:"a"`
	B      string       `json:"b"`
	Labels []PromptDiff `json:"labels"`
	// PrefixA and PrefixB are the SHA-256 of everything before the conversation. If they are equal,
	// a provider's cache can serve both.
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
	// Lines are the changed lines, with + or - in front, up to a limit.
	Lines []string `json:"lines,omitempty"`
}

// Compare sets the milestones of two attempts side by side.
func Compare(a, b *Run) Comparison {
	c := Comparison{Milestones: make([]MilestoneDelta, len(milestoneKinds))}
	for i, kind := range milestoneKinds {
		c.Milestones[i] = compareMilestone(kind, a, b)
	}
	c.Discordant, c.Pairs = kendall(a, b)
	return c
}

// milestoneKinds are the nine milestones in the usual order. All but the last two, those of the
// check, are reached by the agent itself.
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

// reached returns whether a run reached a milestone. An edit that changed a file unseen happened at
// an unknown time.
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

// kendall counts the pairs of the agents' own milestones that both runs reached, each at different
// times, and those of them that came in the opposite order.
func kendall(a, b *Run) (discordant, pairs int) {
	var both [][2]int64
	for _, kind := range milestoneKinds[:len(milestoneKinds)-2] {
		if atA, atB := find(a, kind), find(b, kind); atA != nil && atB != nil {
			both = append(both, [2]int64{atA.ElapsedMs, atB.ElapsedMs})
		}
	}
	for i, first := range both {
		for _, second := range both[i+1:] {
			inA, inB := cmp.Compare(first[0], second[0]), cmp.Compare(first[1], second[1])
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
