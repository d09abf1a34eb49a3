package experiment

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// chance is an executor that passes a task with a probability of its own, drawn from the seed of
// the cell; better adds to the probability of the arm b.
func chance(better float64) executorFunc {
	return func(_ context.Context, cell Cell, _ int) (ledger.Record, error) {
		difficulty := rand.New(rand.NewPCG(uint64(len(cell.TaskID)), draw(99, "difficulty", cell.TaskID, "", 0)))
		p := 0.15 + 0.7*difficulty.Float64()
		if cell.Arm == "b" {
			p += better
		}
		verdict := ledger.Fail
		if rand.New(rand.NewPCG(cell.Seed, 1)).Float64() < p {
			verdict = ledger.Pass
		}
		return graded(verdict), nil
	}
}

// decide runs an experiment of 20 tasks, 3 runs and two arms through planner, ledger and
// statistics.
func decide(t *testing.T, seed uint64, better float64) stats.Claim {
	t.Helper()
	plan := planOf(t, 20, 3, "a", "b")
	plan.Seed = seed
	if err := plan.Seal(); err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	runPlan(t, t.Context(), path, plan, Config{Executor: chance(better), Concurrency: 8})
	contents, err := ledger.ReadFile(filepath.Join(path, LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	built, err := report.Build(report.Input{Records: contents.Records, K: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	comparison, err := report.Compare(&built.Groups[0], &built.Groups[1], report.CompareConfig{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return comparison.Decision.Claim
}

// Two arms that are the same are told apart no more often than the significance level allows.
func TestEqualArmsAreNotToldApart(t *testing.T) {
	seeds := testenv.Size(200, 30)
	claims := 0
	for seed := range seeds {
		if claim := decide(t, uint64(seed)+1, 0); claim == stats.Improved || claim == stats.Regressed {
			claims++
		}
	}
	rate := float64(claims) / float64(seeds)
	se := math.Sqrt(rate * (1 - rate) / float64(seeds))
	t.Logf("%d claims in %d experiments of equal arms", claims, seeds)
	if rate-3*se > 0.05 {
		t.Errorf("%.1f%% false claims", 100*rate)
	}
}

// The same machinery does find a difference that is there: silence alone would pass the test above.
func TestADifferenceIsFound(t *testing.T) {
	found := 0
	for seed := range 10 {
		if claim := decide(t, uint64(seed)+1, 0.35); claim == stats.Improved {
			found++
		}
	}
	if found < 7 {
		t.Errorf("an improvement of 35 points was found in %d of 10 experiments", found)
	}
}

func ExampleParseArm() {
	arm, err := ParseArm("after=agent:claude-code,model:claude-sonnet-4-5,prompt:Be brief, be right: test first.,tools:Read+Edit,env:MODE=a:b,maxTurns:30", nil)
	fmt.Println(arm.Name, arm.Agent, arm.Model, arm.AllowedTools, arm.Env, arm.MaxTurns, err)
	fmt.Println(arm.Prompt)
	// Output:
	// after claude-code claude-sonnet-4-5 [Read Edit] map[MODE:a:b] 30 <nil>
	// Be brief, be right: test first.
}
