package evidence_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/ledger"
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
	a := &evidence.Run{Session: session.EnrichedSession{Milestones: reaching(session.FirstFileRead, 100,
		session.FirstSearch, 200, session.FirstFileEdit, 300, session.FirstTestRun, 300, session.VerificationPass,
		900)}}
	b := &evidence.Run{
		Session: session.EnrichedSession{Milestones: reaching(session.FirstSearch, 50, session.FirstFileRead, 150,
			session.FirstTestRun, 700, session.VerificationFail, 900)},
		Files: []evidence.FileChange{{Path: "a.go"}},
	}
	c := evidence.Compare(a, b)
	if c.Discordant != 1 || c.Pairs != 3 {
		t.Errorf("%d of %d pairs are discordant", c.Discordant, c.Pairs)
	}
	number := func(n int64) *int64 { return &n }
	turns := func(n int) *int { return &n }
	want := map[string]evidence.MilestoneDelta{
		session.FirstFileRead: {
			A: evidence.Reached, B: evidence.Reached, ElapsedA: number(100), ElapsedB: number(150),
			DeltaElapsedMs: number(50), DeltaTurn: turns(0),
		},
		session.FirstTestRun: {
			A: evidence.Reached, B: evidence.Reached, ElapsedA: number(300), ElapsedB: number(700),
			DeltaElapsedMs: number(400), DeltaTurn: turns(4),
		},
		session.FirstFileEdit:    {A: evidence.Reached, B: evidence.Unseen, ElapsedA: number(300)},
		session.TaskCompletion:   {A: evidence.Unreached, B: evidence.Unreached},
		session.VerificationPass: {A: evidence.Reached, B: evidence.Unreached, ElapsedA: number(900)},
	}
	for _, got := range c.Milestones {
		if expected, look := want[got.Kind]; look {
			expected.Kind = got.Kind
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", got.Kind, diff)
			}
		}
	}
	if len(c.Milestones) != 9 {
		t.Errorf("%d milestones", len(c.Milestones))
	}
	same := evidence.Compare(a, a)
	if same.Discordant != 0 || same.Pairs != 5 {
		t.Errorf("with itself: %d of %d", same.Discordant, same.Pairs)
	}
}

func TestSystemPromptsAreComparedByLabelAndLine(t *testing.T) {
	prompt := func(label, content string) evidence.PromptText {
		return evidence.PromptText{Label: label, Content: content, SHA256: content, Bytes: len(content)}
	}
	a := []evidence.PromptText{
		prompt("profile", "one\ntwo\nthree\nfour"), prompt("same", "x"), prompt("gone", "y"),
	}
	b := []evidence.PromptText{
		prompt("same", "x"), prompt("profile", "one\n2\nthree\nfour\nfive"), prompt("new", "p\nq"),
	}
	c := evidence.ComparePrompts(a, b)
	want := []evidence.PromptDiff{
		{Label: "profile", Status: "different", BytesA: 18, BytesB: 21, Added: 2, Removed: 1, Lines: []string{
			"-two",
			"+2", "+five",
		}},
		{Label: "same", Status: "same", BytesA: 1, BytesB: 1},
		{Label: "gone", Status: "only-a", BytesA: 1, Removed: 1, Lines: []string{"-y"}},
		{Label: "new", Status: "only-b", BytesB: 3, Added: 2, Lines: []string{"+p", "+q"}},
	}
	if diff := cmp.Diff(want, c.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if c.A != evidence.PromptsCaptured || c.PrefixA == c.PrefixB || c.PrefixA == "" {
		t.Errorf("%+v", c)
	}
	nothing := evidence.ComparePrompts(a, nil)
	if nothing.B != "not captured" || nothing.PrefixB != "" {
		t.Errorf("nothing captured: %+v", nothing)
	}
}

// TestLongPromptsAreComparedQuickly: two texts without anything in common take no quadratic time.
func TestLongPromptsAreComparedQuickly(t *testing.T) {
	long := func(word string) []evidence.PromptText {
		return []evidence.PromptText{{Label: "l", Content: strings.Repeat(word+"\n", 50_000)}}
	}
	c := evidence.ComparePrompts(long("a"), long("b")).Labels[0]
	if c.Added != 50_000 || c.Removed != 50_000 || len(c.Lines) != 200 {
		t.Errorf("%d added, %d removed, %d shown", c.Added, c.Removed, len(c.Lines))
	}
}

// TestVerificationIsNotTheAgentsTime: a long check makes no agent slow.
func TestVerificationIsNotTheAgentsTime(t *testing.T) {
	record := attempt(ledger.Pass, 0)
	record.Verify.EndMs = 5_000_000
	w := worked()
	text := w.String()
	w.Reset()
	w.WriteString(text[:strings.LastIndex(strings.TrimRight(text, "\n"), "\n")+1]) // no agent_end
	run := collect(t, evidence.Sources{Task: evidence.Task{ID: "fix"}, Record: record, Trace: w})
	if run.Efficiency.WallClockMs != 7100 || milestones(run)[session.VerificationPass] != 4_000_000 {
		t.Errorf("wall clock %d, verified at %d", run.Efficiency.WallClockMs, milestones(run)[session.VerificationPass])
	}
}
