package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/proc"
)

// networkName is the name under which our binary holds a network; it appears in ps.
const networkName = "fit-sandbox-network"

// networkDialDelay bounds a connection on a loopback, where only a full queue waits.
const networkDialDelay = 5 * time.Second

// holder is a process in a private network, or the first one of a container: it starts supervisors
// and opens sockets there.
type holder struct {
	line     *net.UnixConn
	mu       sync.Mutex             // one message after the other
	starting sync.Mutex             // held while a supervisor is started and not yet known
	running  map[int]networkRequest // by the supervisor that was started for it
	orphans  int                    // that have ended
}

func newHolder(line *net.UnixConn) *holder {
	return &holder{line: line, running: map[int]networkRequest{}}
}

// holdNetwork runs the holder, which ends when its pipe to the process that started it closes.
func holdNetwork([]string) int {
	// Privileges belong to threads: the thread that starts programs must be the one that gives them
	// up.
	runtime.LockOSThread()
	proc.CloseAllOnExec()
	line, err := asUnixConn(os.NewFile(lineFD, "harness"))
	if err != nil {
		return 1
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, syscall.SIGCHLD)
	return newHolder(line).live(signals, prepareNetwork())
}

// live reports whether the holder could be prepared, and answers requests until the connection
// ends.
func (h *holder) live(signals <-chan os.Signal, prepared error) int {
	if prepared != nil {
		h.fail(0, prepared)
		return 1
	}
	go func() {
		for sent := range signals {
			for sent == syscall.SIGCHLD && h.reap() {
			}
		}
	}()
	h.say(networkReport{}, -1)
	for {
		body, files, err := receivePacket(h.line)
		if err != nil {
			return 0
		}
		var request networkRequest
		if err := json.Unmarshal(body, &request); err != nil {
			closeFiles(files)
			h.fail(0, err)
			continue
		}
		h.serve(request, files)
	}
}

// prepareNetwork brings the loopback up and gives up the privilege to change anything about
// the network.
func prepareNetwork() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("bring the loopback up: %w", err)
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

func (h *holder) serve(request networkRequest, files []*os.File) {
	switch request.Do {
	case networkStart:
		h.start(request, files)
	case networkDial:
		closeFiles(files)
		go h.dial(request)
	case networkListen:
		closeFiles(files)
		h.listen(request)
	case networkLeft:
		closeFiles(files)
		h.say(networkReport{ID: request.ID, Names: namesOf(h.left())}, -1)
	case networkEndLeft:
		closeFiles(files)
		go h.answerEndLeft(request.ID)
	case networkGiveUp:
		closeFiles(files)
		h.abort(request)
	default:
		closeFiles(files)
		h.fail(request.ID, errors.New("unknown request "+request.Do))
	}
}

// start runs a supervisor with the descriptors it was sent: the first is its socket, the others are
// the program's.
func (h *holder) start(request networkRequest, files []*os.File) {
	defer closeFiles(files)
	if len(files) < 4 {
		h.fail(request.ID, errors.New("too few descriptors for a supervisor"))
		return
	}
	cmd := reaperCommand(files[0], files[1:], reaperAttributes(false))
	h.starting.Lock()
	defer h.starting.Unlock()
	if err := cmd.Start(); err != nil {
		h.fail(request.ID, fmt.Errorf("start its supervisor: %w", err))
		return
	}
	h.running[cmd.Process.Pid] = request
	h.say(networkReport{ID: request.ID, PID: cmd.Process.Pid}, -1)
	_ = cmd.Process.Release() // reap waits for it, with all other children
}

// reap collects one process that has exited, if there is one, and reports the exit of a supervisor.
// A supervisor that its program has stopped is continued. Others get the lock before the next
// process: with a fork bomb, there is always one more.
func (h *holder) reap() (found bool) {
	h.starting.Lock()
	defer h.starting.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
	if err != nil || pid <= 0 {
		return errors.Is(err, syscall.EINTR)
	}
	request, known := h.running[pid]
	switch {
	case status.Stopped() && known:
		_ = unix.Kill(pid, unix.SIGCONT)
		return true
	case status.Stopped():
		return true
	case !known:
		h.orphans++
		return true
	}
	delete(h.running, pid)
	ended := networkReport{ID: request.ID, Ended: true}
	if status.Signaled() {
		ended.Signal = unix.SignalName(status.Signal())
	}
	unswept := status.ExitStatus() == statusUnswept
	if unswept || request.Sweep && (status.Signaled() || status.ExitStatus() != 0) {
		go h.replace(ended)
		return true
	}
	h.say(ended, -1)
	return true
}

func (h *holder) dial(request networkRequest) {
	conn, err := net.DialTimeout("tcp", loopback(request.Port), networkDialDelay)
	if err != nil {
		h.fail(request.ID, err)
		return
	}
	defer conn.Close()
	h.sendSocket(request.ID, conn)
}

func (h *holder) listen(request networkRequest) {
	listener, err := net.Listen("tcp", loopback(request.Port))
	if err != nil {
		h.fail(request.ID, err)
		return
	}
	defer listener.Close()
	h.sendSocket(request.ID, listener)
}

// sendSocket sends a socket without changing it.
func (h *holder) sendSocket(id int, socket any) {
	carrier, ok := socket.(syscall.Conn)
	if !ok {
		h.fail(id, errors.New("a socket without a descriptor"))
		return
	}
	raw, err := carrier.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { h.say(networkReport{ID: id}, int(fd)) })
	}
	if err != nil {
		h.fail(id, err)
	}
}

func (h *holder) fail(id int, err error) {
	h.say(networkReport{ID: id, failure: failureOf(err)}, -1)
}

// say sends one message. A failure needs no handling: the listener is gone, and the next read ends
// us.
func (h *holder) say(report networkReport, fd int) {
	body, err := json.Marshal(report)
	if err != nil {
		return
	}
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _, _ = h.line.WriteMsgUnix(body, rights, nil)
}

// receivePacket reads one message with its descriptors, which are closed on exec.
func receivePacket(line *net.UnixConn) ([]byte, []*os.File, error) {
	body, rights := make([]byte, maxNetworkMessage), make([]byte, unix.CmsgSpace(4*maxNetworkFiles))
	n, rightsSize, flags, _, err := line.ReadMsgUnix(body, rights)
	if err != nil {
		return nil, nil, err
	}
	if n == 0 && rightsSize == 0 {
		return nil, nil, io.EOF
	}
	files, err := filesOf(rights[:rightsSize])
	if err == nil && flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		err = errors.New("a message between a network and its harness was cut off")
	}
	if err != nil {
		closeFiles(files)
		return nil, nil, err
	}
	return body[:n], files, nil
}

func filesOf(rights []byte) ([]*os.File, error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			closeFiles(files)
			return nil, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "handed over"))
		}
	}
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
