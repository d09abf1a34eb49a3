package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// simulated draws the records of two arms: the rates of tasks spread around ½, the second arm
// passes lift more often, and a share of the runs ends in errors.
type simulated struct {
	tasks, runs  int
	lift, errors float64
	perCluster   int
}

func (s simulated) records(random *rand.Rand) []ledger.Record {
	var records []ledger.Record
	rate := 0.0
	for i := range s.tasks {
		if s.perCluster < 2 || i%s.perCluster == 0 {
			rate = .1 + .8*random.Float64()*(1-s.lift)
		}
		for _, arm := range []string{"a", "b"} {
			chance := rate
			if arm == "b" {
				chance += s.lift
			}
			for run := range s.runs {
				word := "F"
				if random.Float64() < chance {
					word = "P"
				}
				if random.Float64() < s.errors {
					word = "E"
				}
				r := outcomes(fmt.Sprintf("t%02d", i), word)[0]
				r.RunIndex, r.Arm, r.ArmHash = run, arm, "sha256:"+arm
				if s.perCluster > 1 {
					r.Cluster = fmt.Sprint("c", i/s.perCluster)
				}
				records = append(records, r)
			}
		}
	}
	return records
}

// The whole way, from records to a decision: equal arms rarely get a claim, and intervals hold the
// truth.
func TestTheWholeWayFromRecordsToADecisionIsHonest(t *testing.T) {
	const experiments = 80
	slack := 3 * math.Sqrt(.05*.95/experiments)
	for _, design := range []simulated{
		{tasks: 12, runs: 3},
		{tasks: 20, runs: 1, lift: .3},
		{tasks: 15, runs: 3, errors: .05},
		{tasks: 24, runs: 2, perCluster: 2},
	} {
		t.Run(fmt.Sprintf("%+v", design), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(design.tasks), uint64(design.runs)))
			claims, missed, rates := 0, 0, 0
			for range experiments {
				built := build(t, Input{Records: design.records(random), K: []int{1}})
				c, err := Compare(&built.Groups[0], &built.Groups[1], CompareConfig{})
				if err != nil {
					t.Fatal(err)
				}
				if claim := c.Decision.Claim; claim == stats.Regressed || claim == stats.Improved && design.lift == 0 {
					claims++
				}
				if d := &c.Decision; d.Lo == nil || *d.Lo > design.lift || *d.Hi < design.lift {
					missed++
				}
				if truth := .1 + .4*(1-design.lift); !built.Groups[0].PassRate.Contains(truth) {
					rates++
				}
			}
			for what, n := range map[string]int{
				"false claims": claims, "differences outside their interval": missed,
				"rates outside their interval": rates,
			} {
				if share := float64(n) / experiments; share > .05+slack {
					t.Errorf("%s in %.1f of 100 experiments", what, 100*share)
				}
			}
		})
	}
}
