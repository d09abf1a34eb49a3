package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
)

// Engines finds container engines and the images of tasks, each once. Its zero value is ready for
// use.
type Engines struct {
	// Pull gets images that are not on this machine from their registries.
	Pull bool
	// Progress, if set, shows what pulls and builds print.
	Progress io.Writer

	mu    sync.Mutex
	found map[string]*sandbox.Engine
}

// sharedEngines is for configurations that name none: engines are facts of the machine.
var sharedEngines Engines

func (cfg Config) engines() *Engines { return cmp.Or(cfg.Engines, &sharedEngines) }

// inContainer reports whether attempts at a task run in a container: it names an image, and no
// other isolation is requested.
func inContainer(asked string, t *task.Task) bool {
	asked = cmp.Or(asked, t.Settings.Isolation)
	return t.Settings.Environment != nil && (asked == "" || sandbox.InContainer(asked))
}

// engine finds the engine of a kind, or the first that works.
func (e *Engines) engine(ctx context.Context, kind string) (*sandbox.Engine, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if found := e.found[kind]; found != nil {
		return found, nil
	}
	engine, err := sandbox.FindEngine(ctx, kind)
	if err != nil {
		return nil, err
	}
	if e.found == nil {
		e.found = map[string]*sandbox.Engine{}
	}
	e.found[kind], e.found[engine.Kind] = engine, engine
	return engine, nil
}

// Check makes sure that the image of a task is on this machine, or can be built from those that
// are.
func (e *Engines) Check(ctx context.Context, asked string, t *task.Task) error {
	if !inContainer(asked, t) {
		if part := needsContainer(t); part != "" {
			return fmt.Errorf("task %s needs a container: %s; run it with podman or docker, or leave it out with "+
				"--task", t.ID, part)
		}
		if sandbox.InContainer(asked) {
			return fmt.Errorf("task %s names no image: add image: or dockerfile: to it, or run it without "+
				"--isolation %s", t.ID, asked)
		}
		return nil
	}
	engine, err := e.engine(ctx, cmp.Or(asked, t.Settings.Isolation))
	if err != nil {
		return fmt.Errorf("task %s needs a container: %w; --sandbox bwrap runs it with what the machine has", t.ID, err)
	}
	for _, env := range environments(t) {
		if err := e.checkImage(ctx, engine, env); err != nil {
			return fmt.Errorf("task %s: %w", t.ID, err)
		}
	}
	return nil
}

// needsContainer returns the feature of a task that needs a container; empty if none does.
func needsContainer(t *task.Task) string {
	switch {
	case len(t.Steps) > 0:
		return "it has steps"
	case t.Verifier != nil && t.Verifier.Environment != nil:
		return "its verifier has an image of its own"
	case t.Settings.Environment != nil && t.Settings.Environment.Skills != "":
		return "its image has skills for the agent"
	case t.Settings.Environment != nil && len(t.Settings.Environment.Services) > 0:
		return "services run beside it"
	}
	return ""
}

// environments returns the containers of a task: the agent's, and those of its verifiers.
func environments(t *task.Task) []*task.Environment {
	all := []*task.Environment{t.Settings.Environment}
	for i := range t.Settings.Environment.Services {
		all = append(all, &t.Settings.Environment.Services[i].Environment)
	}
	if t.Verifier != nil && t.Verifier.Environment != nil {
		all = append(all, t.Verifier.Environment)
	}
	for i := range t.Steps {
		if own := t.Steps[i].Verifier.Environment; own != nil {
			all = append(all, own)
		}
	}
	return all
}

// checkImage makes sure that an image, or what it is built from, is there.
func (e *Engines) checkImage(ctx context.Context, engine *sandbox.Engine, env *task.Environment) error {
	names := []string{env.Image}
	if env.Image == "" {
		if _, err := engine.Inspect(ctx, sandbox.BuiltName(env.Content)); err == nil {
			return nil
		}
		text, err := os.ReadFile(env.Dockerfile)
		if err != nil {
			return err
		}
		names = env.Bases(string(text))
	}
	return e.inspectAll(ctx, engine, names)
}

func (e *Engines) inspectAll(ctx context.Context, engine *sandbox.Engine, names []string) error {
	for _, name := range names {
		if _, err := e.inspect(ctx, engine, name); err != nil {
			return err
		}
	}
	return nil
}

// bases returns the ids of images, and pulls missing ones if it is told to and that is allowed.
func (e *Engines) bases(ctx context.Context, engine *sandbox.Engine, names []string, get bool) ([]string, error) {
	find := engine.Inspect
	if get {
		find = func(ctx context.Context, name string) (sandbox.Image, error) { return e.inspect(ctx, engine, name) }
	}
	var ids []string
	for _, name := range names {
		image, err := find(ctx, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, image.ID)
	}
	return ids, nil
}

// inspect finds an image, and pulls it where that is allowed.
func (e *Engines) inspect(ctx context.Context, engine *sandbox.Engine, name string) (sandbox.Image, error) {
	image, err := engine.Inspect(ctx, name)
	if _, absent := errors.AsType[*sandbox.MissingImageError](err); !absent || !e.Pull {
		return image, err
	}
	if err := engine.Pull(ctx, name, e.Progress); err != nil {
		return image, err
	}
	return engine.Inspect(ctx, name)
}

// image returns the image of an environment; one that has to be built is built once.
func (e *Engines) image(ctx context.Context, kind string, env *task.Environment,
) (*sandbox.Engine, sandbox.Image, error) {
	engine, err := e.engine(ctx, kind)
	if err != nil {
		return nil, sandbox.Image{}, err
	}
	if env.Image != "" {
		image, err := e.inspect(ctx, engine, env.Image)
		return engine, image, err
	}
	text, err := os.ReadFile(env.Dockerfile)
	if err != nil {
		return nil, sandbox.Image{}, err
	}
	image, err := engine.Build(ctx, sandbox.Build{
		Content: env.Content,
		Text:    env.Replaced(string(text)),
		Context: env.Context,
		Bases: func(ctx context.Context, get bool) ([]string, error) {
			return e.bases(ctx, engine, env.Bases(string(text)), get)
		},
		Timeout:  env.BuildTimeout,
		Progress: e.Progress,
	})
	return engine, image, err
}
