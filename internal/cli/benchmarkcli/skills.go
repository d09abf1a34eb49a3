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

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/experiment/local"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/task"
)

// installTimeout bounds an installation of skills.
const installTimeout = 10 * time.Minute

// stageSkills finds the skills that all arms without their own get: a directory that contains
// .claude, or nothing. A family with an apm.yml gets its packages installed, not into the family
// but into a cache that is keyed by what is to be installed.
func stageSkills(ctx context.Context, con *console.Console, family *task.Family, from, cache string) (string, error) {
	if from != "" {
		dir, err := absolute(con, from)
		if err != nil {
			return "", err
		}
		if info, err := os.Stat(filepath.Join(dir, ".claude")); err != nil || !info.IsDir() {
			return "", console.Usagef("--skills-from %s: it has no directory .claude", from)
		}
		return dir, nil
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
				"give the skills with --skills-from DIR")
	}
	return installSkills(ctx, con, family, apm, manifest, cache)
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
	return dir, buildSkills(ctx, con, family, apm, manifest, lock, dir)
}

// buildSkills installs into a directory beside the final one and moves it there when it is whole.
func buildSkills(ctx context.Context, con *console.Console, family *task.Family, apm string, manifest, lock []byte,
	dir string,
) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("install skills: %w", err)
	}
	room, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		return fmt.Errorf("install skills: %w", err)
	}
	defer func() { _ = local.RemoveAll(room) }()
	err = os.WriteFile(filepath.Join(room, "apm.yml"), manifest, 0o600)
	if len(lock) > 0 {
		err = errors.Join(err, os.WriteFile(filepath.Join(room, "apm.lock.yaml"), lock, 0o600))
	}
	if family.Skills != "" {
		err = errors.Join(err, os.CopyFS(filepath.Join(room, ".claude"),
			os.DirFS(filepath.Join(family.Skills, ".claude"))))
	}
	if err != nil {
		return fmt.Errorf("install skills: %w", err)
	}
	fmt.Fprintln(con.Stderr, "installing the family's skills: apm install --target claude")
	var stderr bytes.Buffer
	result, err := sandbox.NewSpawner().Spawn(ctx, sandbox.SpawnSpec{
		Argv:    []string{apm, "install", "--target", "claude"},
		Dir:     room,
		Env:     con.Environ,
		Timeout: installTimeout,
	}, discardOutput{}, &stderr)
	switch {
	case err != nil:
		return console.Exitf(console.ExitIncomplete, "install skills: apm: %w", err)
	case result.ExitCode != 0 || result.TimedOut:
		return console.Exitf(console.ExitIncomplete, "install skills: apm ended with exit code %d: %s", result.ExitCode,
			bytes.TrimSpace(stderr.Bytes()))
	}
	if err := mergeAgents(room); err != nil {
		return fmt.Errorf("install skills: %w", err)
	}
	if info, err := os.Stat(filepath.Join(room, ".claude")); err != nil || !info.IsDir() {
		return console.Exitf(console.ExitIncomplete, "install skills: apm left no .claude")
	}
	if err := os.Rename(room, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Stat(filepath.Join(dir, ".claude")); there != nil { // another process was faster
			return fmt.Errorf("install skills: %w", err)
		}
	}
	return nil
}

// mergeAgents adds the agents that packages ship, which apm leaves in its modules.
func mergeAgents(room string) error {
	found, err := filepath.Glob(filepath.Join(room, "apm_modules", "*", "*", "agents"))
	if err != nil {
		return err
	}
	for _, agents := range found {
		target := filepath.Join(room, ".claude", "agents")
		err := filepath.WalkDir(agents, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			rel, err := filepath.Rel(agents, path)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(target, rel)), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(target, rel), content, 0o644)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

type discardOutput struct{}

func (discardOutput) Write(p []byte) (int, error) { return len(p), nil }
