package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/task"
)

// profilesDir is where the profiles of agents are.
const profilesDir = ".claude/agents"

// checkProfile reads the profile of an arm from what the arm brings, from the family or from the
// files of each task, before any working directory is made. It returns each that an agent may get;
// without a profile, an empty one. All reports whether there can be no others.
func (p *preparation) checkProfile(arm *experiment.Arm) (given []harness.RunProfile, all bool, err error) {
	if arm.Profile == "" {
		return []harness.RunProfile{{}}, true, nil
	}
	all = true
	for i := range p.Family.Tasks {
		t := &p.Family.Tasks[i]
		dir := p.profileDir(arm, t)
		if dir == "" && t.Settings.Repo != "" {
			all = false // its repository may have it
			continue
		}
		found, err := harness.LoadRunProfile(dir, arm.Profile, harness.AdvisorConfig{})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, false, fmt.Errorf("there is no profile %s: %s is neither in what the arm brings nor in the "+
				"files of task %s", arm.Profile, path.Join(profilesDir, arm.Profile+".md"), t.ID)
		case err != nil:
			return nil, false, err
		}
		given = append(given, found)
		if slices.Contains(p.bringDirs(arm), dir) {
			break // all tasks get the same
		}
	}
	if len(given) == 0 {
		given = append(given, harness.RunProfile{SystemPrompt: arm.Profile})
	}
	return given, all, nil
}

// settleProfile writes into an arm what its profiles say at all tasks alike and the arm does not
// say, else the default of the experiment, so that plan and reports name what counts.
func (p *preparation) settleProfile(arm *experiment.Arm, given []harness.RunProfile, info agent.Info) {
	first := given[0]
	alike := func(same func(other harness.RunProfile) bool) bool {
		return !slices.ContainsFunc(given, func(other harness.RunProfile) bool { return !same(other) })
	}
	if alike(func(other harness.RunProfile) bool { return other.Model == first.Model }) {
		arm.Model = cmp.Or(arm.Model, first.Model)
	}
	if len(arm.AllowedTools) == 0 &&
		alike(func(other harness.RunProfile) bool { return slices.Equal(other.Tools, first.Tools) }) {
		arm.AllowedTools = first.Tools
	}
	if alike(func(other harness.RunProfile) bool { return other.MaxTurns == first.MaxTurns }) {
		arm.MaxTurns = cmp.Or(arm.MaxTurns, first.MaxTurns, defaultTurns(&p.Setup, info))
	}
}

// defaultTurns returns how many turns an agent may take where nothing else is said.
func defaultTurns(setup *experiment.Setup, info agent.Info) int {
	if info.Capabilities.MaxTurns == agent.Unsupported {
		return 0
	}
	return setup.DefaultMaxTurns
}

// profileDir returns the directory of profiles that wins in the working directory of a task and has
// the arm's profile; empty: none has.
func (p *preparation) profileDir(arm *experiment.Arm, t *task.Task) string {
	dirs := p.bringDirs(arm)
	for _, overlay := range slices.Backward(t.Overlays) {
		if cmp.Or(overlay.To, ".") == "." {
			dirs = append(dirs, filepath.Join(overlay.From, filepath.FromSlash(profilesDir)))
		}
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, arm.Profile+".md")); err == nil {
			return dir
		}
	}
	return ""
}

// bringDirs returns the directories of profiles that the arm, or the family, brings.
func (p *preparation) bringDirs(arm *experiment.Arm) []string {
	var dirs []string
	for _, b := range slices.Backward(p.Brings[arm.Name]) {
		switch {
		case b.Path == path.Join(profilesDir, arm.Profile+".md"):
			dirs = append(dirs, filepath.Dir(b.Source))
		case b.Path == ".":
			dirs = append(dirs, filepath.Join(b.Source, filepath.FromSlash(profilesDir)))
		}
	}
	return dirs
}

// profile reads the arm's profile in the working directory of the agent; without one it is empty.
func (a *attempt) profile(dir string) (harness.RunProfile, error) {
	return harness.LoadRunProfile(filepath.Join(dir, filepath.FromSlash(profilesDir)), a.arm.Profile,
		harness.AdvisorConfig{})
}

// turns returns how many turns the agent may take: what the arm says, else its profile, else the
// default of the experiment.
func (a *attempt) turns(given harness.RunProfile, info agent.Info) int {
	return cmp.Or(a.arm.MaxTurns, given.MaxTurns, defaultTurns(&a.prepared.Setup, info))
}

// withProfile fills in what a profile says and the arm does not.
func withProfile(cfg agent.Config, given harness.RunProfile) agent.Config {
	cfg.Model = cmp.Or(cfg.Model, given.Model)
	cfg.MaxTurns = cmp.Or(cfg.MaxTurns, given.MaxTurns)
	if len(cfg.AllowedTools) == 0 {
		cfg.AllowedTools = given.Tools
	}
	return cfg
}
