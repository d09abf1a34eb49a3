package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/tree"
)

// beside is what runs beside the agent's container: the services of the task, and a container that
// holds the network of them all, in which each of their names is that of the loopback.
type beside struct {
	network *sandbox.Container
	hosts   []string
	mounts  []sandbox.ContainerMount // of the agent's container
	running []*besideService
	end     context.CancelFunc
}

// besideService is a service that runs.
type besideService struct {
	*task.Service
	place  Place
	done   chan struct{} // closed when it has ended
	result sandbox.SpawnResult
	err    error
	said   lastOutput
}

// lastOutput keeps the end of what a service prints.
type lastOutput struct {
	mu   sync.Mutex
	kept []byte
}

func (o *lastOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, p...)
	o.kept = o.kept[max(0, len(o.kept)-messageLimit):]
	return len(p), nil
}

// line returns the last line.
func (o *lastOutput) line() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := bytes.TrimSpace(o.kept)
	return display.Line(string(text[bytes.LastIndexByte(text, '\n')+1:]))
}

// startBeside starts the services of the task in order, and returns when the agent can start: all
// run, and those with a healthcheck are healthy.
func (w *Workspace) startBeside(ctx context.Context) error {
	if w.containers == nil || len(w.containers.env.Services) == 0 {
		return nil
	}
	env := w.containers.env
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	b := &beside{hosts: append(env.Hosts(), harborMain), end: end}
	w.beside = b
	b.network = w.container("network", "", func(cfg *sandbox.ContainerConfig) {
		cfg.Work, cfg.Workdir, cfg.Env, cfg.Bridge, cfg.Hosts = "", "", nil, w.agentOnHost(), b.hosts
	})
	var err error
	if b.mounts, err = w.mountsBeside(ctx, env.Mounts); err != nil {
		return err
	}
	for i := range env.Services {
		s := &env.Services[i]
		for name, condition := range s.Needs {
			if err := b.await(ctx, name, condition); err != nil {
				return err
			}
		}
		if err := w.startService(ctx, living, s); err != nil {
			return fmt.Errorf("service %s: %w", s.Name, err)
		}
	}
	for _, s := range b.running {
		condition := task.ServiceStarted
		if s.Environment.Healthcheck != nil {
			condition = task.ServiceHealthy
		}
		if err := b.await(ctx, s.Name, condition); err != nil {
			return err
		}
	}
	return nil
}

// harborMain is the name of the agent's container for the services beside it.
const harborMain = "main"

// startService starts one service; it lives until the context ends.
func (w *Workspace) startService(ctx, living context.Context, s *task.Service) error {
	engine, image, err := w.cfg.engines().image(ctx, w.containers.engine.Kind, &s.Environment)
	if err != nil {
		return err
	}
	mounts, err := w.mountsBeside(ctx, s.Environment.Mounts)
	if err != nil {
		return err
	}
	variables := sandbox.Environment(s.Environment.Env).List()
	for name, value := range s.Secrets {
		variables = append(variables, name+"="+value)
	}
	workdir := path.Clean("/" + cmp.Or(s.Environment.Workdir, image.Workdir))
	made := w.container("service", s.Name, func(cfg *sandbox.ContainerConfig) {
		cfg.Image, cfg.Work, cfg.Workdir, cfg.Env = image, "", workdir, variables
		cfg.User, cfg.Net, cfg.Hosts = s.Environment.User, w.beside.network, w.beside.hosts
		cfg.CPUs, cfg.MemoryBytes = s.Limits.CPUs, uint64(s.Limits.MemoryMB)<<20
		cfg.Mounts = mounts
	})
	argv := append(append([]string{}, image.Entrypoint...), image.Command...)
	if s.Command != nil {
		argv = append(append([]string{}, image.Entrypoint...), s.Command...)
	}
	if s.Entrypoint != nil { // the image's own command belonged to the other
		argv = append(append([]string{}, s.Entrypoint...), s.Command...)
	}
	if len(argv) == 0 {
		return fmt.Errorf("neither it nor its image %s has a command", image.Name)
	}
	one := &besideService{Service: s, done: make(chan struct{}), place: Place{
		Dir:       workdir,
		Env:       sandbox.Environment{},
		Isolation: sandbox.Isolation{Kind: engine.Kind, Container: made, ImageHome: true},
	}}
	w.beside.running = append(w.beside.running, one)
	started := make(chan struct{})
	go func() {
		defer close(one.done)
		one.result, one.err = sandbox.NewSpawner().Spawn(living, sandbox.SpawnSpec{
			Argv:      argv,
			Dir:       workdir,
			Grace:     -1,
			MaxOutput: -1,
			Isolation: one.place.Isolation,
			OnStart:   func(int) { close(started) },
		}, &one.said, &one.said)
	}()
	select {
	case <-started:
		return nil
	case <-one.done:
		return one.err
	}
}

// settled is how long a service without a healthcheck must run before it counts as started.
const settled = 200 * time.Millisecond

// await waits until a service is as another needs it.
func (b *beside) await(ctx context.Context, name, condition string) error {
	for _, s := range b.running {
		if s.Name == name {
			if err := s.await(ctx, condition); err != nil {
				return fmt.Errorf("service %s: %w", name, err)
			}
		}
	}
	return nil
}

func (s *besideService) await(ctx context.Context, condition string) error {
	if condition == task.ServiceHealthy && s.Environment.Healthcheck == nil {
		condition = task.ServiceStarted
	}
	switch condition {
	case task.ServiceCompleted:
		select {
		case <-s.done:
			return s.failure()
		case <-ctx.Done():
			return ctx.Err()
		}
	case task.ServiceHealthy:
		healthy, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-s.done:
				cancel() // it will never be healthy
			case <-healthy.Done():
			}
		}()
		err := awaitHealth(healthy, s.Environment.Healthcheck, s.place)
		if err == nil || ctx.Err() != nil || healthy.Err() == nil {
			return err
		}
		return cmp.Or(s.failure(), fmt.Errorf("%w: it ended before it was healthy", ErrUnhealthy))
	default:
		select {
		case <-s.done:
			return s.failure()
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settled):
			return nil
		}
	}
}

// failure returns why a service that has ended did not succeed.
func (s *besideService) failure() error {
	switch {
	case s.err != nil:
		return s.err
	case s.result.ExitCode != 0:
		how := cmp.Or(s.result.Signal, "exit code "+strconv.Itoa(s.result.ExitCode))
		return fmt.Errorf("it ended (%s) before the agent started: %s", how, s.said.line())
	}
	return nil
}

// mountsBeside makes the directories of volumes, which all containers of the task share, and the
// copies of its files.
func (w *Workspace) mountsBeside(ctx context.Context, mounts []task.Mount) ([]sandbox.ContainerMount, error) {
	root := filepath.Join(w.Root, "beside")
	var made []sandbox.ContainerMount
	for _, m := range mounts {
		source := filepath.Join(root, "volumes", m.Volume)
		var err error
		if m.Volume == "" {
			source, err = copyBeside(ctx, root, m.Source)
		} else {
			err = errors.Join(os.MkdirAll(source, 0o755), os.Chmod(source, 0o777)) //nolint:gosec // any user's
		}
		if err != nil {
			return nil, err
		}
		made = append(made, sandbox.ContainerMount{Source: source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	return made, nil
}

// copyBeside copies a file or directory of the task, which no container may change.
func copyBeside(ctx context.Context, root, source string) (string, error) {
	if err := os.MkdirAll(root, 0o755); err != nil { //nolint:gosec // the directory above is private
		return "", err
	}
	dir, err := os.MkdirTemp(root, "file-")
	if err != nil {
		return "", err
	}
	dest := filepath.Join(dir, filepath.Base(source))
	info, err := os.Stat(source)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		if err := os.Mkdir(dest, info.Mode().Perm()|0o700); err != nil {
			return "", err
		}
		return dest, tree.Copy{}.Dir(ctx, source, dest)
	}
	content, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	return dest, os.WriteFile(dest, content, info.Mode().Perm())
}

// stopBeside ends the services; their containers are removed with all others.
func (w *Workspace) stopBeside() {
	if w.beside == nil {
		return
	}
	w.beside.end()
	for _, s := range w.beside.running {
		<-s.done
	}
}
