package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/helper"
	"github.com/fit-eval/fit/internal/sandbox/bwrap"
	"github.com/fit-eval/fit/internal/sandbox/internal/first"
	"github.com/fit-eval/fit/internal/sandbox/proc"
	"github.com/fit-eval/fit/internal/sandbox/seccomp"
)

// reaperName is the name of our binary as a supervisor; it appears in ps.
const reaperName = "fit-sandbox-reaper"

// lineFD is the supervisor's end of the socket; the program's extra files follow it.
const lineFD = 3

const (
	// sweepEvery is the pause between two rounds of killing.
	sweepEvery = 2 * time.Millisecond
	// sweepLimit is how long we wait for processes that SIGKILL does not end.
	sweepLimit = killDelay / 2
)

// With this, every binary that imports the package can supervise, so that nobody can forget it. It
// is also why a supervisor starts in 3 ms instead of 9: the packages initialised after this one,
// some of them slow, are never initialised.
var _ = helper.Become(reaperName, reap) ||
	helper.Become(insideName, becomeProgram) ||
	helper.Become(devicesName, becomeIsolated) ||
	helper.Become(identityName, holdIdentity) ||
	helper.Become(networkName, holdNetwork) ||
	helper.Become(containerName, holdContainer) ||
	helper.Become(watchdogName, watch)

// reaper is the supervisor of one program.
type reaper struct {
	line     *os.File
	report   *json.Encoder
	order    order
	program  int // process id of the program, or of bubblewrap around it
	bwrap    *bwrap.Status
	begun    *bwrap.StartReport
	commands chan byte
	exits    chan exit // from the one goroutine that waits for children
	runs     bool      // the program has not ended
	sweeping bool      // everything is to be killed
	since    time.Time // when that began
	again    <-chan time.Time
	result   outcome
}

// exit is a child that was waited for; a zero pid says that none is left.
type exit struct {
	pid    int
	status syscall.WaitStatus
}

// statusUnswept is the exit status of a supervisor in a container that has not ended everything:
// the first process then replaces it.
const statusUnswept = 3

// reap runs a supervisor. It returns 0 once it has reported how its program ended, or why there was
// none.
func reap([]string) int {
	runtime.LockOSThread()
	proc.CloseAllOnExec()
	// With handlers for everything, a program in our namespace cannot end us with a
	// signal. Ignoring them instead would be inherited by the program.
	signal.Notify(make(chan os.Signal, 1))
	line := os.NewFile(lineFD, "harness")
	r := &reaper{
		line:     line,
		report:   json.NewEncoder(line),
		commands: make(chan byte),
		exits:    make(chan exit),
	}
	if err := r.readOrder(); err != nil {
		return 1 // the process that started us is gone, or there was none
	}
	if err := r.prepare(); err != nil {
		r.fail("prepare the supervisor", err, true)
		return 0
	}
	if r.order.Probe {
		_ = r.report.Encode(report{Ready: true})
		return 0
	}
	_ = r.report.Encode(report{Starting: true})
	if err := r.start(); err != nil {
		r.fail("start", err, r.order.Bwrap != nil)
		return 0
	}
	if err := r.report.Encode(report{Started: r.program}); err != nil {
		r.sweeping = true // nobody listens
	}
	go r.listen()
	go r.waitForChildren()
	r.supervise()
	_ = r.report.Encode(report{Ended: &r.result})
	if r.order.Inside != nil && len(r.result.Unkillable) > 0 {
		return statusUnswept
	}
	return 0
}

func (r *reaper) fail(what string, err error, setup bool) {
	_ = r.report.Encode(report{failure: failureOf(fmt.Errorf("%s: %w", what, err)), Setup: setup})
}

func (r *reaper) readOrder() error {
	var length [4]byte
	if _, err := io.ReadFull(r.line, length[:]); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(r.line, body); err != nil {
		return err
	}
	return json.Unmarshal(body, &r.order)
}

// prepare makes the supervisor the parent of all orphans and protects it from the program.
func (r *reaper) prepare() error {
	// Not dumpable: an unprivileged program can neither trace us nor open our files
	// through /proc.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	// A new session keyring: keys that another run has left are not found through it. A kernel
	// without keys has none to find.
	_, _ = unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	if r.order.Inside != nil {
		keepThreads()
	}
	if !r.order.PIDNamespace {
		return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	// Without its own /proc the program would see process ids that are not its own, and a "kill
	// $(pgrep server)" would hit the wrong one.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	// The program must not inherit what we needed for that. We are locked to the
	// thread that will start it.
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

// start runs the program in a new session: without a terminal, and with a process group that gets
// the SIGTERM.
func (r *reaper) start() error {
	files := r.given()
	program, argv := r.order.Program, r.order.Argv
	var err error
	switch {
	case r.order.Bwrap != nil:
		made, err := r.isolate()
		defer closeFiles(made)
		if err != nil {
			return err
		}
		for _, file := range made {
			files = append(files, file.Fd())
		}
		argv = r.isolatedArgv()
		program = argv[0]
	case r.order.Inside != nil:
		report, err := r.reportStart()
		if err != nil {
			return err
		}
		defer report.Close()
		program, files = "/proc/self/exe", append(files, report.Fd())
		last := inside{
			Settings: first.Settings{
				Dir:     r.order.Inside.Dir,
				StartFD: len(files) - 1,
				Limits:  r.order.Limits.rlimits(),
			},
			User:   r.order.Inside.User,
			Home:   r.order.Inside.Home,
			Nice:   r.order.Inside.Nice,
			Filter: r.order.Inside.Filter,
		}
		if argv, err = last.argv(r.order.Argv); err != nil {
			return err
		}
	case r.order.Limits != (Limits{}):
		program = "/proc/self/exe"
		argv = first.Settings{Limits: r.order.Limits.rlimits()}.Argv(r.order.Program, r.order.Argv)
	}
	attributes := &syscall.ProcAttr{
		Dir:   r.order.Dir,
		Env:   r.order.Env,
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	pid := 0
	if r.order.Bwrap != nil && os.Geteuid() != 0 {
		pid = startWithoutDevices(argv, *attributes)
	}
	if pid == 0 {
		if pid, err = syscall.ForkExec(program, argv, attributes); err != nil {
			return err
		}
	}
	r.program, r.runs = pid, true
	return r.closeStreams()
}

// given returns our numbers of the descriptors that the program gets.
func (r *reaper) given() []uintptr {
	files := []uintptr{0, 1, 2}
	for i := range r.order.ExtraFiles {
		files = append(files, uintptr(lineFD+1+i))
	}
	return files
}

// isolate prepares the start of bubblewrap: it finds out which user the program can be, and opens
// the descriptors that bubblewrap gets.
func (r *reaper) isolate() (made []*os.File, err error) {
	ord := r.order.Bwrap
	uid, gid := os.Geteuid(), os.Getegid()
	if ord.UID != 0 {
		can, err := ord.assume(lineFD + 1 + r.order.ExtraFiles)
		if err != nil {
			return nil, err
		}
		if can {
			uid, gid = ord.UID, ord.UID
			ord.add("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID") // until it is that user
			givePipes(r.given(), uid)
		} else {
			ord.UID = 0
		}
	}
	status, write, err := bwrap.NewStatus()
	if err != nil {
		return nil, err
	}
	r.bwrap, made = status, append(made, write)
	passwd, group := bwrap.Accounts(uid, gid, lookup(r.order.Env, "HOME"))
	arguments := []byte(strings.Join(ord.Arguments, "\x00") + "\x00")
	for _, content := range [][]byte{seccomp.Filter(), passwd, group, arguments} {
		file, err := fileOf(content)
		if err != nil {
			return made, err
		}
		made = append(made, file)
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return made, err
	}
	made = append(made, self)
	report, err := r.reportStart()
	if err != nil {
		return made, err
	}
	made = append(made, report)
	for _, source := range ord.Etc {
		file, err := os.Open(source)
		if err != nil {
			return made, err
		}
		made = append(made, file)
	}
	if !ord.Untrusted {
		return made, nil
	}
	for _, content := range [][]byte{passwd, group} {
		file, err := fileOf(content)
		if err != nil {
			return made, err
		}
		made = append(made, file)
	}
	return made, nil
}

// reportStart opens the pipe that reports the program's start.
func (r *reaper) reportStart() (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r.begun = &bwrap.StartReport{Done: make(chan struct{})}
	go r.begun.Follow(read)
	return write, nil
}

// isolatedArgv returns the command line of bubblewrap, which starts our binary, which becomes the
// program.
func (r *reaper) isolatedArgv() []string {
	ord := r.order.Bwrap
	last := first.Settings{
		UID:     ord.UID,
		Dir:     ord.Dir,
		StartFD: ord.FirstFD + fdStart,
		SelfFD:  ord.FirstFD + fdSelf,
		Limits:  r.order.Limits.rlimits(),
	}
	argv := []string{ord.Bwrap, "--args", ord.descriptor(fdArguments), "--", "/proc/self/fd/" + ord.descriptor(fdSelf)}
	return append(argv, last.Argv(r.order.Program, r.order.Argv)...)
}

// fileOf returns a file in memory with this content, to be read from its beginning.
func fileOf(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("fit-sandbox", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "memory")
	if _, err := file.Write(content); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// closeStreams closes the program's descriptors: while we hold them, nobody sees the end of its
// output, and we do not use them. Their replacement cannot be written to, and exists even in a
// container whose null device was removed.
func (r *reaper) closeStreams() error {
	null, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return err
		}
	}
	given := r.order.ExtraFiles
	if r.order.Bwrap != nil {
		given += r.order.Bwrap.Namespaces
	}
	for i := range given {
		_ = unix.Close(lineFD + 1 + i)
	}
	return nil
}
