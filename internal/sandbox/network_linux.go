package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// PrivateNetwork is a network that several isolated programs share, one after the other or at once:
// a loopback, and nothing else. Programs join it with Isolation.Join. It lives until Close, or
// until we die; programs that run in it survive that.
//
// Bubblewrap can make a network but not enter one, and a process of many threads, as
// ours is, cannot enter a user namespace. So one of our processes is started in the network. It
// starts the programs that belong there, and opens sockets and hands them out.
type PrivateNetwork struct {
	holder *exec.Cmd
	line   *net.UnixConn
	ended  chan struct{} // closed when the holder is gone

	mu      sync.Mutex
	last    int                        // number of the last request
	answers map[int]chan networkAnswer // who waits, by request
	exits   map[int]*joinedProcess     // supervisors that run, by request
}

// networkRequest is a request to the holder. Descriptors are sent with it.
type networkRequest struct {
	ID   int    `json:"id"`
	Do   string `json:"do"`
	Port int    `json:"port,omitempty"`
	// Sweep is set if nothing of a program may outlive its supervisor.
	Sweep bool `json:"sweep,omitempty"`
	// Supervisor is the request that started the one that is given up.
	Supervisor int `json:"supervisor,omitempty"`
}

// What a holder is asked for.
const (
	networkStart  = "start"
	networkDial   = "dial"
	networkListen = "listen"
	// The first process of a container also names and ends what programs have left running.
	networkLeft    = "left"
	networkEndLeft = "endLeft"
	networkGiveUp  = "giveUp" // replaces a supervisor that does not finish its work
)

// networkReport is a message of the holder: an answer, or the end of a process. A requested socket
// is sent with it.
type networkReport struct {
	ID        int      `json:"id"`
	PID       int      `json:"pid,omitempty"`
	Ended     bool     `json:"ended,omitempty"`
	Signal    string   `json:"signal,omitempty"`    // that ended the process
	Leftovers int      `json:"leftovers,omitempty"` // that were killed in its place
	Names     []string `json:"names,omitempty"`     // of what programs have left running
	failure
}

type networkAnswer struct {
	networkReport
	file *os.File
}

// maxNetworkMessage and maxNetworkFiles bound one message between us and the holder.
const (
	maxNetworkMessage = 4 << 10
	maxNetworkFiles   = 64
)

var errNetworkGone = errors.New("the holder of the network is gone")

// NewPrivateNetwork makes a network that nobody is in yet.
func NewPrivateNetwork() (*PrivateNetwork, error) {
	ours, theirs, err := socketPair(unix.SOCK_SEQPACKET) // which keeps messages apart
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	line, err := asUnixConn(ours)
	if err != nil {
		return nil, err
	}
	attributes := &syscall.SysProcAttr{Setpgid: true, Cloneflags: unix.CLONE_NEWNET}
	allow(attributes, unix.CAP_NET_ADMIN) // to bring the loopback up
	holder := ownCommand(networkName, attributes, theirs)
	holder.Dir = "/"
	if err := holder.Start(); err != nil {
		line.Close()
		return nil, fmt.Errorf("%w: %w", errNoPrivateNetwork, err)
	}
	n, err := openNetwork(line, holder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoPrivateNetwork, errors.Join(err, ignoreExit(holder.Wait())))
	}
	return n, nil
}

// openNetwork waits for the first message of a holder, which says whether its network is up. The
// holder of a container is not our child, and nil.
func openNetwork(line *net.UnixConn, holder *exec.Cmd) (*PrivateNetwork, error) {
	n := &PrivateNetwork{
		holder:  holder,
		line:    line,
		ended:   make(chan struct{}),
		answers: map[int]chan networkAnswer{},
		exits:   map[int]*joinedProcess{},
	}
	answer, err := n.receive()
	if err == nil && answer.Failed != "" {
		err = answer.asError()
	}
	if err != nil {
		line.Close()
		return nil, err
	}
	go n.follow()
	return n, nil
}

func asUnixConn(file *os.File) (*net.UnixConn, error) {
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("the connection to the network is not a Unix socket"), conn.Close())
	}
	return unixConn, nil
}

// Dial connects to a port of the network's loopback.
func (n *PrivateNetwork) Dial(ctx context.Context, port int) (net.Conn, error) {
	file, err := n.socket(ctx, networkDial, port)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return net.FileConn(file)
}

// Listen listens on a port of the network's loopback.
func (n *PrivateNetwork) Listen(ctx context.Context, port int) (net.Listener, error) {
	file, err := n.socket(ctx, networkListen, port)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return net.FileListener(file)
}

func (n *PrivateNetwork) socket(ctx context.Context, do string, port int) (*os.File, error) {
	answer, err := n.ask(ctx, networkRequest{Do: do, Port: port}, nil, nil)
	switch {
	case err != nil:
		return nil, err
	case answer.file == nil:
		return nil, errors.New("the holder of the network sent no socket")
	}
	return answer.file, nil
}

// Close gives the network up.
func (n *PrivateNetwork) Close() {
	_ = n.line.Close() // the holder ends when it reads the end
	<-n.ended
	if n.holder != nil {
		_ = n.holder.Wait()
	}
}

// joinedProcess is a supervisor that the holder has started.
type joinedProcess struct {
	id      int
	request int // that started it
	done    chan struct{}
	ended   networkReport
}

// start implements supervisors.
func (n *PrivateNetwork) start(files []*os.File) (supervisor, error) {
	return n.supervise(context.Background(), files, false)
}

// supervise runs a supervisor with these descriptors in the network. In a container, sweep makes
// the first process replace a supervisor that dies before its program.
func (n *PrivateNetwork) supervise(ctx context.Context, files []*os.File, sweep bool) (*joinedProcess, error) {
	p := &joinedProcess{done: make(chan struct{})}
	answer, err := n.ask(ctx, networkRequest{Do: networkStart, Sweep: sweep}, files, p)
	if err != nil {
		return nil, err
	}
	p.id, p.request = answer.PID, answer.ID
	return p, nil
}

func (p *joinedProcess) pid() int { return p.id }

func (p *joinedProcess) wait() error {
	<-p.done
	if p.ended.Signal != "" || p.ended.Leftovers > 0 {
		return &killedSupervisor{signal: p.ended.Signal, leftovers: p.ended.Leftovers}
	}
	return nil
}

func (p *joinedProcess) kill() {
	select {
	case <-p.done: // its number may be reused by now
	default:
		_ = unix.Kill(p.id, unix.SIGKILL)
	}
}

// killedSupervisor describes the end of a supervisor that is not our child.
type killedSupervisor struct {
	signal    string
	leftovers int // that were killed in its place
}

func (k *killedSupervisor) Error() string { return "signal: " + k.signal }

// ask sends a request and waits for the answer. The end of a process that it starts
// is reported too.
func (n *PrivateNetwork) ask(
	ctx context.Context, request networkRequest, files []*os.File, started *joinedProcess,
) (networkAnswer, error) {
	answers := make(chan networkAnswer, 1)
	n.mu.Lock()
	if n.exits == nil {
		n.mu.Unlock()
		return networkAnswer{}, errNetworkGone
	}
	n.last++
	request.ID = n.last
	n.answers[request.ID] = answers
	if started != nil {
		n.exits[request.ID] = started
	}
	n.mu.Unlock()
	if err := n.send(request, files); err != nil {
		n.forget(request.ID)
		if errors.Is(err, unix.EPIPE) {
			err = errNetworkGone
		}
		return networkAnswer{}, fmt.Errorf("ask the holder of the network: %w", err)
	}
	select {
	case answer := <-answers:
		if answer.Failed != "" {
			n.forget(request.ID)
			return networkAnswer{}, answer.asError()
		}
		return answer, nil
	case <-ctx.Done():
		n.forget(request.ID)
		return networkAnswer{}, ctx.Err()
	case <-n.ended:
		return networkAnswer{}, errNetworkGone
	}
}

func (n *PrivateNetwork) send(request networkRequest, files []*os.File) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if len(files) > maxNetworkFiles {
		return fmt.Errorf("%d descriptors are too many", len(files))
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, file := range files {
			fds[i] = int(file.Fd()) //nolint:gosec // descriptors are small numbers
		}
		rights = unix.UnixRights(fds...)
	}
	_, _, err = n.line.WriteMsgUnix(body, rights, nil)
	return err
}

func (n *PrivateNetwork) forget(id int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.answers, id)
	delete(n.exits, id)
}

// follow delivers what the holder sends, until it is gone.
func (n *PrivateNetwork) follow() {
	for {
		answer, err := n.receive()
		if err != nil {
			break
		}
		n.deliver(answer)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.exits { // nobody will report their end
		close(p.done)
	}
	n.exits = nil
	close(n.ended)
}

func (n *PrivateNetwork) deliver(answer networkAnswer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if answer.Ended {
		if p := n.exits[answer.ID]; p != nil {
			p.ended = answer.networkReport
			close(p.done)
			delete(n.exits, answer.ID)
		}
		return
	}
	if waiting := n.answers[answer.ID]; waiting != nil {
		waiting <- answer
		delete(n.answers, answer.ID)
	} else if answer.file != nil {
		answer.file.Close() // the caller has given up
	}
}

func (n *PrivateNetwork) receive() (networkAnswer, error) {
	var answer networkAnswer
	body, files, err := receivePacket(n.line)
	if err != nil {
		return answer, err
	}
	if len(files) > 0 {
		answer.file = files[0]
		closeFiles(files[1:])
	}
	return answer, json.Unmarshal(body, &answer.networkReport)
}
