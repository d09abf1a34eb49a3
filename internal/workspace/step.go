package workspace

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
)

// The directories of a container that Harbor tasks know.
const (
	HarborAgentLogs = "/logs/agent"
	HarborArtifacts = "/logs/artifacts"
	HarborRewards   = "/logs/verifier"
)

// BeginStep makes the agent's container ready for one step of its task: the step's files are laid
// over the working directory, its setup.sh is run, and it is healthy.
func (w *Workspace) BeginStep(ctx context.Context, step *task.Step) error {
	place := w.Agent()
	place.Isolation.User = step.User
	container := place.Isolation.Container
	if container == nil {
		return fmt.Errorf("step %s: a task with steps needs a container", step.Name)
	}
	if err := w.lay(ctx); err != nil {
		return fmt.Errorf("step %s: %w", step.Name, err)
	}
	if step.Workdir != "" {
		if err := container.Lay(ctx, place.Isolation, step.Workdir, w.containers.workdir()); err != nil {
			return fmt.Errorf("step %s: lay its files over the working directory: %w", step.Name, err)
		}
	}
	if err := container.Own(ctx, step.User, place.Isolation, w.Dir, w.Home, w.TmpDir); err != nil {
		return fmt.Errorf("step %s: %w", step.Name, err)
	}
	if _, err := os.Stat(filepath.Join(step.Workdir, setupName)); step.Workdir != "" && err == nil {
		if err := w.setUpStep(ctx, place); err != nil {
			return fmt.Errorf("step %s: %w", step.Name, err)
		}
	}
	if err := awaitHealth(ctx, step.Healthcheck, place); err != nil {
		return fmt.Errorf("step %s: %w", step.Name, err)
	}
	return nil
}

// setupName is the program that prepares a step.
const setupName = "setup.sh"

func (w *Workspace) setUpStep(ctx context.Context, place Place) error {
	var said bytes.Buffer
	result, err := sandbox.NewSpawner().Spawn(ctx, sandbox.SpawnSpec{
		Argv:      []string{"bash", setupName},
		Dir:       w.Dir,
		Env:       place.Env.List(),
		Timeout:   w.containers.env.BuildTimeout,
		Grace:     -1,
		MaxOutput: 1 << 20,
		Isolation: place.Isolation,
		Limits:    place.Limits,
	}, nil, &said)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", setupName, err)
	case result.TimedOut:
		return fmt.Errorf("%s took longer than %s", setupName, w.containers.env.BuildTimeout)
	case result.ExitCode != 0:
		return fmt.Errorf("%s exits with %d: %s", setupName, result.ExitCode,
			display.CutBytes(strings.TrimSpace(said.String()), 1000))
	}
	return nil
}
