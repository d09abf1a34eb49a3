package judge

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/evidence"
)

// compareRuns judges pairs of runs; each pair is what the member says when A is shown first and
// when B is, in terms of A, B and T.
func compareRuns(t *testing.T, views ...string) *Result {
	t.Helper()
	settings := Settings{Panel: panel("m"), Prompts: builtin(t), Pairwise: PairsAll}
	settings.Dimensions = []string{evidence.Correctness}
	var subjects []Subject
	for i := range views {
		for _, arm := range []string{"A", "B"} {
			s := subject("t", arm, i)
			s.VerifyOutput = fmt.Sprintf("pair %d of %s", i, arm)
			subjects = append(subjects, s)
		}
	}
	say := func(q *question, _ Member) string {
		if q.kind != kindPair {
			return verdictJSON(Pass, cite(q))
		}
		var pair int
		first := ""
		if _, err := fmt.Sscanf(q.about, "X t/%1s/%d", &first, &pair); err != nil {
			t.Fatal(err)
		}
		winner := views[pair][strings.Index("AB", first)]
		switch string(winner) {
		case "T":
			return verdictJSON(winnerTie, cite(q))
		case first:
			return verdictJSON(winnerX, cite(q))
		case "-": // abstains
			return verdictJSON(winnerX)
		}
		return verdictJSON(winnerY, cite(q))
	}
	return Derive(answered(settings, subjects, say), settings, subjects, nil)
}

func TestTheNineOutcomes(t *testing.T) {
	outcomes := map[string]string{
		"AA": "A", "BB": "B", "AB": "tie!", "BA": "tie!", "AT": "tie", "TA": "tie", "BT": "tie", "TB": "tie",
		"TT": "tie", "-A": "", "A-": "",
	}
	for views, want := range outcomes {
		t.Run(views, func(t *testing.T) {
			result := compareRuns(t, views)
			p := result.Pairs[0]
			winner, bias := strings.CutSuffix(want, "!")
			if p.PerDimension[evidence.Correctness] != winner || p.BiasDetected != bias ||
				p.Votes[0].Reconciled != winner {
				t.Errorf("%s: %v, bias %v, votes %+v; want %s", views, p.PerDimension, p.BiasDetected, p.Votes, want)
			}
			if p.Winner != winner || p.AgentA != "A" || p.AgentB != "B" {
				t.Errorf("%s: winner %s, want %s", views, p.Winner, winner)
			}
		})
	}
}

func TestTheOrderOfPresentation(t *testing.T) {
	result := compareRuns(t, "AA", "AB", "BB", "AT", "TT", "BA", "AA", "AB", "BB", "AA")
	s := result.Members[0].Swaps
	if s.Decisive != 8 || s.Flips != 3 || s.FlipRate != .375 || math.Abs(s.FirstPick-10./17) > 1e-9 || s.A != 3 ||
		s.B != 2 || s.Ties != 5 || s.Primacy != 2 || s.Recency != 1 || s.Dropped {
		t.Errorf("%+v", s)
	}
	views := strings.Fields(strings.Repeat("AA AB AB ", 5))
	result = compareRuns(t, views...)
	if s := result.Members[0].Swaps; !s.Dropped {
		t.Errorf("a member with a flip rate of %v compares", s.FlipRate)
	}
	if p := result.Pairs[0]; p.Winner != "" || len(p.PerDimension) != 0 {
		t.Errorf("the vote of a member that does not compare counts: %q %v", p.Winner, p.PerDimension)
	}
}

// TestOnlyTiesAreCompared: the panel says the same of both runs in one dimension only.
func TestOnlyTiesAreCompared(t *testing.T) {
	settings := Settings{Panel: panel("m"), Prompts: builtin(t), Pairwise: PairsTies}
	settings.Dimensions = []string{evidence.Correctness, evidence.CodeQuality}
	subjects := []Subject{subject("t", "A", 0), subject("t", "B", 0)}
	subjects[1].Patch = []byte(fixture)
	pairs := 0
	say := func(q *question, _ Member) string {
		switch {
		case q.kind == kindPair:
			pairs++
			return verdictJSON(winnerTie, `req:r1 "add returns the sum"`)
		case q.dimension == evidence.CodeQuality && strings.Contains(q.user(), "new2"):
			return verdictJSON(Fail, cite(q))
		}
		return verdictJSON(Pass, cite(q))
	}
	result := Derive(answered(settings, subjects, say), settings, subjects, nil)
	_, compared := result.Pairs[0].PerDimension[evidence.CodeQuality]
	if compared || pairs != 2 || result.Missing != 0 {
		t.Errorf("%d comparisons, %v, %d missing", pairs, result.Pairs[0].PerDimension, result.Missing)
	}
}
