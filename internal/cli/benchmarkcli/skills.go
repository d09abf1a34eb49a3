package benchmarkcli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/tree"
)

// installTimeout bounds an installation of skills.
const installTimeout = 10 * time.Minute

// stageSkills finds the skills that all arms without their own get: those that the command names,
// or nothing. A family with an apm.yml gets its packages installed, not into the family but into a
// cache that is keyed by what is to be installed.
func stageSkills(ctx context.Context, con *console.Console, family *task.Family, from, cache string) (string, error) {
	if from != "" {
		skills := experiment.ResolveSkills(from, con.Path)
		for _, dir := range experiment.SkillPaths(skills) {
			if _, err := experiment.ReadSkills(dir); err != nil {
				return "", console.Usagef("--skills-from %s: %w", dir, err)
			}
		}
		return skills, nil
	}
	manifest, err := os.ReadFile(filepath.Join(family.Dir, "apm.yml"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the family's apm.yml: %w", err)
	}
	apm := agent.LookPath(con.Environ, "apm")
	if apm == "" {
		return "", console.Exitf(console.ExitIncomplete,
			"the family has an apm.yml, and apm is not installed; install it (https://github.com/microsoft/apm), or "+
				"pass the skills with --skills-from DIR")
	}
	family.Skills, err = installSkills(ctx, con, family, apm, manifest, cache)
	return "", err
}

func installSkills(ctx context.Context, con *console.Console, family *task.Family, apm string, manifest []byte,
	cache string,
) (string, error) {
	lock, err := os.ReadFile(filepath.Join(family.Dir, "apm.lock.yaml"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the family's apm.lock.yaml: %w", err)
	}
	lock = bytes.ReplaceAll(lock, []byte("\r\n"), []byte("\n"))
	own := ""
	if family.Skills != "" {
		if own, err = experiment.TreeDigest(filepath.Join(family.Skills, ".claude")); err != nil {
			return "", fmt.Errorf("the family's skills: %w", err)
		}
	}
	if cache == "" {
		return "", console.Exitf(console.ExitIncomplete,
			"there is no cache directory to install skills into; set HOME or XDG_CACHE_HOME")
	}
	sum := sha256.Sum256([]byte(string(manifest) + "\x00" + string(lock) + "\x00" + own))
	dir := filepath.Join(cache, "skills", hex.EncodeToString(sum[:12]))
	if _, err := os.Stat(filepath.Join(dir, ".claude")); err == nil {
		return dir, nil
	}
	return dir, installation{
		what:  "skills",
		argv:  []string{apm, "install", "--target", "claude"},
		leave: ".claude",
		prepare: func(room string) error {
			err := os.WriteFile(filepath.Join(room, "apm.yml"), manifest, 0o600)
			if len(lock) > 0 {
				err = errors.Join(err, os.WriteFile(filepath.Join(room, "apm.lock.yaml"), lock, 0o600))
			}
			if family.Skills != "" {
				err = errors.Join(err, tree.Copy{To: ".claude"}.Dir(ctx, filepath.Join(family.Skills, ".claude"), room))
			}
			return err
		},
		finish: mergeAgents,
	}.into(ctx, con, dir)
}

// mergeAgents adds the agents that packages ship, which apm leaves in its modules.
func mergeAgents(room string) error {
	for _, agents := range glob.Below(room, "apm_modules/*/*/agents") {
		err := tree.Copy{
			To:     ".claude/agents",
			Over:   tree.Replace,
			Accept: func(e *tree.Entry) (bool, error) { return e.IsDir() || e.IsRegular(), nil },
		}.Dir(context.Background(), agents, room)
		if err != nil {
			return err
		}
	}
	return nil
}
