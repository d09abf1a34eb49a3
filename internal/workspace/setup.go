package workspace

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/sandbox"
)

// setupTimeout bounds a task's setup command, which may have to fetch and build things.
const setupTimeout = 30 * time.Minute

// runSetup runs the task's setup command in the tree of a base: what it leaves there is part of
// what every agent starts from. It sees no more of the machine than an agent does.
func runSetup(ctx context.Context, cfg Config, tree, scratch string) error {
	home, tmp := filepath.Join(scratch, "home"), filepath.Join(scratch, "tmp")
	for _, dir := range []string{home, tmp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	kind, err := chooseIsolation(ctx, cmp.Or(cfg.Isolation, cfg.Task.Settings.Isolation))
	if err != nil {
		return err
	}
	w := &Workspace{Isolation: kind, cfg: cfg}
	place := w.place(tree, home, tmp, w.environment(home, tmp, ""), sandbox.Isolation{
		Network:  cfg.Task.Spec.Network != "deny",
		Writable: []string{tree, home, tmp},
	})
	var output strings.Builder
	result, err := cmp.Or(cfg.Spawner, sandbox.NewSpawner()).Spawn(ctx, sandbox.SpawnSpec{
		Argv:      []string{"sh", "-c", cfg.Task.Spec.SetupCommand},
		Dir:       place.Dir,
		Env:       place.Env.List(),
		Isolation: place.Isolation,
		Limits:    place.Limits,
		Timeout:   setupTimeout,
		MaxOutput: 16 << 20,
	}, &output, &output)
	switch {
	case err != nil:
		return fmt.Errorf("setupCommand: %w", err)
	case result.TimedOut:
		return fmt.Errorf("setupCommand took longer than %s", setupTimeout)
	case result.ExitCode != 0:
		printed := strings.TrimSpace(output.String())
		if printed != "" {
			printed = ": " + display.Line(printed[max(0, len(printed)-messageLimit):])
		}
		return fmt.Errorf("setupCommand ended with exit code %d%s", result.ExitCode, printed)
	}
	return nil
}

// BaseFiles returns the files of the base whose names a function accepts, up to a size limit each,
// for callers that need to know what a task's tests expect.
func (w *Workspace) BaseFiles(accept func(name string) bool, limit int64) (map[string][]byte, error) {
	root, err := os.OpenRoot(w.base.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	found := map[string][]byte{}
	for _, name := range w.base.order {
		n := w.base.nodes[name]
		if !n.IsRegular() || n.Size > limit || isGitPath(name) || !accept(name) {
			continue
		}
		if found[name], err = root.ReadFile(name); err != nil {
			return nil, err
		}
	}
	return found, nil
}
