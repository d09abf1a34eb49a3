package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Container holds the programs of one place: they see an image, the paths that their isolation
// names, and nothing else of the machine. It is started when the first program needs it, and lives
// until Close, or until we die.
type Container struct {
	cfg ContainerConfig

	mu     sync.Mutex
	rooms  []*room
	doors  map[int]*containerDoor
	closed bool
}

// containerDoor is a service of ours that answers on a port of a container.
type containerDoor struct {
	serve func(net.Listener) error
	users int // the number of users that have not released it
}

// ContainerConfig says which container to make.
type ContainerConfig struct {
	Engine *Engine
	Image  Image
	// Work is a directory of the machine that is also shown at Workdir, an absolute path inside.
	Work, Workdir string
	// Tools are files of the machine that programs find by these names, behind those of the image's
	// own PATH, and Commands are names under which they find fit itself.
	Tools    map[string]string
	Commands []string
	User     string   // of programs that name none; empty: the image's
	Env      []string // beside the image's own
	// HostNetwork gives the machine's network; otherwise there is a loopback, on which only the
	// container's own programs and those that Open opens answer.
	HostNetwork bool
	// Bridge gives a network of its own with a way out, in place of a loopback alone.
	Bridge bool
	// Net is a container whose network this one shares, and Hosts are names of its loopback.
	Net   *Container
	Hosts []string
	// Mounts are paths of the machine by their paths inside.
	Mounts []ContainerMount
	// KeepEntrypoint runs the image's entry point beside the programs.
	KeepEntrypoint bool
	// KeepRunning keeps processes that a program leaves behind alive.
	KeepRunning bool
	// CPUs, MemoryBytes and Processes, beside a few of our own, limit all processes together; zero
	// is no limit, for Processes it is defaultProcesses.
	CPUs        float64
	MemoryBytes uint64
	Processes   uint64
	// Over is a container whose files, network and processes this one shares, as its root would see
	// them, while its own processes are out of the other's reach. See Engine.Layers.
	Over *Container
	// Private are paths inside that are directories of this container alone.
	Private []string
}

// ContainerMount is a path of the machine that a container shows at another.
type ContainerMount struct {
	Source, Target string
	ReadOnly       bool
}

const defaultProcesses = 4096

// toolsInside is the directory of tools and commands in a container.
const toolsInside = "/.fit/bin"

// containerName is the name of our binary as the first process of a container, and when it moves
// files in and out; helperInside is its path in a container.
const (
	containerName = "fit-sandbox-container"
	helperInside  = "/.fit/" + containerName
)

// defaultPath is the search path of an image that sets none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// NewContainer returns a container that is started when it is needed.
func NewContainer(cfg ContainerConfig) *Container {
	cfg.User = cmp.Or(cfg.User, cfg.Image.User)
	return &Container{cfg: cfg, doors: map[int]*containerDoor{}}
}

// OwnNetwork reports whether the container has another network than the machine.
func (c *Container) OwnNetwork() bool { return !c.cfg.HostNetwork }

// Config returns what the container was made from.
func (c *Container) Config() ContainerConfig { return c.cfg }

var errContainerClosed = errors.New("the container was removed")

// environment returns the variables of a program in the container: the image's own, those of the
// container, and then the caller's, except the search path, which is for the machine.
func (c *Container) environment(given []string) []string {
	env := Environment{"PATH": defaultPath}
	env.Assign(c.cfg.Image.Env...)
	env.Assign(c.cfg.Env...)
	search := env["PATH"]
	env.Assign(given...)
	env["PATH"] = search + string(filepath.ListSeparator) + toolsInside
	return env.List()
}

// usersHome stands for the home directory of the program's user.
const usersHome = "~"

// homes returns the home directory that a program finds in place of the one that it is given: the
// image's own variable, or its user's. Empty: it keeps what it is given.
func (c *Container) homes(i Isolation) string {
	if !i.ImageHome {
		return ""
	}
	env := Environment{"HOME": usersHome}
	env.Assign(c.cfg.Image.Env...)
	env.Assign(c.cfg.Env...)
	return env["HOME"]
}

// inside returns the path in the container of a directory of the machine.
func (c *Container) inside(dir string) string {
	switch {
	case dir == "" && c.cfg.Workdir == "":
		return "/"
	case dir == "":
		return c.cfg.Workdir
	case c.cfg.Work != "" && dir == c.cfg.Work:
		return c.cfg.Workdir
	}
	return dir
}

// bind is a path of the machine that the container shows.
type bind struct {
	source   string // empty: an empty directory
	writable bool
}

// binds returns the mounts of an isolation, by target.
func (c *Container) binds(i Isolation) (map[string]bind, error) {
	all := map[string]bind{}
	for _, requested := range []struct {
		paths    []string
		writable bool
	}{{i.ReadOnly, false}, {i.Writable, true}} {
		for _, path := range requested.paths {
			resolved, err := filepath.EvalSymlinks(path)
			if err != nil {
				return nil, err
			}
			// The system's directories are the image's own.
			if resolved == "/" || slices.ContainsFunc(containerOwn, func(own string) bool {
				return resolved == own || strings.HasPrefix(own, resolved+"/")
			}) {
				continue
			}
			for _, target := range []string{filepath.Clean(path), resolved} {
				all[target] = bind{source: resolved, writable: requested.writable}
			}
		}
	}
	for _, path := range i.Hidden {
		hide(all, path)
	}
	if c.cfg.Work != "" && c.cfg.Workdir != "" {
		work, shown := all[c.cfg.Work]
		if !shown {
			return nil, fmt.Errorf("the working directory %s is not visible in the container", c.cfg.Work)
		}
		all[c.cfg.Workdir] = work
	}
	for _, m := range c.cfg.Mounts {
		all[m.Target] = bind{source: m.Source, writable: !m.ReadOnly}
	}
	for name, tool := range c.cfg.Tools {
		all[toolsInside+"/"+name] = bind{source: tool}
	}
	if len(c.cfg.Commands) > 0 {
		helper, err := helperProgram()
		if err != nil {
			return nil, err
		}
		for _, name := range c.cfg.Commands {
			all[toolsInside+"/"+name] = bind{source: helper}
		}
	}
	return all, nil
}

// hide covers a path with an empty one, where a mount would show it.
func hide(all map[string]bind, path string) {
	info, err := os.Stat(path)
	_, asked := all[path]
	if err != nil || asked {
		return
	}
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if above, ok := all[dir]; ok && above.source != "" {
			all[path] = bind{}
			if !info.IsDir() {
				all[path] = bind{source: os.DevNull}
			}
			return
		}
	}
}

// containerOwn are the directories of an image that nothing of the machine may cover.
var containerOwn = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/usr/bin",
	"/usr/lib", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/usr/sbin", "/var", "/opt", "/tmp", "/root", "/home",
}

// covers reports whether a container with some mounts shows everything that others show.
func covers(has, wants map[string]bind) bool {
	for target, want := range wants {
		found := false
		for dir := target; ; dir = filepath.Dir(dir) {
			if mount, ok := has[dir]; ok {
				rest, err := filepath.Rel(dir, target)
				found = err == nil && filepath.Join(mount.source, rest) == want.source &&
					(mount.writable || !want.writable)
				break
			}
			if dir == "/" {
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// mountArguments returns the mounts of a command line, outer ones first.
func mountArguments(binds map[string]bind) []string {
	var args []string
	for _, target := range slices.Sorted(maps.Keys(binds)) {
		b := binds[target]
		fields := []string{"type=bind", "source=" + b.source, "target=" + target}
		if !b.writable {
			fields = append(fields, "readonly")
		}
		for i, field := range fields {
			if strings.ContainsAny(field, `,"`) {
				fields[i] = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
			}
		}
		args = append(args, "--mount", strings.Join(fields, ","))
	}
	return args
}

// HelperVariable names a static build of fit that containers run, where fit itself is not one.
const HelperVariable = "FIT_HELPER"

// helperProgram is the file that containers run as their first process.
var helperProgram = sync.OnceValues(func() (string, error) {
	path := os.Getenv(HelperVariable)
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			return "", err
		}
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if !isStatic(path) {
		return "", fmt.Errorf("%s needs libraries that an image may not have: build fit with CGO_ENABLED=0, or name "+
			"such a build in %s", path, HelperVariable)
	}
	return path, nil
})
