package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/proc"
)

// report is a message of the supervisor.
type report struct {
	Ready    bool     `json:"ready,omitempty"`    // answer to a probe
	Starting bool     `json:"starting,omitempty"` // from here on the program may run
	Started  int      `json:"started,omitempty"`
	Setup    bool     `json:"setup,omitempty"` // it failed before the program was to be started
	Ended    *outcome `json:"ended,omitempty"`
	failure
}

// The commands that follow the order, one byte each. The end of the stream means
// kill: it is what the supervisor reads when we are dead.
const (
	commandTerminate = 'T'
	commandKill      = 'K'
)

// supervisedTree is a program under a supervisor process.
type supervisedTree struct {
	process supervisor
	line    *os.File
	program int // its process id, or 0 if it is in a namespace
	env     []string
	ending
}

// supervisor is the process of a supervisor, started by us or by a holder.
type supervisor interface {
	pid() int
	// wait returns when it has ended, with an error if not by itself.
	wait() error
	kill()
}

// supervisors starts supervisors where we cannot: in a network, or in a container.
type supervisors interface {
	// start runs a supervisor with these descriptors.
	start(files []*os.File) (supervisor, error)
}

// ownProcess is a supervisor that we have started ourselves.
type ownProcess struct{ cmd *exec.Cmd }

func (p ownProcess) pid() int    { return p.cmd.Process.Pid }
func (p ownProcess) wait() error { return p.cmd.Wait() }
func (p ownProcess) kill()       { _ = p.cmd.Process.Kill() }

// startSupervised starts a supervisor that runs the job.
func startSupervised(mode Containment, job launch) (processTree, int, error) {
	ord := job.order
	ord.PIDNamespace = mode == PIDNamespace && ord.Bwrap == nil
	ord.Limits = ord.Limits.perProcess()
	ord.ExtraFiles = len(job.files) - 3
	var in supervisors
	switch {
	case job.room != nil:
		in = job.room
	case job.network != nil:
		in = job.network
	}
	t, decoder, err := startReaper(ord, append(job.files, job.namespaces...), in)
	if err != nil {
		return nil, 0, &setupError{Err: err}
	}
	t.env = job.Env
	if inside, ok := t.process.(innerSupervisor); ok {
		defer inside.giveUpAfter(containerStart)()
	}
	if err := t.awaitStart(decoder); err != nil {
		t.line.Close()
		return nil, 0, errors.Join(err, ignoreExit(t.process.wait()))
	}
	if ord.PIDNamespace || job.room != nil {
		t.program = 0 // a number that means nothing out here
	}
	go t.listen(decoder)
	return t, t.process.pid(), nil
}

// awaitStart returns when the program runs, or why it does not. A supervisor that falls silent
// after it began to start the program was killed by it: that ends the run, and is not our failure.
func (t *supervisedTree) awaitStart(decoder *json.Decoder) error {
	began := false
	for {
		var n report
		err := decoder.Decode(&n)
		switch {
		case err != nil && began:
			return nil
		case err != nil:
			return &setupError{Err: fmt.Errorf("%w: %w", errSupervisorDied, err)}
		case n.Setup:
			return &setupError{Err: n.asError()}
		case n.Failed != "":
			return n.asError()
		case n.Started != 0:
			t.program = n.Started
			return nil
		}
		began = began || n.Starting
	}
}

// ignoreExit drops the exit status of a supervisor that has reported why it ended.
func ignoreExit(err error) error {
	if errors.As(err, new(*exec.ExitError)) || errors.As(err, new(*killedSupervisor)) {
		return nil
	}
	return err
}

// failure is an error that one of our processes reports to another, with the system's error inside,
// so that errors.Is works across the processes.
type failure struct {
	Failed string `json:"failed,omitempty"`
	Errno  int    `json:"errno,omitempty"`
}

func failureOf(err error) failure {
	errno, _ := errors.AsType[syscall.Errno](err)
	return failure{Failed: err.Error(), Errno: int(errno)}
}

func (f failure) asError() error {
	if f.Errno != 0 {
		return &remoteError{text: f.Failed, errno: syscall.Errno(f.Errno)}
	}
	return errors.New(f.Failed)
}

type remoteError struct {
	text  string
	errno syscall.Errno
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.errno }

// startReaper starts our own binary as a supervisor, through a holder if one is given, and sends it
// its order.
func startReaper(ord order, files []*os.File, in supervisors) (*supervisedTree, *json.Decoder, error) {
	ours, theirs, err := socketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	process, err := startSupervisor(theirs, files, in, reaperAttributes(ord.PIDNamespace))
	if err != nil {
		ours.Close()
		return nil, nil, fmt.Errorf("start its supervisor: %w", err)
	}
	t := &supervisedTree{process: process, line: ours, ending: ending{done: make(chan struct{})}}
	if err := t.send(ord); err != nil {
		ours.Close()
		return nil, nil, fmt.Errorf("its supervisor took no order: %w", errors.Join(err, process.wait()))
	}
	return t, json.NewDecoder(ours), nil
}

func startSupervisor(
	line *os.File, files []*os.File, in supervisors, attributes *syscall.SysProcAttr,
) (supervisor, error) {
	if in != nil {
		return in.start(append([]*os.File{line}, files...))
	}
	cmd := reaperCommand(line, files, attributes)
	return ownProcess{cmd}, cmd.Start()
}

// reaperCommand returns our own binary as a supervisor, with the descriptors of the program.
func reaperCommand(line *os.File, files []*os.File, attributes *syscall.SysProcAttr) *exec.Cmd {
	cmd := ownCommand(reaperName, attributes, line)
	if len(files) >= 3 {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[1], files[2]
		cmd.ExtraFiles = append(cmd.ExtraFiles, files[3:]...)
	}
	return cmd
}

// ownCommand returns our own binary under another name. It gets no variables: GODEBUG and the like
// would change how it behaves. A binary built with the race detector would sleep for a second at
// its end.
func ownCommand(name string, attributes *syscall.SysProcAttr, files ...*os.File) *exec.Cmd {
	return &exec.Cmd{
		Path:        "/proc/self/exe", // which also works when the file has been replaced
		Args:        []string{name},
		Env:         []string{"GOMAXPROCS=1", "GORACE=atexit_sleep_ms=0"},
		SysProcAttr: attributes,
		ExtraFiles:  files,
	}
}

// reaperAttributes puts the supervisor in its own process group, so that Ctrl-C in a terminal
// reaches us and not it, and in new namespaces where asked.
func reaperAttributes(namespace bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if !namespace {
		return attributes
	}
	attributes.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	allow(attributes, unix.CAP_SYS_ADMIN) // to mount /proc
	return attributes
}

// allow starts a process with a privilege that its namespaces need: we have it, or a user namespace
// gives it. Executing a file drops the privileges of such a namespace except this one; the process
// gives it up when it has used it.
func allow(attributes *syscall.SysProcAttr, privilege uintptr) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		return
	}
	attributes.Cloneflags |= unix.CLONE_NEWUSER
	attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	attributes.AmbientCaps = []uintptr{privilege}
}

// socketPair is used instead of pipes because a socket cannot be opened through
// /proc/PID/fd: the program cannot forge the supervisor's reports.
func socketPair(kind int) (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open a socket to a process of ours: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "process"), os.NewFile(uintptr(fds[1]), "harness"), nil
}

// send writes the order with its length in front.
func (t *supervisedTree) send(ord order) error {
	body, err := json.Marshal(ord)
	if err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	_, err = t.line.Write(append(frame, body...))
	return err
}

// listen reads the supervisor's final report and waits for its end.
func (t *supervisedTree) listen(decoder *json.Decoder) {
	end := outcome{ExitCode: -1}
	var reported bool
	for {
		var n report
		if err := decoder.Decode(&n); err != nil {
			break
		}
		if n.Ended != nil {
			end, reported = *n.Ended, true
		}
	}
	if _, inside := t.process.(innerSupervisor); inside {
		end.Unkillable = nil // the container's first process ends them, or the container
	}
	if len(end.Unkillable) > 0 {
		// The kernel may hold back the end of a namespace in which something hangs.
		t.finish(end)
		_ = t.process.wait()
		return
	}
	waitErr := t.process.wait()
	killed, _ := errors.AsType[*killedSupervisor](waitErr)
	if killed != nil {
		end.Leftovers += killed.leftovers
	}
	if !reported {
		// Somebody killed the supervisor. In a PID namespace that killed the tree, and in a
		// container its first process did; otherwise we look for what is left of it ourselves.
		end.Signal = signalOf(waitErr)
		if killed == nil || killed.leftovers == 0 {
			end.Leftovers, end.Unkillable = proc.KillStrays(t.program, marker(t.env), nil, killDelay/2)
		}
	}
	t.finish(end)
}

// finish makes the outcome known.
func (t *supervisedTree) finish(end outcome) {
	t.line.Close()
	t.set(end)
	close(t.done)
}

// signalOf names the signal in the error of a process that was killed.
func signalOf(err error) string {
	if killed, ok := errors.AsType[*killedSupervisor](err); ok {
		return killed.signal
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return unix.SignalName(status.Signal())
		}
	}
	return ""
}

// A supervisor that is gone takes no command, and needs none.
func (t *supervisedTree) terminate() { _, _ = t.line.Write([]byte{commandTerminate}) }

func (t *supervisedTree) kill() {
	_, _ = t.line.Write([]byte{commandKill})
	if inside, ok := t.process.(innerSupervisor); ok {
		inside.giveUpAfter(killDelay / 3)
	}
}

func (t *supervisedTree) abandon() {
	t.process.kill()
	t.set(outcome{ExitCode: -1, Signal: "SIGKILL", Unkillable: []int{t.process.pid()}})
}
