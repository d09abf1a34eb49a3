package grade

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/fit-eval/fit/internal/task"
)

// StepResult is the result of the verifier of one step.
type StepResult struct {
	Name    string
	Rewards map[string]float64
	health  health
	said    string
	notes   []string
}

// Stepper prepares steps. A *workspace.Workspace is one.
type Stepper interface {
	BeginStep(ctx context.Context, step *task.Step) error
}

// RunSteps does the steps of a task one after the other in the same container: it prepares each,
// lets work do it, and runs its verifier. It stops where a reward is missing or lower than the step
// demands, and where work returns an error.
func RunSteps(ctx context.Context, cfg Config, space Stepper, work func(context.Context, *task.Step) error,
) ([]StepResult, error) {
	g, err := newGrading(cfg)
	if err != nil {
		return nil, err
	}
	defer g.close()
	var results []StepResult
	for i := range g.Task.Steps {
		step := &g.Task.Steps[i]
		if err := space.BeginStep(ctx, step); err != nil {
			return results, err
		}
		if err := work(ctx, step); err != nil {
			return results, err
		}
		found, err := g.verify(ctx, step.Verifier, path.Join("steps", step.Name))
		if err == nil {
			err = g.confirmVerifier(ctx, step.Verifier, &found)
		}
		if err != nil {
			return results, fmt.Errorf("step %s: %w", step.Name, err)
		}
		results = append(results, StepResult{
			Name:    step.Name,
			Rewards: found.rewards,
			health:  found.health,
			said:    found.said,
			notes:   g.takeNotes(),
		})
		if !found.health.ok() || missed(step.MinReward, found.rewards) != "" {
			break
		}
	}
	return results, nil
}

// missed names a reward that is lower than it must be; empty if none is.
func missed(least, rewards map[string]float64) string {
	for _, name := range slices.Sorted(maps.Keys(least)) {
		if value, ok := rewards[name]; !ok || value < least[name] {
			return name
		}
	}
	return ""
}

// judgeSteps makes rows from the results of step verifiers: scored ones for the mean of all steps
// or for the last, and a diagnostic one for each reward of each step. A task whose steps were not
// all done does not pass.
func (g *grading) judgeSteps() graded {
	var found graded
	rewards := map[string]float64{}
	for _, step := range g.Steps {
		for _, note := range step.notes {
			g.note("step %s: %s", step.Name, note)
		}
		if !step.health.ok() {
			found.health = health{
				broken:      "step " + step.Name + ": " + step.health.broken,
				cause:       step.health.cause,
				graderFault: step.health.graderFault,
			}
		}
		for name, value := range step.Rewards {
			rewards[name] += value / float64(len(g.Steps))
		}
	}
	if g.Task.Verifier.Final && len(g.Steps) > 0 {
		rewards = g.Steps[len(g.Steps)-1].Rewards
	}
	found.rows = rewardRows(rewards, "")
	for _, step := range g.Steps {
		for _, name := range slices.Sorted(maps.Keys(step.Rewards)) {
			found.rows = append(found.rows, rewardRow(map[string]any{
				"test": step.Name + ": " + name, "weight": 0,
				"step": step.Name, "key": name,
			}, step.Rewards[name], step.said))
		}
	}
	if n := len(g.Steps); n < len(g.Task.Steps) && found.health.ok() {
		why := "no step was done"
		if n > 0 {
			last := g.Steps[n-1]
			why = fmt.Sprintf("step %s does not reach its min_reward for %q", last.Name,
				missed(g.Task.Steps[n-1].MinReward, last.Rewards))
		}
		found.rows = append(found.rows, testRow("all steps are done", true, 0, false, why))
	}
	return found
}
