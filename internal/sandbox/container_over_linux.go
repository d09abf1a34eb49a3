package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Layers reports whether containers of this engine can be made over others.
func (e *Engine) Layers() bool { return e.Kind == IsolationPodman }

// aboveCapability is a capability that programs of a container over another have and programs of
// the other do not, so that the kernel denies these access to their files and memory. It has no
// other use.
const aboveCapability = "WAKE_ALARM"

// below returns the arguments of a container over another: its root directory, which is the
// other's, comes last. They are nil for a container that is not over another.
func (c *Container) below(ctx context.Context, i Isolation) ([]string, error) {
	if c.cfg.Over == nil {
		return nil, nil
	}
	r, err := c.cfg.Over.enter(ctx, i)
	if err != nil {
		return nil, err
	}
	root, err := r.engine.output(ctx, "inspect", "--type", "container", "--format",
		"{{.GraphDriver.Data.MergedDir}}", r.name)
	if err != nil {
		return nil, err
	}
	other := "container:" + r.name
	return []string{
		"--network", other, "--pid", other, "--ipc", other, "--cap-add", aboveCapability,
		"--rootfs", strings.TrimSpace(root),
	}, nil
}

// keepAbove makes this thread, which becomes a program, keep the capability when it becomes another
// user; finish is called as that user. It does nothing if there is no capability to keep.
func keepAbove() (finish func() error, err error) {
	const capability, bit = unix.CAP_WAKE_ALARM, 1 << (unix.CAP_WAKE_ALARM - 32)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil || has[1].Permitted&bit == 0 {
		return func() error { return nil }, err
	}
	return func() error {
		kept := [2]unix.CapUserData{1: {Permitted: bit, Inheritable: bit}}
		if err := unix.Capset(&header, &kept[0]); err != nil {
			return err
		}
		return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, capability, 0, 0)
	}, unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0)
}

// Start starts the container with the mounts of an isolation, unless it runs with these already.
func (c *Container) Start(ctx context.Context, i Isolation) error {
	_, err := c.enter(ctx, i)
	return err
}

// makePrivate makes the directories that only this container has.
func (c *Container) makePrivate(dir string) (map[string]bind, error) {
	if len(c.rooms) > 0 && len(c.cfg.Private) > 0 {
		return nil, errors.New("a container with directories of its own is started with all mounts together")
	}
	made := map[string]bind{}
	for n, path := range c.cfg.Private {
		source := filepath.Join(dir, "private-"+strconv.Itoa(n))
		if err := os.Mkdir(source, 0o755); err != nil {
			return nil, err
		}
		made[path] = bind{source: source, writable: true}
	}
	return made, nil
}

// Changed lists the files and directories of the image that programs in the container have changed
// or removed. Added files are not listed.
func (c *Container) Changed(ctx context.Context) ([]string, error) {
	var changed []string
	for _, r := range c.running() {
		printed, err := c.cfg.Engine.output(ctx, "diff", r.name)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(printed) {
			kind, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if kind == "C" || kind == "D" {
				changed = append(changed, path)
			}
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed), nil
}
