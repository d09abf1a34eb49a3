package local

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
)

func (e *Executor) workspaceConfig(arm *experiment.Arm, t *task.Task, name, runID string) workspace.Config {
	cfg := workspace.Config{
		Root:        e.work,
		Name:        name,
		Family:      e.prepared.Family,
		Task:        t,
		Brings:      workspaceBrings(e.prepared.Brings[arm.Name]),
		NodeModules: e.prepared.NodeModules,
		Environ:     e.machine.Host.Environ,
		Env:         arm.Env,
		RunID:       runID,
		Isolation:   e.prepared.Isolation,

		AgentNetwork: e.networkOf(arm, t),

		ReadOnly: e.readable(arm),
		Hidden:   e.hidden(),
		Ports:    e.ports,
		Bases:    e.bases,
		Caches:   e.caches,
		Spawner:  e.spawner,
		Commands: e.prepared.Commands,
		Engines:  e.machine.engines(),
		Tools:    e.toolsOf(arm),

		WithoutSkills: arm.Skills != "",
	}
	if chosen, err := e.machine.Registry.Get(arm.Agent); err == nil {
		cfg.SkillsDir = skillsDir(chosen.Info())
	}
	return cfg
}

// hidden returns the paths that no process of an attempt may see: other attempts, what fit keeps,
// and the run directories beside this one, which may be about the same tasks.
func (e *Executor) hidden() []string {
	run := e.artefacts.AttemptDir("")
	hidden := []string{e.work, run}
	siblings, _ := os.ReadDir(filepath.Dir(run)) // none where it cannot be read
	for _, sibling := range siblings {
		dir := filepath.Join(filepath.Dir(run), sibling.Name())
		if sibling.Type().IsRegular() || dir == run {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, experiment.PlanFile)); err == nil {
			hidden = append(hidden, dir)
		}
	}
	if cache := e.machine.Host.CacheDir; cache != "" {
		hidden = append(hidden, cache)
	}
	return hidden
}

// readable returns the paths that the processes of an arm must be able to read in a sandbox:
// toolchains, and the agent's own program.
func (e *Executor) readable(arm *experiment.Arm) []string {
	paths := slices.Clone(e.machine.installation(arm.Agent).ReadPaths)
	if arm.Lead != "" {
		paths = append(paths, e.machine.installation(arm.Lead).ReadPaths...)
	}
	return paths
}
