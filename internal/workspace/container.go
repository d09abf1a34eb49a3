package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/sandbox/untrusted"
	"github.com/fit-eval/fit/internal/task"
)

// defaultWorkdir is the working directory in an image that does not set one.
const defaultWorkdir = "/workspace"

// maxImageTree bounds what an image may have in its working directory.
const maxImageTree = 16 << 30

// containers are those of one workspace: one for the agent, and one for each copy that graders work
// on.
type containers struct {
	engine *sandbox.Engine
	image  sandbox.Image
	env    *task.Environment

	mu  sync.Mutex
	all map[string]*sandbox.Container
}

// openContainers finds the image of the workspace's task; it is nil for one that needs none.
func (cfg Config) openContainers(ctx context.Context) (*containers, error) {
	if !inContainer(cfg.Isolation, cfg.Task) {
		return nil, nil //nolint:nilnil // there is none, which is not an error
	}
	env := cfg.Task.Settings.Environment
	engine, image, err := cfg.engines().image(ctx, cmp.Or(cfg.Isolation, cfg.Task.Settings.Isolation), env)
	if err != nil {
		return nil, err
	}
	return &containers{
		engine: engine,
		image:  image,
		env:    env,
		all:    map[string]*sandbox.Container{},
	}, nil
}

// workdir returns the path of the working directory in the container.
func (c *containers) workdir() string {
	for _, dir := range []string{c.env.Workdir, c.image.Workdir} {
		if dir = path.Clean("/" + dir); dir != "/" {
			return dir
		}
	}
	return defaultWorkdir
}

// variables returns the environment's own.
func (c *containers) variables() []string { return sandbox.Environment(c.env.Env).List() }

// container returns the container of a name, which shows dir as the working directory.
func (w *Workspace) container(name, dir string, change func(*sandbox.ContainerConfig)) *sandbox.Container {
	c := w.containers
	c.mu.Lock()
	defer c.mu.Unlock()
	key := name + " " + dir
	if found := c.all[key]; found != nil {
		return found
	}
	limits := w.cfg.Task.Settings.Limits
	cfg := sandbox.ContainerConfig{
		Engine:      c.engine,
		Image:       c.image,
		Work:        dir,
		Workdir:     c.workdir(),
		User:        "0:0",
		Env:         c.variables(),
		CPUs:        limits.CPUs,
		MemoryBytes: uint64(limits.MemoryMB) << 20,
		Processes:   uint64(limits.Processes),
	}
	if change != nil {
		change(&cfg)
	}
	made := sandbox.NewContainer(cfg)
	c.all[key] = made
	return made
}

// agentContainer returns where the agent works.
func (w *Workspace) agentContainer() *sandbox.Container {
	return w.container("agent", w.Dir, func(cfg *sandbox.ContainerConfig) {
		cfg.User = w.containers.env.User
		cfg.HostNetwork = w.agentOnHost()
		if w.beside != nil {
			cfg.HostNetwork, cfg.Net, cfg.Hosts = false, w.beside.network, w.beside.hosts
			cfg.Mounts = w.beside.mounts
		}
		cfg.KeepEntrypoint, cfg.KeepRunning = w.containers.env.KeepEntrypoint, w.containers.env.KeepRunning
		cfg.Tools = w.cfg.Tools
	})
}

// graderContainer returns a new container for a copy. Its programs reach the services of the
// attempt.
func (w *Workspace) graderContainer(name, dir string) *sandbox.Container {
	fresh := false
	c := w.container(name, dir, func(cfg *sandbox.ContainerConfig) {
		fresh, cfg.HostNetwork = true, w.opensNetwork()
		cfg.Commands = append([]string{untrusted.Name}, w.cfg.Commands...)
	})
	if fresh && w.services != nil && w.Port != 0 && !w.opensNetwork() {
		port, serve := w.ServiceDoor()
		_, err := c.Open(context.Background(), port, serve) // nothing runs yet that could fail
		bestEffort(err)
	}
	return c
}

// closeContainers removes the containers of a name and of a directory; empty: all.
func (w *Workspace) closeContainers(name, dir string) error {
	c := w.containers
	if c == nil {
		return nil
	}
	c.mu.Lock()
	var closing []*sandbox.Container
	for key, one := range c.all {
		if (dir == "" || one.Config().Work == dir) && (name == "" || key == name+" "+dir) {
			closing = append(closing, one)
			delete(c.all, key)
		}
	}
	c.mu.Unlock()
	var failed []error
	for _, one := range closing {
		failed = append(failed, one.Close())
	}
	return errors.Join(failed...)
}

// Container says for the record what the attempt ran in.
func (w *Workspace) Container() (engine, version string, image sandbox.Image, inside bool) {
	if w.containers == nil {
		return "", "", sandbox.Image{}, false
	}
	return w.containers.engine.Kind, w.containers.engine.Version, w.containers.image, true
}

// openAgent makes the agent's container ready: its user owns the working directory, and what the
// image starts is healthy.
func (w *Workspace) openAgent(ctx context.Context) error {
	if w.containers == nil {
		return nil
	}
	if err := w.startBeside(ctx); err != nil {
		return err
	}
	place := w.Agent()
	agent := place.Isolation.Container
	if err := agent.Own(ctx, "", place.Isolation, w.Dir, w.Home, w.TmpDir); err != nil {
		return err
	}
	if w.cfg.Task.Verifier != nil {
		for _, dir := range []string{HarborAgentLogs, HarborArtifacts, HarborRewards} {
			if err := agent.Clear(ctx, dir, 0o777); err != nil {
				return err
			}
		}
	}
	return awaitHealth(ctx, w.containers.env.Healthcheck, place)
}

// ErrUnhealthy is the error of a container whose healthcheck fails.
var ErrUnhealthy = errors.New("healthcheck")

// awaitHealth waits until the healthcheck, if there is one, succeeds. Failures within its start
// period do not count.
func awaitHealth(ctx context.Context, check *task.Healthcheck, place Place) error {
	if check == nil {
		return nil
	}
	began, failures := time.Now(), 0
	for {
		argv := check.Argv
		if len(argv) == 0 {
			argv = []string{"bash", "-c", check.Command}
		}
		result, err := sandbox.NewSpawner().Spawn(ctx, sandbox.SpawnSpec{
			Argv:      argv,
			Dir:       place.Dir,
			Env:       place.Env.List(),
			Timeout:   check.Timeout,
			Grace:     -1,
			Isolation: place.Isolation,
		}, nil, nil)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnhealthy, err)
		}
		if result.ExitCode == 0 && !result.TimedOut {
			return nil
		}
		pause := check.StartInterval
		if time.Since(began) >= check.StartPeriod {
			pause = check.Interval
			if failures++; failures >= max(check.Retries, 1) {
				return fmt.Errorf("%w: %q failed %d times in a row", ErrUnhealthy, check.Command, failures)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Verifier returns the place of a verifier, which sees all that the agent left, in and out of the
// working directory, while the agent's processes keep running. If the engine can, it is a separate
// container over the agent's, and only its programs see the private paths. Otherwise it is the
// agent's own container. Calling release removes it.
func (w *Workspace) Verifier(user string, private ...string) (place Place, release func() error) {
	place = w.Agent()
	place.Isolation.ReadOnly, place.Isolation.User = nil, user
	agent := place.Isolation.Container
	if !w.containers.engine.Layers() {
		return place, func() error { return nil }
	}
	const name = "verifier"
	place.Isolation.Container = w.container(name, w.Dir, func(cfg *sandbox.ContainerConfig) {
		cfg.User, cfg.Over, cfg.Private = agent.Config().User, agent, private
	})
	return place, func() error { return w.closeContainers(name, w.Dir) }
}

// Fresh returns the place of a container from another environment, which is removed with the
// workspace. It shows nothing of the working directory.
func (w *Workspace) Fresh(ctx context.Context, env *task.Environment, name string, host bool) (Place, error) {
	engine, image, err := w.cfg.engines().image(ctx, w.containers.engine.Kind, env)
	if err != nil {
		return Place{}, err
	}
	other := &containers{engine: engine, image: image, env: env}
	workdir := path.Clean("/" + cmp.Or(env.Workdir, image.Workdir)) // there is no other to show there
	made := w.container("fresh", name, func(cfg *sandbox.ContainerConfig) {
		cfg.Image, cfg.Work, cfg.Workdir = image, "", workdir
		cfg.User, cfg.Env, cfg.HostNetwork, cfg.KeepEntrypoint = env.User, other.variables(), host, env.KeepEntrypoint
	})
	return Place{
		Dir:       workdir,
		Env:       w.environment("/root", "/tmp", w.hookRunID()),
		Isolation: sandbox.Isolation{Kind: engine.Kind, Container: made},
		Limits:    w.limits(),
	}, nil
}

// dialServices connects to a port where the services of the attempt are.
func (w *Workspace) dialServices(ctx context.Context, port int) (net.Conn, error) {
	c := w.containers
	c.mu.Lock()
	services := c.all["services "+w.servicesDir]
	c.mu.Unlock()
	if services == nil {
		return nil, errors.New("no service was started")
	}
	return services.Dial(ctx, port)
}

// imageTree copies the image's working directory into the tree of a base, and the skills that the
// image has elsewhere.
func (cfg Config) imageTree(ctx context.Context, tree string) error {
	c, err := cfg.openContainers(ctx)
	if err != nil || c == nil {
		return err
	}
	from := map[string]string{}
	if c.env.Workdir != "" || path.Clean("/"+c.image.Workdir) != "/" {
		from[c.workdir()] = tree
	}
	if c.env.Skills != "" {
		from[c.env.Skills] = filepath.Join(tree, cfg.skillsDir())
	}
	room := sandbox.NewContainer(sandbox.ContainerConfig{Engine: c.engine, Image: c.image, User: "0:0"})
	for _, dir := range slices.SortedFunc(maps.Keys(from), func(a, b string) int { // the whole before its parts
		return strings.Compare(from[a], from[b])
	}) {
		err = errors.Join(os.MkdirAll(from[dir], 0o755), room.Extract(ctx, dir, from[dir], maxImageTree))
		if errors.Is(err, os.ErrNotExist) && from[dir] == tree {
			err = nil
		}
		if err != nil {
			err = fmt.Errorf("%s of the image %s: %w", dir, c.image.Name, err)
			break
		}
	}
	return errors.Join(err, room.Close())
}
