package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// brokenFirst puts a broken attempt, which was paid for, before each of the first n runs.
func brokenFirst(records []ledger.Record, n int) []ledger.Record {
	var all []ledger.Record
	for i, r := range records {
		r.CostUSD, r.PhaseMs = new(1.0), map[string]int64{"agent": 1000}
		if i < n {
			broken := r
			broken.Verdict, broken.ErrorClass, broken.Final = ledger.Error, ledger.ErrorProvider, false
			broken.CostUSD, broken.PhaseMs = new(0.6), map[string]int64{"agent": 600}
			all = append(all, broken)
			r.Attempt++
		}
		all = append(all, r)
	}
	return all
}

// A trial shows what became of everyone who was planned; so does every report of an experiment.
func TestTheFlowOfEachArmIsShown(t *testing.T) {
	a := brokenFirst(armRuns("a", repeat("FFF", 12)...), 0)
	b := brokenFirst(armRuns("b", repeat("PPF", 12)...), 18)
	b[len(b)-1].Outcome, b[len(b)-2].HeldMs = "timeout", 500
	r := build(t, Input{Records: slices.Concat(a, b), K: []int{1}})
	c, err := Compare(&r.Groups[0], &r.Groups[1], CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	const flow = "flow of b: 36 planned → 36 started → 18 retried (provider 18) → 1 stopped by a limit → " +
		"1 held by rate limits → 0 with failed model calls → 36 graded"
	var compared strings.Builder
	if err := c.Markdown(&compared); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		textOf(t, c), compared.String(), markdownOf(t, r, []int{1}, Compact),
	} {
		wantIn(t, text, flow)
	}
	wantIn(t, textOf(t, c), "flow of a: 36 planned → 36 started → 0 retried → 0 stopped by a limit → "+
		"0 held by rate limits → 0 with failed model calls → 36 graded")
	if got := r.Groups[1].Flow; got.Planned != 36 || got.Retried != 18 || got.Why["provider"] != 18 || got.Held != 1 {
		t.Errorf("%+v", got)
	}
}

// The result of first attempts stands beside the headline: retries may have met the bad runs of one
// arm.
func TestTheResultOfFirstAttemptsStandsBesideTheHeadline(t *testing.T) {
	a := brokenFirst(armRuns("a", repeat("FFF", 12)...), 0)
	b := brokenFirst(armRuns("b", repeat("PPF", 12)...), 18)
	first, rest, _ := strings.Cut(textOf(t, compared(t, CompareConfig{}, a, b)), "\n")
	wantIn(t, first, "percentage points higher")
	head, _, _ := strings.Cut(rest, "\n\n")
	wantIn(t, head, "first attempts only: a 0 of 36, b 12 of 36 (18 ended in errors), difference +33.3 points")
	again := textOf(t, compared(t, CompareConfig{}, a, brokenFirst(armRuns("b", repeat("PPF", 12)...), 0)))
	if strings.Contains(again, "first attempts only") {
		t.Error("nothing was retried:\n" + again)
	}
}

// An attempt that ended in an error was paid for and waited for, too.
func TestBrokenAttemptsAreInTheRatios(t *testing.T) {
	c := compared(t, CompareConfig{}, brokenFirst(armRuns("a", repeat("PPP", 12)...), 0),
		brokenFirst(armRuns("b", repeat("PPP", 12)...), 36))
	wantIn(t, textOf(t, c), "cost: ×1.60")
	wantIn(t, textOf(t, c), "agent time: ×1.60")
}

// TestAttemptsWhoseRecordsAreGoneAreRetries: damaged lines that are left out may hold the errors
// after which runs were drawn again.
func TestAttemptsWhoseRecordsAreGoneAreRetries(t *testing.T) {
	claim := func(attempt int) (string, int) {
		b := armRuns("b", repeat("PPP", 12)...)
		for i := range b {
			b[i].Attempt = attempt
		}
		r := build(t, Input{Records: slices.Concat(armRuns("a", repeat("FFF", 12)...), b), K: []int{1}})
		c, err := Compare(&r.Groups[0], &r.Groups[1], CompareConfig{})
		if err != nil {
			t.Fatal(err)
		}
		return string(c.Decision.Claim), r.Groups[1].Flow.Retried
	}
	if claimed, retried := claim(1); claimed != string(stats.Improved) || retried != 0 {
		t.Errorf("first attempts: %s, %d retried", claimed, retried)
	}
	if claimed, retried := claim(2); claimed == string(stats.Improved) || retried != 36 {
		t.Errorf("second attempts without the first: %s, %d retried", claimed, retried)
	}
}
