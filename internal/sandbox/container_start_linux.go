package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/seccomp"
	"github.com/fit-eval/fit/internal/sandbox/untrusted"
	"github.com/fit-eval/fit/internal/scratch"
)

// statusRefused is the exit status of an engine that does not start a container at all.
const statusRefused = 125

// otherWay reports whether a start that failed is worth another try: with runc, as podman's default
// fails with some kernels and limits, or with a filter that programs get from us, as podman's
// imitation of docker takes none.
func (e *Engine) otherWay(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Kind == IsolationDocker && !e.ownFilter && ok && exit.ExitCode() == statusRefused {
		e.ownFilter = true
		return true
	}
	if e.Kind != IsolationPodman || e.runtime != "" || !ok || exit.ExitCode() != untrusted.StatusNotExecutable {
		return false
	}
	if _, err := exec.LookPath("runc"); err != nil {
		return false
	}
	e.runtime = "runc"
	return true
}

func (c *Container) tryStart(ctx context.Context, helper string, binds map[string]bind, below []string,
) (r *room, err error) {
	dir, err := scratch.Make("", "fit-container-")
	if err != nil {
		return nil, err
	}
	r = &room{
		engine: c.cfg.Engine,
		name:   "fit-" + strings.ToLower(rand.Text()),
		binds:  binds,
		dir:    dir,
		doors:  map[int]net.Listener{},
		above:  below != nil,
		keeps:  c.cfg.KeepRunning,

		unfiltered: c.cfg.Engine.filters(),
	}
	listener, err := r.listen()
	if err == nil {
		r.own, err = c.makePrivate(dir.Path)
	}
	if err == nil {
		r.shown, err = r.emptied()
	}
	if profile := seccomp.Profile(); err == nil && profile != nil && !r.unfiltered {
		r.filter = filepath.Join(dir.Path, "seccomp.json")
		err = os.WriteFile(r.filter, profile, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	defer listener.Close()
	var said lastBytes
	// Not ended with the context: a client that is killed half way leaves a container behind.
	cmd := c.cfg.Engine.command(context.WithoutCancel(ctx), c.arguments(r, helper, below)...)
	cmd.Stderr, cmd.WaitDelay = &said, waitDelay
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	client := make(chan error, 1)
	go func() { client <- cmd.Wait(); close(client) }()
	r.close = sync.OnceValue(func() error { return r.remove(client) })
	if err := r.await(ctx, listener, client); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); ok {
			err = c.cfg.Engine.failed("run", said.kept, err)
		}
		return nil, errors.Join(fmt.Errorf("start a container from %s: %w", c.cfg.Image.Name, err), r.close())
	}
	return r, nil
}

// emptied returns the mounts with a directory for each of those that are to be empty. The engine
// makes other mounts in it.
func (r *room) emptied() (map[string]bind, error) {
	shown := maps.Clone(r.binds)
	for target, b := range shown {
		if b.source != "" {
			continue
		}
		dir, err := os.MkdirTemp(r.dir.Path, "empty-")
		if err == nil {
			err = os.Chmod(dir, 0o755) //nolint:gosec // its parent is closed to all others
		}
		if err != nil {
			return nil, err
		}
		shown[target] = bind{source: dir, writable: true}
	}
	return shown, nil
}

// filters reports whether programs get their filter from us, because the engine takes none.
func (e *Engine) filters() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ownFilter
}

// listen opens the socket that the container's first process connects to.
func (r *room) listen() (*net.UnixListener, error) {
	line := filepath.Join(r.dir.Path, "line")
	if err := os.Mkdir(line, 0o755); err != nil {
		return nil, err
	}
	at, err := os.Open(line)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	path := fmt.Sprintf("/proc/self/fd/%d/%s", at.Fd(), lineName) // the kernel bounds the length of its path
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)       // it is removed with its directory
	return listener, os.Chmod(path, 0o666) //nolint:gosec // the directory is closed to all others
}

// await waits until the first process has connected and says that it is ready.
func (r *room) await(ctx context.Context, listener *net.UnixListener, client <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, containerStart)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = listener.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	failed := make(chan error, 1)
	go func() {
		if err := <-client; err != nil {
			failed <- err
			_ = listener.SetDeadline(time.Unix(1, 0))
			return
		}
		// it was started, and has to connect soon
		_ = listener.SetDeadline(time.Now().Add(containerStart / 4))
	}()
	line, err := listener.AcceptUnix()
	if err != nil {
		select {
		case exit := <-failed:
			return exit
		default:
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errors.New("fit's own program does not run in it: is it an image for this machine's processor " +
			"architecture?")
	}
	_ = os.Remove(filepath.Join(r.dir.Path, "line", lineName)) // nobody else may connect
	if r.pid, err = peerProcess(line); err != nil {
		return errors.Join(err, line.Close())
	}
	_ = line.SetReadDeadline(time.Now().Add(containerStart / 4))
	if r.network, err = openNetwork(line, nil); err == nil {
		err = line.SetReadDeadline(time.Time{})
		r.prefer()
	}
	return err
}

// preferred is the niceness of our own processes in a container: thousands of programs as urgent as
// they are would leave them no time to end these.
const preferred = -20

// prefer makes the first process more urgent than programs, and with it the supervisors that it
// starts. Only root can.
func (r *room) prefer() {
	if priority, err := unix.Getpriority(unix.PRIO_PROCESS, r.pid); err == nil {
		r.nice = 20 - priority // as the kernel counts
	}
	threads, _ := os.ReadDir("/proc/" + strconv.Itoa(r.pid) + "/task")
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, preferred)
		}
	}
}

func peerProcess(line *net.UnixConn) (int, error) {
	raw, err := line.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, failed
	}
	return int(peer.Pid), nil
}

// ownThreads is how many of a container's processes our own need: the kernel counts threads, and a
// supervisor has about ten.
const ownThreads = 48

// arguments returns the command line that starts a container.
func (c *Container) arguments(r *room, helper string, below []string) []string {
	args := []string{
		"run", "--detach", "--rm", "--pull", "never", "--name", r.name, "--user", "0:0", "--workdir", "/",
		"--log-driver", "none", "--security-opt", "label=disable", "--entrypoint", helperInside,
	}
	if r.filter != "" {
		args = append(args, "--security-opt", "seccomp="+r.filter)
	}
	if below == nil {
		args = append(args, c.network()...)
	}
	processes := cmp.Or(c.cfg.Processes, defaultProcesses) + ownThreads
	args = append(args, "--pids-limit", strconv.FormatUint(processes, 10))
	if c.cfg.MemoryBytes > 0 {
		bytes := strconv.FormatUint(c.cfg.MemoryBytes, 10)
		args = append(args, "--memory", bytes, "--memory-swap", bytes)
	}
	if c.cfg.CPUs > 0 {
		args = append(args, "--cpus", strconv.FormatFloat(c.cfg.CPUs, 'f', -1, 64))
	}
	args = append(args, ulimits()...)
	args = append(args, ownLabels()...)
	args = append(args, mountArguments(r.shown)...)
	args = append(args, mountArguments(map[string]bind{
		helperInside: {source: helper},
		lineInside:   {source: filepath.Join(r.dir.Path, "line")},
	})...)
	args = append(args, mountArguments(r.own)...)
	if below == nil {
		below = []string{c.cfg.Image.ID}
	}
	return append(append(args, below...), lineInside+"/"+lineName)
}

// network returns the arguments for the network of the container. A network is shared by its path
// where the engine can: an engine that knows that one container needs another does not remove the
// other while both end.
func (c *Container) network() []string {
	kind := "none"
	switch {
	case c.cfg.Net != nil:
		shared := c.cfg.Net.running()
		kind = "container:" + shared[0].name
		if c.cfg.Engine.Kind != IsolationPodman {
			return []string{"--network", kind} // with the names of its hosts
		}
		kind = fmt.Sprintf("ns:/proc/%d/ns/net", shared[0].pid)
	case c.cfg.HostNetwork:
		kind = "host"
	case c.cfg.Bridge:
		kind = "bridge"
	}
	args := []string{"--network", kind}
	for _, name := range c.cfg.Hosts {
		args = append(args, "--add-host", name+":127.0.0.1")
	}
	return args
}

// containerUlimit is the most open files, and processes per user, that a container asks for.
const containerUlimit = 16384

// ulimits returns limits within our own: engines ask for higher ones, which not every user may
// have.
func ulimits() []string {
	var args []string
	for _, limit := range []struct {
		name     string
		resource int
	}{{"nofile", unix.RLIMIT_NOFILE}, {"nproc", unix.RLIMIT_NPROC}} {
		var now unix.Rlimit
		if unix.Getrlimit(limit.resource, &now) != nil {
			continue
		}
		value := strconv.FormatUint(min(now.Max, containerUlimit), 10)
		args = append(args, "--ulimit", limit.name+"="+value+":"+value)
	}
	return args
}

// isStatic reports whether a program needs no library.
func isStatic(path string) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return !slices.ContainsFunc(file.Progs, func(part *elf.Prog) bool { return part.Type == elf.PT_INTERP })
}

// startEntrypoint runs the image's entry point until the container ends.
func (c *Container) startEntrypoint(r *room) error {
	started := make(chan error, 1)
	isolation := Isolation{Kind: c.cfg.Engine.Kind, Container: c}
	go func() {
		_, err := Local{}.Spawn(context.Background(), SpawnSpec{
			Argv:      append(append([]string{}, c.cfg.Image.Entrypoint...), "sh", "-c", "sleep infinity"),
			Env:       nil,
			Isolation: isolation,
			OnStart:   func(int) { started <- nil },
			room:      r,
		}, nil, nil)
		if err != nil {
			started <- err
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("the image's entry point: %w", err)
	}
	return nil
}
