package task

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Step is one step of a task with several steps.
type Step struct {
	Name   string
	Prompt string
	// Workdir is laid over the working directory before the step; empty: nothing is. A setup.sh in
	// it is run.
	Workdir     string
	User        string        // the agent's
	Timeout     time.Duration // the agent's
	Healthcheck *Healthcheck
	// MinReward are the rewards without which the steps after it are not done.
	MinReward map[string]float64
	Verifier  *Verifier
}

// steps reads the steps of a task, or the instruction of one that has none.
func (h *harborLoader) steps(t *Task) (err error) {
	if len(h.file.Steps) == 0 {
		if t.Prompt, err = h.instruction("."); err != nil {
			return err
		}
		return h.tested(".", t.Verifier)
	}
	switch h.file.Strategy {
	case "", "mean":
	case "final":
		t.Verifier.Final = true
	default:
		return h.wrong(h.file.Strategy, "multi_step_reward_strategy = %q is neither mean nor final", h.file.Strategy)
	}
	var prompts []string
	for i := range h.file.Steps {
		step, err := h.step(&h.file.Steps[i], t.Verifier)
		if err != nil {
			return err
		}
		t.Steps, prompts = append(t.Steps, step), append(prompts, step.Prompt)
	}
	t.Prompt = strings.Join(prompts, "\n\n")
	return nil
}

func (h *harborLoader) step(file *harborStep, shared *Verifier) (step Step, err error) {
	if file.Name == "" || file.Name == "." || file.Name == ".." || strings.ContainsAny(file.Name, "/\\\x00") {
		return step, h.wrong("[[steps]]", "steps: %q is not the name of a directory in steps/", file.Name)
	}
	dir := "steps/" + file.Name
	step = Step{
		Name:        file.Name,
		User:        cmp.Or(harborUser(file.Agent.User), harborUser(h.file.Agent.User)),
		Timeout:     harborSeconds(file.Agent.TimeoutSec, harborSeconds(h.file.Agent.TimeoutSec, harborUnlimited)),
		Healthcheck: file.Healthcheck.settings(),
	}
	step.Workdir = h.dir(path.Join(h.rel, dir, "workdir"))
	if step.Prompt, err = h.instruction(dir); err != nil {
		return step, err
	}
	if step.MinReward, err = minReward(file.MinReward); err != nil {
		return step, h.wrong("min_reward", "step %s: %v", file.Name, err)
	}
	if step.Verifier, err = h.verifierOf(dir, &file.Verifier, file.Artifacts); err != nil {
		return step, err
	}
	v := step.Verifier
	v.User = cmp.Or(v.User, shared.User)
	for name, value := range shared.Env {
		if _, set := v.Env[name]; !set {
			v.Env[name] = value
		}
	}
	v.SolutionEnv, v.SolutionLacks = shared.SolutionEnv, shared.SolutionLacks
	v.Artifacts = append(slices.Clone(shared.Artifacts), v.Artifacts...)
	if v.Environment == nil && h.file.Verifier.separate() && file.Verifier.Mode != "shared" {
		v.Environment, v.Network = shared.Environment, shared.Network
		v.Collect = append(slices.Clone(shared.Collect), v.Collect...)
	}
	return step, h.tested(dir, v)
}

// minReward returns a number for the reward of that name, or a table of numbers.
func minReward(value any) (map[string]float64, error) {
	number := func(value any) (float64, bool) {
		switch value := value.(type) {
		case int64:
			return float64(value), true
		case float64:
			return value, true
		}
		return 0, false
	}
	switch value := value.(type) {
	case nil:
		return nil, nil //nolint:nilnil // none is asked for
	case map[string]any:
		rewards := map[string]float64{}
		for name, one := range value {
			least, ok := number(one)
			if !ok {
				return nil, fmt.Errorf("min_reward.%s is not a number", name)
			}
			rewards[name] = least
		}
		return rewards, nil
	default:
		least, ok := number(value)
		if !ok {
			return nil, fmt.Errorf("min_reward is neither a number nor a table of numbers")
		}
		return map[string]float64{"reward": least}, nil
	}
}
