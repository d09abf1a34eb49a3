package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/sandbox/proc"
	"github.com/fit-eval/fit/internal/scratch"
)

// Where a container shows the socket to us.
const (
	lineInside = "/.fit/line"
	lineName   = "s"
)

const (
	// containerStart bounds the start of a container, and of a program in it, on a busy machine.
	containerStart = 2 * time.Minute
	// containerRemove bounds its removal.
	containerRemove = time.Minute
)

// treeContainment holds a tree without a PID namespace.
const treeContainment = SubReaper

// room is a container that runs.
type room struct {
	engine *Engine
	name   string
	binds  map[string]bind
	shown  map[string]bind // binds, with directories for empty ones
	own    map[string]bind // mounts that no other container has
	above  bool            // it is over another
	keeps  bool            // processes that programs leave running stay
	filter string          // the file of its seccomp profile
	// unfiltered says that the engine filters no system calls, so that programs do.
	unfiltered bool
	// network is the connection to the first process inside, which starts supervisors and opens
	// sockets.
	network *PrivateNetwork
	pid     int // of the first process, as we see it
	nice    int // the niceness of programs
	dir     *scratch.Dir
	doors   map[int]net.Listener
	serving sync.WaitGroup
	close   func() error
}

// enter returns a container that shows what an isolation asks for, starting one if none runs.
func (c *Container) enter(ctx context.Context, i Isolation) (*room, error) {
	wants, err := c.binds(i)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errContainerClosed
	}
	for n := 0; n < len(c.rooms); n++ {
		r := c.rooms[n]
		select {
		case <-r.network.ended: // a program in there has killed it
			c.rooms = append(c.rooms[:n], c.rooms[n+1:]...)
			n--
			_ = r.close()
			continue
		default:
		}
		if covers(r.binds, wants) {
			return r, nil
		}
	}
	below, err := c.below(ctx, i)
	if err != nil {
		return nil, err
	}
	if c.cfg.Net != nil { // it must run
		if _, err := c.cfg.Net.enter(ctx, Isolation{}); err != nil {
			return nil, err
		}
	}
	r, err := c.start(ctx, wants, below)
	if err != nil {
		return nil, err
	}
	for port, door := range c.doors {
		if err := r.open(ctx, port, door.serve); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	c.rooms = append(c.rooms, r)
	if c.cfg.KeepEntrypoint && len(c.cfg.Image.Entrypoint) > 0 {
		if err := c.startEntrypoint(r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Open lets a service of ours answer on a port of the container's loopback, until release. Opening
// a port that is open shares its service; the port closes with the last release.
func (c *Container) Open(ctx context.Context, port int, serve func(net.Listener) error) (release func(), err error) {
	if c.cfg.Net != nil {
		return c.cfg.Net.Open(ctx, port, serve)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doors[port] == nil {
		for n, r := range c.rooms {
			if err := r.open(ctx, port, serve); err != nil {
				for _, opened := range c.rooms[:n] {
					opened.closeDoor(port)
				}
				return nil, err
			}
		}
		c.doors[port] = &containerDoor{serve: serve}
	}
	c.doors[port].users++
	return sync.OnceFunc(func() { c.release(port) }), nil
}

// release closes a door once its last user has released it.
func (c *Container) release(port int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doors[port].users--; c.doors[port].users > 0 {
		return
	}
	delete(c.doors, port)
	for _, r := range c.rooms {
		r.closeDoor(port)
	}
}

// open opens one door.
func (r *room) open(ctx context.Context, port int, serve func(net.Listener) error) error {
	listener, err := r.network.Listen(ctx, port)
	if err != nil {
		return fmt.Errorf("port %d of the container: %w", port, err)
	}
	r.doors[port] = listener
	r.serving.Go(func() { _ = serve(listener) }) // it ends when the listener is closed
	return nil
}

// closeDoor closes a door.
func (r *room) closeDoor(port int) {
	if door := r.doors[port]; door != nil {
		_ = door.Close()
		delete(r.doors, port)
	}
}

// running returns the containers that were started and not removed.
func (c *Container) running() []*room {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.rooms)
}

// Dial connects us to a port of the loopback of a container that runs.
func (c *Container) Dial(ctx context.Context, port int) (net.Conn, error) {
	if c.cfg.Net != nil {
		return c.cfg.Net.Dial(ctx, port)
	}
	err := errors.New("the container does not run")
	for _, r := range c.running() {
		var conn net.Conn
		if conn, err = r.network.Dial(ctx, port); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// Close kills everything in the container and removes it. It may be called more than once.
func (c *Container) Close() error {
	c.mu.Lock()
	rooms := c.rooms
	c.rooms, c.closed = nil, true
	c.mu.Unlock()
	var failed []error
	for _, r := range rooms {
		failed = append(failed, r.close())
	}
	return errors.Join(failed...)
}

// start starts a container and waits for its first process.
func (c *Container) start(ctx context.Context, binds map[string]bind, below []string) (*room, error) {
	helper, err := helperProgram()
	if err != nil {
		return nil, err
	}
	if err := c.cfg.Engine.sweepOnce(ctx); err != nil {
		return nil, err
	}
	for {
		r, err := c.tryStart(ctx, helper, binds, below)
		if err == nil || !c.cfg.Engine.otherWay(err) {
			return r, err
		}
	}
}

// remove ends the container, and returns when it is gone.
func (r *room) remove(client <-chan error) error {
	for port := range r.doors {
		r.closeDoor(port)
	}
	if r.network != nil {
		r.network.Close() // the first process inside ends, and with it all others
	}
	select { // the client may still be at work
	case <-client:
	case <-time.After(containerRemove):
	}
	ctx, cancel := context.WithTimeout(context.Background(), containerRemove)
	defer cancel()
	err := errors.Join(r.engine.removeContainers(ctx, r.name), r.dir.Remove())
	r.serving.Wait()
	return err
}

// start implements supervisors.
func (r *room) start(files []*os.File) (supervisor, error) {
	ctx, cancel := context.WithTimeout(context.Background(), containerStart)
	defer cancel()
	p, err := r.network.supervise(ctx, files, !r.keeps)
	if err != nil {
		if ctx.Err() != nil && r.above { // a process below can stop the first process of this one
			r.end()
			err = errors.New("the first process of the container does not answer")
		}
		return nil, err
	}
	return innerSupervisor{joinedProcess: p, room: r}, nil
}

// end ends the container.
func (r *room) end() {
	_ = r.network.line.Close()
	if r.above { // the processes of the other container keep running, so ours would too
		ctx, cancel := context.WithTimeout(context.Background(), containerRemove)
		defer cancel()
		_ = r.engine.removeContainers(ctx, r.name) // Close says what is wrong
	}
}

// innerSupervisor is a supervisor in a container. Its process id means nothing out here.
type innerSupervisor struct {
	*joinedProcess
	room *room
}

func (i innerSupervisor) pid() int { return i.room.pid }

// kill ends the container: nothing less certain is left to try.
func (i innerSupervisor) kill() { i.room.end() }

// giveUpAfter makes the first process of the container replace a supervisor that has not ended
// after a while, unless stop is called.
func (i innerSupervisor) giveUpAfter(delay time.Duration) (stop func() bool) {
	return time.AfterFunc(delay, func() {
		select {
		case <-i.done:
		default:
			ctx, cancel := context.WithTimeout(context.Background(), killDelay)
			defer cancel()
			_, _ = i.room.network.ask(ctx, networkRequest{Do: networkGiveUp, Supervisor: i.request}, nil, nil)
		}
	}).Stop
}

// written returns the known directories of the machine that hold what programs write outside of
// mounts.
func (r *room) written() []string {
	var dirs []string
	if layer := r.layer(); layer != "" {
		dirs = append(dirs, layer)
	}
	for _, one := range r.own {
		dirs = append(dirs, one.source)
	}
	return dirs
}

// layer returns the directory of the files that programs write outside of mounts; empty if it is
// unknown.
func (r *room) layer() string {
	for _, m := range proc.Mounts("/proc/" + strconv.Itoa(r.pid)) {
		for option := range strings.SplitSeq(m.Options, ",") {
			if upper, ok := strings.CutPrefix(option, "upperdir="); ok && m.Point == "/" && m.Kind == "overlay" {
				return proc.Unescape(upper)
			}
		}
	}
	return ""
}
