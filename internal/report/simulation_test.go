package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
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

// experimentsOf returns how often to repeat an experiment: more often in `make bench-stats`.
func experimentsOf(quick int) int {
	if os.Getenv("FIT_STATS_GRID") == "full" {
		return 10 * quick
	}
	return quick
}

// Whoever adds runs to an experiment of equal arms until it claims something rarely gets a claim,
// also with forty looks, as in `make bench-stats`.
func TestGrowingAnExperimentLeadsToFewFalseClaims(t *testing.T) {
	experiments, most := 60, 4
	if experimentsOf(1) > 1 {
		experiments, most = 200, 40
	}
	random := rand.New(rand.NewPCG(41, 2))
	claims := 0
	for range experiments {
		rates := make([]float64, 12)
		for i := range rates {
			rates[i] = .1 + .8*random.Float64()
		}
		var records []ledger.Record
		for look := range most {
			for i, rate := range rates {
				for _, arm := range []string{"a", "b"} {
					r := run(fmt.Sprintf("t%02d", i), look, ledger.Fail)
					if random.Float64() < rate {
						r = run(r.TaskID, look, ledger.Pass)
					}
					r.Arm, r.ArmHash = arm, "sha256:"+arm
					records = append(records, r)
				}
			}
			built := build(t, Input{Records: records, K: []int{1}})
			built.Groups[0].looks, built.Groups[1].looks = look, look
			c, err := Compare(&built.Groups[0], &built.Groups[1], CompareConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if claim := c.Decision.Claim; claim == stats.Regressed || claim == stats.Improved {
				claims++
				break
			}
		}
	}
	t.Logf("%d of %d experiments with up to %d looks", claims, experiments, most)
	slack := 3 * math.Sqrt(.05*.95/float64(experiments))
	if share := float64(claims) / float64(experiments); share > .05+slack {
		t.Errorf("%.1f of 100 experiments with equal arms that grow claim a difference", 100*share)
	}
}

// failsCalls fails calls within a share of the bad runs of b, which the agent repeats, and
// within a share of all runs for no reason.
func failsCalls(bad, all float64) func(random *rand.Rand, records []ledger.Record) []ledger.Record {
	return func(random *rand.Rand, records []ledger.Record) []ledger.Record {
		for i := range records {
			r := &records[i]
			if random.Float64() < all {
				r.FailedCalls++
			}
			if r.Arm != "b" || r.Verdict != ledger.Fail || random.Float64() >= bad {
				continue
			}
			if r.FailedCalls++; random.Float64() < .5 {
				again := run(r.TaskID, r.RunIndex, ledger.Pass)
				r.Verdict, r.Score, r.Grade = again.Verdict, again.Score, again.Grade
			}
		}
		return records
	}
}

// Whoever chooses which runs of equal arms are drawn again, or which tasks, gets no claim by it.
func TestChosenRunsLeadToFewFalseClaims(t *testing.T) {
	experiments := experimentsOf(60)
	slack := 3 * math.Sqrt(.05*.95/float64(experiments))
	for name, choose := range map[string]func(random *rand.Rand, records []ledger.Record) []ledger.Record{
		"the provider fails on bad draws of b": func(random *rand.Rand, records []ledger.Record) []ledger.Record {
			var all []ledger.Record
			for _, r := range records {
				for r.Arm == "b" && r.Verdict == ledger.Fail && r.Attempt < 3 && random.Float64() < .7 {
					failed := failedRun(r.TaskID, r.RunIndex, ledger.ErrorProvider)
					failed.Arm, failed.ArmHash, failed.Attempt, failed.Final = "b", "sha256:b", r.Attempt, false
					all = append(all, failed)
					again := run(r.TaskID, r.RunIndex, ledger.Fail)
					if random.Float64() < .5 {
						again = run(r.TaskID, r.RunIndex, ledger.Pass)
					}
					again.Arm, again.ArmHash, again.Attempt = "b", "sha256:b", r.Attempt+1
					r = again
				}
				all = append(all, r)
			}
			return all
		},
		"it fails calls within some bad runs":   failsCalls(.15, 0),
		"it fails calls within most bad runs":   failsCalls(.6, 0),
		"it fails calls of good runs, too":      failsCalls(.2, .1),
		"it fails calls of many good runs, too": failsCalls(.4, .3),
		"b runs only what a failed": func(_ *rand.Rand, records []ledger.Record) []ledger.Record {
			failed := map[string]bool{}
			for i := range records {
				if r := &records[i]; r.Arm == "a" && r.Verdict == ledger.Fail {
					failed[r.TaskID] = true
				}
			}
			return slices.DeleteFunc(records, func(r ledger.Record) bool { return r.Arm == "b" && !failed[r.TaskID] })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(len(name)), 7))
			claims := 0
			for range experiments {
				records := choose(random, simulated{tasks: 40, runs: 1}.records(random))
				built := build(t, Input{Records: records, K: []int{1}})
				c, err := Compare(&built.Groups[0], &built.Groups[1], CompareConfig{})
				if err != nil {
					t.Fatal(err)
				}
				if claim := c.Decision.Claim; claim == stats.Regressed || claim == stats.Improved {
					claims++
				}
			}
			if share := float64(claims) / float64(experiments); share > .05+slack {
				t.Errorf("%.1f of 100 experiments with equal arms claim a difference", 100*share)
			}
		})
	}
}
