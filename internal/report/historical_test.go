package report

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fit-eval/fit/ledger"
)

// lanes runs arms on tasks as an experiment does: several tasks at a time, the arms of a task in
// turn, in an order of their own, each for one to three minutes.
func lanes(rnd *rand.Rand, begin time.Time, tasks, concurrency int, arms ...string) []ledger.Record {
	var records []ledger.Record
	free := slices.Repeat([]time.Time{begin}, concurrency)
	for i := range tasks {
		lane := slices.Index(free, slices.MinFunc(free, time.Time.Compare))
		for _, arm := range rnd.Perm(len(arms)) {
			r := ledger.Record{TaskID: fmt.Sprintf("t%02d", i), Arm: arms[arm], StartMs: free[lane].UnixMilli()}
			free[lane] = free[lane].Add(time.Minute + time.Duration(rnd.Int64N(int64(2*time.Minute))))
			r.EndMs = free[lane].UnixMilli()
			free[lane] = free[lane].Add(time.Duration(rnd.Int64N(int64(10 * time.Second)))) // until the next one starts
			records = append(records, r)
		}
	}
	return records
}

// groupsOf makes one experiment of the runs of the named arms.
func groupsOf(records []ledger.Record, arms ...string) []*Group {
	var groups []*Group
	for _, arm := range arms {
		g := &Group{Name: arm, question: Question{Arms: arms}}
		for i := range records {
			if records[i].Arm == arm {
				g.records = append(g.records, records[i])
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// An interleaved experiment is not called historical because one arm came first with its first
// tasks and last with its last ones. An arm that was added is, however soon after the other.
func TestInterleavedArmsRanSideBySide(t *testing.T) {
	const experiments = 100
	begin := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	for _, arms := range [][]string{{"a", "b"}, {"a", "b", "c", "d"}} {
		for _, tasks := range []int{10, 12, 30} {
			for _, concurrency := range []int{1, 2, 4, 8} {
				rnd := rand.New(rand.NewPCG(uint64(tasks), uint64(concurrency)))
				apart, pairs := 0, 0
				for range experiments {
					groups := groupsOf(lanes(rnd, begin, tasks, concurrency, arms...), arms...)
					for i, a := range groups {
						for _, b := range groups[i+1:] {
							pairs++
							apart += len(historical(&Basis{Groups: []*Group{a, b}}))
						}
					}
					first := lanes(rnd, begin, tasks, concurrency, arms[:len(arms)-1]...)
					end := time.UnixMilli(slices.MaxFunc(first, func(a, b ledger.Record) int {
						return int(a.EndMs - b.EndMs)
					}).EndMs)
					late := arms[len(arms)-1]
					groups = groupsOf(append(first, lanes(rnd, end, tasks, concurrency, late)...), arms...)
					if historical(&Basis{Groups: []*Group{groups[0], groups[len(groups)-1]}}) == nil {
						t.Fatalf("%d tasks, %d at a time: %s was added after %v", tasks, concurrency, late, arms[:len(arms)-1])
					}
				}
				if float64(apart) > .01*float64(pairs) {
					t.Errorf("%d tasks with %d arms, %d at a time: %d of %d interleaved pairs did not run side by side",
						tasks, len(arms), concurrency, apart, pairs)
				}
			}
		}
	}
}
