package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/sandbox/proc"
	"github.com/fit-eval/fit/internal/task"
)

// The values of ServiceNetwork, as records name them.
const (
	servicesPrivate = "private" // they share only a loopback with the graders
	servicesHost    = "host"
)

// privateNetworkWorks returns nil if services and graders can share a private network here.
func privateNetworkWorks(ctx context.Context) error {
	works, err := thisMachine.network(ctx)
	switch {
	case err != nil:
		return &untestedError{err}
	case !works.OK:
		return errors.New(works.Detail)
	}
	return nil
}

// hasService reports whether graders talk to something that preflight starts.
func (w *Workspace) hasService() bool {
	return w.cfg.Task.Settings.Port && w.cfg.Task.Hooks.Preflight != ""
}

// findNetwork decides whether the services and the graders are to share a private network.
func (w *Workspace) findNetwork(ctx context.Context) error {
	if !w.hasService() || w.Isolation != sandbox.IsolationBwrap || w.cfg.Task.Settings.GraderNetwork {
		return nil
	}
	err := privateNetworkWorks(ctx)
	if errors.As(err, new(*untestedError)) {
		return err
	}
	w.wantsNetwork = err == nil
	return nil
}

// opensNetwork reports whether graders have the host's network: the task allows it, or graders talk
// to a service and this machine cannot make a private network, so that they share the service's
// loopback and with it the network of the host.
func (w *Workspace) opensNetwork() bool {
	return w.cfg.Task.Settings.GraderNetwork || w.containers == nil && w.hasService() && !w.wantsNetwork
}

// GraderNetwork reports whether graders, and the agent's code under them, have the host's network.
func (w *Workspace) GraderNetwork() bool {
	if v := w.cfg.Task.Verifier; v != nil && w.containers != nil {
		return v.Environment == nil && w.agentOnHost() || v.Environment != nil && v.Network
	}
	return !sandbox.Isolates(w.Isolation) || w.opensNetwork()
}

// ServiceNetwork returns where the services that graders talk to are: servicesPrivate or
// servicesHost; empty for a task without them.
func (w *Workspace) ServiceNetwork() string {
	switch {
	case !w.hasService():
		return ""
	case (w.wantsNetwork || w.containers != nil) && !w.cfg.Task.Settings.PreflightNetwork:
		return servicesPrivate
	}
	return servicesHost
}

// openPrivate makes the private network before the first service starts. If preflight may use the
// host's network, its services are there, and graders reach only the port of the attempt.
func (w *Workspace) openPrivate(ctx context.Context) error {
	if !w.wantsNetwork || w.private != nil {
		return nil
	}
	private, err := sandbox.NewPrivateNetwork()
	if err != nil {
		return err
	}
	w.private = private
	if w.Port == 0 || !w.cfg.Task.Settings.PreflightNetwork {
		return nil
	}
	listener, err := private.Listen(ctx, w.Port)
	if err != nil {
		return fmt.Errorf("port %d of the private network: %w", w.Port, err)
	}
	w.toHost = openRelay(listener, admitAll, dialHost(w.Port))
	return nil
}

// CannotEnclose returns why an agent at a task cannot have its own network on this machine; nil if
// it can.
func CannotEnclose(ctx context.Context, isolation string, t *task.Task) error {
	why, err := NotIsolated(ctx, isolation, t)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("it needs isolation %s: %s", sandbox.IsolationBwrap, why)
	}
	if inContainer(isolation, t) {
		return nil
	}
	return privateNetworkWorks(ctx)
}

// agentOnHost reports whether the agent has the network of the host.
func (w *Workspace) agentOnHost() bool {
	return !sandbox.Isolates(w.Isolation) || w.cfg.AgentNetwork == "" ||
		w.cfg.AgentNetwork == sandbox.NetworkHost
}

// ServiceDoor connects an agent in its own network to the services of its attempt, once Preflight
// has started them: serve answers the connections on a listener at the port, until the listener is
// closed. A task without services has port 0.
func (w *Workspace) ServiceDoor() (port int, serve func(net.Listener) error) {
	if !w.hasService() {
		return 0, nil
	}
	dial := w.dialer()
	return w.Port, func(listener net.Listener) error {
		door := newRelay(listener, admitAll, dial)
		door.accept()
		door.close()
		return nil
	}
}

// dialer connects to the port of the attempt where its services are.
func (w *Workspace) dialer() func(context.Context) (net.Conn, error) {
	private, port := w.private, w.Port
	switch {
	case private != nil && w.toHost == nil:
		return func(ctx context.Context) (net.Conn, error) { return private.Dial(ctx, port) }
	case w.containers != nil && !w.cfg.Task.Settings.PreflightNetwork:
		return func(ctx context.Context) (net.Conn, error) { return w.dialServices(ctx, port) }
	}
	return dialHost(port)
}

// dialHost connects to a port of the host.
func dialHost(port int) func(context.Context) (net.Conn, error) {
	var dialer net.Dialer
	return func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", loopback(port)) }
}

// openOutward lets an agent with the host's network reach the service at the port of the attempt.
// Nothing else on that network reaches it: neither the agents of other attempts, nor their
// services.
func (w *Workspace) openOutward(ctx context.Context) error {
	inside := w.containers != nil && w.hasService() && !w.cfg.Task.Settings.PreflightNetwork
	if w.private == nil && !inside || w.Port == 0 || w.toHost != nil || w.toServices != nil || !w.agentOnHost() {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", loopback(w.Port))
	if err != nil {
		return err
	}
	w.toServices = openRelay(listener, w.isOwn, w.dialer())
	return nil
}

// isOwn reports whether a connection comes from a process of the attempt.
func (w *Workspace) isOwn(conn net.Conn) bool {
	holders, err := proc.ConnectionHolders(conn)
	if err != nil {
		return false
	}
	own := proc.Find(sandbox.RunMarker+"="+w.RunID, []string{w.Dir, w.Home, w.TmpDir}, 0)
	return !slices.ContainsFunc(holders, func(pid int) bool { return !slices.Contains(own, pid) })
}

// closeOutward ends every connection between the host and the private network.
func (w *Workspace) closeOutward() {
	if w.toServices != nil {
		w.toServices.close()
		w.toServices = nil
	}
}

// closePrivate gives the private network up.
func (w *Workspace) closePrivate() {
	w.closeOutward()
	if w.toHost != nil {
		w.toHost.close()
		w.toHost = nil
	}
	if w.private != nil {
		w.private.Close()
		w.private = nil
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// relay passes connections on from one network to another.
type relay struct {
	listener net.Listener
	admit    func(net.Conn) bool // whose connections are passed on
	dial     func(context.Context) (net.Conn, error)
	cancel   context.CancelFunc
	ctx      context.Context //nolint:containedctx // the life of the relay, which close ends
	passing  sync.WaitGroup
}

// openRelay passes connections on until close.
func openRelay(listener net.Listener, admit func(net.Conn) bool, dial func(context.Context) (net.Conn, error)) *relay {
	d := newRelay(listener, admit, dial)
	d.passing.Go(d.accept)
	return d
}

func newRelay(listener net.Listener, admit func(net.Conn) bool, dial func(context.Context) (net.Conn, error)) *relay {
	ctx, cancel := context.WithCancel(context.Background())
	return &relay{
		listener: listener,
		admit:    admit,
		dial:     dial,
		cancel:   cancel,
		ctx:      ctx,
	}
}

// admitAll admits all connections: every process in a private network belongs to the attempt.
func admitAll(net.Conn) bool { return true }

var errNotAdmitted = errors.New("not a process of the attempt")

func (d *relay) accept() {
	for {
		from, err := d.listener.Accept()
		if err != nil {
			return
		}
		d.passing.Go(func() { d.pass(from) })
	}
}

// pass carries one connection until both sides have ended it, or the relay is closed.
func (d *relay) pass(from net.Conn) {
	var to net.Conn
	err := errNotAdmitted
	if d.admit(from) {
		to, err = d.dial(d.ctx)
	}
	if err != nil {
		// The closest approximation of a port on which nobody listens.
		if tcp, ok := from.(*net.TCPConn); ok {
			bestEffort(tcp.SetLinger(0))
		}
		closeConnection(from)
		return
	}
	stop := context.AfterFunc(d.ctx, func() {
		closeConnection(from)
		closeConnection(to)
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { carry(to, from) })
	both.Go(func() { carry(from, to) })
	both.Wait()
	closeConnection(from)
	closeConnection(to)
}

// carry copies one direction and passes its end on.
func carry(to, from net.Conn) {
	_, err := io.Copy(to, from)
	bestEffort(err)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		bestEffort(half.CloseWrite())
	}
}

func (d *relay) close() {
	d.cancel()
	closeConnection(d.listener)
	d.passing.Wait()
}
