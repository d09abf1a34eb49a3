package evidence_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

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
