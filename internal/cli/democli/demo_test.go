package democli

import (
	"io"
	"os"
	"testing"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/report"
	"github.com/fit-eval/fit/stats"
)

func measured(t *testing.T, opts experimentOptions) *report.Comparison {
	t.Helper()
	con := &console.Console{Stdout: io.Discard, Stderr: io.Discard, Environ: os.Environ()}
	opts.dir, opts.runs = t.TempDir(), 3
	out, err := runExperiment(t.Context(), con, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	comparison, err := compareArms(out)
	if err != nil {
		t.Fatal(err)
	}
	return comparison
}

// TestNothingIsClaimedWhereNothingChanged runs the whole path, from agents to decision, with two
// equal arms. The dice are seeded, so the outcome is the same every time; that false claims are
// rare over many seeds is shown beside the experiment itself.
func TestNothingIsClaimedWhereNothingChanged(t *testing.T) {
	decision := measured(t, experimentOptions{seed: 1, same: true}).Decision
	if decision.Claim == stats.Improved || decision.Claim == stats.Regressed {
		t.Error(decision.Sentence)
	}
}

func TestTheChangeIsFound(t *testing.T) {
	comparison := measured(t, experimentOptions{seed: 1})
	if comparison.Decision.Claim != stats.Improved {
		t.Errorf("claim: %s", comparison.Decision.Sentence)
	}
	if comparison.CostA == nil || comparison.CostB == nil || *comparison.CostB <= *comparison.CostA {
		t.Errorf("costs: %v and %v; trying things out costs something", comparison.CostA, comparison.CostB)
	}
}

// Numbers that nobody can mean are mistakes of use, and cost nothing.
func TestADemoOfAnImpossibleSizeIsRefused(t *testing.T) {
	for _, runs := range []string{"-1", "0", "1000000000", "many"} {
		con := &console.Console{Stdout: io.Discard, Stderr: io.Discard, Environ: os.Environ()}
		command := New(con)
		command.SetArgs([]string{"--runs", runs})
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetOut(io.Discard)
		if err := command.ExecuteContext(t.Context()); err == nil ||
			runs == "1000000000" && console.Code(err) != console.ExitUsage {
			t.Errorf("--runs %s: %v", runs, err)
		}
	}
}
