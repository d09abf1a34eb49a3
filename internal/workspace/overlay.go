package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/tree"
)

// overlay is one layer of a base; skip leaves out parts of it.
type overlay struct {
	task.Overlay
	skip func(name string) bool
}

// overlays returns the task's overlays, then the family's skills, then node_modules.
func (cfg Config) overlays() []overlay {
	var all []overlay
	for _, own := range cfg.Task.Overlays {
		all = append(all, overlay{Overlay: own})
	}
	if family := cfg.skills(); family != "" {
		all = append(all, familySkills(filepath.Join(family, ".claude"), cfg.skillsDir())...)
	}
	// the package manager of skills leaves the agents of a pack where it unpacked them
	if !cfg.WithoutSkills && cfg.Family != nil && (cfg.Family.Skills == "" || cfg.Family.Skills == cfg.Family.Dir) {
		for _, agents := range glob.Below(cfg.Family.Dir, "apm_modules/*/*/agents") {
			all = append(all, overlay{Overlay: task.Overlay{From: agents, To: ".claude/agents"}})
		}
	}
	if cfg.NodeModules != "" {
		all = append(all, overlay{Overlay: task.Overlay{From: cfg.NodeModules, To: "node_modules"}})
	}
	return all
}

// familySkills returns the .claude of a family with its skills where the agent looks for them.
func familySkills(dir, skillsDir string) []overlay {
	rest := overlay{Overlay: task.Overlay{From: dir, To: ".claude"}}
	skills := filepath.Join(dir, "skills")
	if info, err := os.Stat(skills); err != nil || !info.IsDir() || skillsDir == defaultSkillsDir {
		return []overlay{rest}
	}
	rest.skip = func(name string) bool { return name == "skills" }
	return []overlay{rest, {Overlay: task.Overlay{From: skills, To: skillsDir}}}
}

// skills returns the directory whose .claude has the family's skills; empty: there are none.
func (cfg Config) skills() string {
	if cfg.WithoutSkills || cfg.Family == nil {
		return ""
	}
	return cfg.Family.Skills
}

// defaultSkillsDir is where skills go if the agent's place is not known.
const defaultSkillsDir = ".claude/skills"

func (cfg Config) skillsDir() string { return cmp.Or(cfg.SkillsDir, defaultSkillsDir) }

// overlayTree copies a source tree over what is there: files replace files and symlinks,
// directories are merged. skip leaves out parts of it; nil leaves out nothing.
func overlayTree(ctx context.Context, overlay task.Overlay, dir string, skip func(name string) bool) error {
	return tree.Copy{
		Walk: tree.Walk{Skip: skip},
		To:   overlay.To,
		Over: tree.Merge,
		Accept: func(e *tree.Entry) (bool, error) {
			if e.IsLink() && linkEscapes(path.Join(overlay.To, e.Path), e.Target) {
				return false, fmt.Errorf("the link to %s leads out of the working directory", display.Name(e.Target))
			}
			return true, nil
		},
	}.Dir(ctx, overlay.From, dir)
}

// linkEscapes reports from the text of a link whether it leaves the tree. Links to links are each
// checked on their own.
func linkEscapes(name, target string) bool {
	if path.IsAbs(target) {
		return true
	}
	at := path.Join(path.Dir(name), target)
	return at == ".." || strings.HasPrefix(at, "../")
}

// renderEnv writes the environment files of a task.
func renderEnv(variables []task.Variable, tree string) error {
	for _, file := range []string{".env", ".env.local"} {
		text := task.RenderEnv(variables, file)
		if text == "" {
			continue
		}
		name := filepath.Join(tree, file)
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return fmt.Errorf("environment file: %w", err)
		}
	}
	return nil
}
