package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// maxPlannedRuns ends the search for the best number of repetitions; more than that never pays.
const maxPlannedRuns = 50

// Prices says what an experiment costs, in any unit.
type Prices struct {
	// PerTask is paid once per task whatever the repetitions: preparing, writing, reviewing it.
	PerTask float64 `json:"perTask"`
	// PerRun is the cost of one run of one arm, averaged over the two arms.
	PerRun float64 `json:"perRun"`
}

// Plan is an affordable experiment.
type Plan struct {
	Tasks int     `json:"tasks"`
	Runs  int     `json:"runs"` // per arm and task
	Cost  float64 `json:"cost"`
	MDE   float64 `json:"mde"`
	// Power is the chance to find the effect asked for; 0 when none was asked for.
	Power float64 `json:"power,omitempty"`
}

func (p Prices) cost(tasks, runs int) float64 {
	return float64(tasks) * (p.PerTask + 2*float64(runs)*p.PerRun)
}

func (p Prices) check() error {
	return cmp.Or(checkNotNegative("cost per task", p.PerTask), checkPositive("cost per run", p.PerRun))
}

// Allocate divides a budget between tasks and repetitions so that the detectable effect is
// smallest.
//
// Formula: over K = 1, 2, …: n = min(maxTasks, ⌊budget/(PerTask + 2K·PerRun)⌋); the smallest
// normal approximation of the detectable effect wins, the fewer repetitions on a tie; its MDE is
// that of [MinimumDetectableEffect]. maxTasks 0 means unlimited.
//
// Use it to plan with money in hand.
//
// Do not use it to hit a given effect: [CostOfDecision].
func Allocate(budget float64, maxTasks int, design Design, prices Prices) (Plan, error) {
	design, err := checkPlanning(maxTasks, design, prices)
	if err != nil {
		return Plan{}, err
	}
	if err := checkPositive("budget", budget); err != nil {
		return Plan{}, err
	}
	var best Plan
	for runs := 1; runs <= maxPlannedRuns; runs++ {
		affordable := budget / prices.cost(1, runs)
		if maxTasks > 0 {
			affordable = math.Min(affordable, float64(maxTasks))
		}
		if affordable > math.MaxInt32 {
			return Plan{}, fmt.Errorf("a budget of %g buys more tasks than there are (%.3g): give the largest number "+
				"of tasks", budget, affordable)
		}
		tasks := int(affordable)
		if tasks < 1 {
			break
		}
		design.RunsCandidate, design.RunsBaseline = runs, runs
		if mde := design.approximateEffect(tasks); best.Tasks == 0 || mde < best.MDE*(1-1e-9) {
			best = Plan{
				Tasks: tasks,
				Runs:  runs,
				Cost:  prices.cost(tasks, runs),
				MDE:   mde,
			}
		}
	}
	if best.Tasks == 0 {
		return Plan{}, fmt.Errorf("a budget of %g does not pay for one task: it costs %g", budget, prices.cost(1, 1))
	}
	design.RunsCandidate, design.RunsBaseline = best.Runs, best.Runs
	best.MDE, err = MinimumDetectableEffect(best.Tasks, design)
	return best, err
}

// CostOfDecision returns the cheapest experiment that finds a difference of effect with the power
// of the design.
//
// Formula: K = 1, 2, … within 5% of the best price by the normal approximation; n =
// [TasksNeeded], at least minTasks and at most maxTasks (0 is unlimited); the least n·(PerTask +
// 2K·PerRun) wins.
//
// Use it to decide whether an answer is worth its price. minTasks is usually [MinClaimTasks], below
// which no claim is made anyway.
//
// Do not use it when no experiment within maxTasks is large enough: it returns an error that says
// what could be found instead.
func CostOfDecision(effect float64, minTasks, maxTasks int, design Design, prices Prices) (Plan, error) {
	design, err := checkPlanning(maxTasks, design, prices)
	if err != nil {
		return Plan{}, err
	}
	if _, err := design.checked(effect, 1); err != nil {
		return Plan{}, err
	}
	var candidates []Plan
	for runs := 1; runs <= maxPlannedRuns; runs++ {
		design.RunsCandidate, design.RunsBaseline = runs, runs
		needed := math.Max(math.Ceil(design.approximateTasks(effect)-1e-9), float64(minTasks))
		if needed <= math.MaxInt32 && (maxTasks == 0 || needed <= float64(maxTasks)) {
			candidates = append(candidates, Plan{Runs: runs, Cost: prices.cost(int(needed), runs)})
		}
	}
	slices.SortStableFunc(candidates, func(a, b Plan) int { return cmp.Compare(a.Cost, b.Cost) })
	var best Plan
	for i, candidate := range candidates { // near the best approximate price the exact one decides
		if best.Tasks > 0 && (i >= 4 || candidate.Cost > 1.05*candidates[0].Cost) {
			break
		}
		design.RunsCandidate, design.RunsBaseline = candidate.Runs, candidate.Runs
		needed, err := TasksNeeded(effect, design)
		if err != nil {
			return Plan{}, err
		}
		tasks := max(int(needed), minTasks)
		cost := prices.cost(tasks, candidate.Runs)
		if (maxTasks == 0 || tasks <= maxTasks) && (best.Tasks == 0 || cost < best.Cost*(1-1e-9)) {
			best = Plan{Tasks: tasks, Runs: candidate.Runs, Cost: cost}
		}
	}
	if best.Tasks == 0 {
		return Plan{}, tooFewTasks(effect, maxTasks, design)
	}
	design.RunsCandidate, design.RunsBaseline = best.Runs, best.Runs
	if best.MDE, err = MinimumDetectableEffect(best.Tasks, design); err != nil {
		return Plan{}, err
	}
	best.Power, err = PowerOf(effect, best.Tasks, design)
	return best, err
}

func tooFewTasks(effect float64, maxTasks int, design Design) error {
	if maxTasks < 1 {
		return fmt.Errorf("an effect of %g is too small for any number of tasks worth running", effect)
	}
	design.RunsCandidate, design.RunsBaseline = maxPlannedRuns, maxPlannedRuns
	mde, err := MinimumDetectableEffect(maxTasks, design)
	if err != nil {
		return err
	}
	return fmt.Errorf("%d tasks cannot show an effect of %g; even %d runs each show no less than %.3f", maxTasks,
		effect, maxPlannedRuns, mde)
}

func checkPlanning(maxTasks int, design Design, prices Prices) (Design, error) {
	if maxTasks < 0 {
		return design, fmt.Errorf("the largest number of tasks must be at least 0, not %d", maxTasks)
	}
	if err := prices.check(); err != nil {
		return design, err
	}
	return design.withDefaults()
}
