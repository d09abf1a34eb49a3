package results

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/fit-eval/fit/ledger"
)

// baselines are the names of arms that are what others are compared with, wherever they stand.
var baselines = []string{"without_skill", "old_skill"}

// orderOf returns the arms of other harnesses as their sources first name them, the baseline of
// each first. Records of ours have a plan that says it.
func orderOf(parts [][]ledger.Record) [][2]string {
	var order [][2]string
	known := map[[2]string]bool{}
	for _, records := range parts {
		for i := range records {
			r := &records[i]
			if at := [2]string{r.Experiment, r.Arm}; r.Imported != nil && !known[at] {
				known[at] = true
				order = append(order, at)
			}
		}
	}
	places := map[[2]string]int{} // the arms of one iteration of a skill stay together
	of := func(at [2]string) [2]string { return [2]string{at[0], path.Dir(at[1])} }
	for i, at := range order {
		if _, there := places[of(at)]; !there {
			places[of(at)] = i
		}
	}
	rank := func(at [2]string) int {
		if slices.Contains(baselines, path.Base(at[1])) {
			return 2 * places[of(at)]
		}
		return 2*places[of(at)] + 1
	}
	slices.SortStableFunc(order, func(a, b [2]string) int { return rank(a) - rank(b) })
	return order
}

// InOrder sorts records by their arms, the baseline first, in the order of the plan or of the
// sources: what has no plan is read in the order in which arms are first named.
func (all *Results) InOrder(records []ledger.Record) {
	place := map[string]int{}
	add := func(arm string) {
		if _, known := place[arm]; !known {
			place[arm] = len(place)
		}
	}
	for _, plan := range all.Plans {
		for i := range plan.Arms {
			add(plan.Arms[i].Name)
		}
	}
	for _, at := range all.order {
		add(at[1])
	}
	for i := range records {
		add(records[i].Arm)
	}
	slices.SortStableFunc(records, func(a, b ledger.Record) int { return place[a.Arm] - place[b.Arm] })
}

// groupCopies puts tasks of other harnesses that are the same but for their names into one cluster,
// over everything that is compared, as the plan of an experiment does.
func groupCopies(found ...*Results) {
	names := map[string]map[string]bool{} // of tasks, by content
	each := func(see func(*ledger.Record)) {
		for _, all := range found {
			for i := range all.Records {
				if r := &all.Records[i]; r.Imported != nil && r.Digests.Visible != "" {
					see(r)
				}
			}
		}
	}
	each(func(r *ledger.Record) {
		if names[r.Digests.Visible] == nil {
			names[r.Digests.Visible] = map[string]bool{}
		}
		names[r.Digests.Visible][r.TaskID] = true
	})
	first := map[string]string{}
	var lines []string
	for content, tasks := range names {
		if len(tasks) > 1 {
			first[content] = slices.Min(slices.Collect(maps.Keys(tasks)))
			lines = append(lines, fmt.Sprintf("copies of task %s: %d; together they count as one", first[content],
				len(tasks)-1))
		}
	}
	slices.Sort(lines)
	if len(lines) > maxShownTasks {
		lines = append(lines[:maxShownTasks], fmt.Sprintf("and copies of %d other tasks", len(lines)-maxShownTasks))
	}
	for _, all := range found {
		all.copies = lines
	}
	each(func(r *ledger.Record) {
		if task := first[r.Digests.Visible]; task != "" {
			r.Cluster = "copies of " + task
		}
	})
}
