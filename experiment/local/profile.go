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

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/harness"
	"github.com/fit-eval/fit/task"
)

// profilesDir is where the profiles of agents are.
const profilesDir = ".claude/agents"

// checkProfile reads the profile of an arm from what the arm brings, from the family or from the
// files of each task, before any working directory is made. It returns each that an agent may get;
// without a profile, an empty one.
func (p *preparation) checkProfile(arm *experiment.Arm) ([]harness.RunProfile, error) {
	if arm.Profile == "" {
		return []harness.RunProfile{{}}, nil
	}
	var given []harness.RunProfile
	for i := range p.Family.Tasks {
		t := &p.Family.Tasks[i]
		dir := p.profileDir(arm, t)
		if dir == "" && t.Settings.Repo != "" {
			continue // its repository may have it
		}
		found, err := harness.LoadRunProfile(dir, arm.Profile, harness.AdvisorConfig{})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("there is no profile %s: %s is neither in what the arm brings nor in the files "+
				"of task %s", arm.Profile, path.Join(profilesDir, arm.Profile+".md"), t.ID)
		case err != nil:
			return nil, err
		}
		given = append(given, found)
		if slices.Contains(p.bringDirs(arm), dir) {
			break // all tasks get the same
		}
	}
	if len(given) == 0 {
		given = append(given, harness.RunProfile{SystemPrompt: arm.Profile})
	}
	return given, nil
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
	byDefault := 0
	if info.Capabilities.MaxTurns != agent.Unsupported {
		byDefault = a.prepared.DefaultMaxTurns
	}
	return cmp.Or(a.arm.MaxTurns, given.MaxTurns, byDefault)
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
