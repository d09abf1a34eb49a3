package versus

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/session"
)

func reaching(kinds ...any) []session.Milestone {
	var list []session.Milestone
	for i := 0; i < len(kinds); i += 2 {
		at := kinds[i+1].(int)
		list = append(list, session.Milestone{Kind: kinds[i].(string), ElapsedMs: int64(at), TurnIndex: at / 100})
	}
	return list
}

func TestMilestonesAreAligned(t *testing.T) {
	a := &evidence.Run{
		Session: session.EnrichedSession{Milestones: reaching(session.FirstSearch, 50, session.FirstFileRead, 150,
			session.FirstTestRun, 700, session.VerificationFail, 900)},
		Files: []evidence.FileChange{{Path: "a.go"}}, // edited at an unknown time
	}
	b := &evidence.Run{Session: session.EnrichedSession{Milestones: reaching(session.FirstFileRead, 100,
		session.FirstSearch, 200, session.FirstFileEdit, 300, session.FirstTestRun, 300, session.VerificationPass,
		900)}}
	gaps, order := compareMilestones([][2]*evidence.Run{{a, b}})
	if order.Discordant != 1 || order.Pairs != 3 {
		t.Errorf("%d of %d pairs are discordant", order.Discordant, order.Pairs)
	}
	number := func(n float64) *float64 { return &n }
	want := map[string]MilestoneGap{
		session.FirstFileRead:    {Both: 1, DeltaElapsedMs: number(50), DeltaTurn: number(0)},
		session.FirstTestRun:     {Both: 1, DeltaElapsedMs: number(400), DeltaTurn: number(4)},
		session.FirstFileEdit:    {CensoredA: 1},
		session.TaskCompletion:   {CensoredA: 1, CensoredB: 1},
		session.VerificationPass: {CensoredA: 1},
	}
	for _, got := range gaps {
		if expected, look := want[got.Kind]; look {
			expected.Kind = got.Kind
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", got.Kind, diff)
			}
		}
	}
	if len(gaps) != 9 {
		t.Errorf("%d milestones", len(gaps))
	}
	if _, same := compareMilestones([][2]*evidence.Run{{b, b}}); same.Discordant != 0 || same.Pairs != 5 {
		t.Errorf("with itself: %d of %d", same.Discordant, same.Pairs)
	}
}
