//go:build unix

package untrusted

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/helper"
	"github.com/fit-eval/fit/internal/sandbox/proc"
)

// Name is the name under which a binary that imports this package runs an untrusted
// program: for example as a link on the search path of a hook.
//
//	fit-untrusted [--stdin] PROGRAM [ARGUMENT…]
//
// The program gets standard input, output and error and no other descriptor, the variables that
// Passes names and no other, and a new session. Its standard input is empty if a shell
// may read on from that, as in a loop: then it is not known to be meant for the program, and
// --stdin says that it is. In our sandbox it sees what lies below Root: the
// work and the system, with a /tmp of its own. If the kernel allows it, it is also in new PID and
// user namespaces: it can neither signal nor trace nor inspect the processes around it, although
// the user is the same, and its own processes end with it. The exit status is the program's, or 128
// and the number of the signal that ended it.
const Name = "fit-untrusted"

// The names under which our binary becomes the program, or process 1 around it; they appear in ps.
const (
	initName    = "fit-untrusted-init"    // in namespaces that keep the program in
	refusedName = "fit-untrusted-refused" // where reach must be refused
)

// Root is where our sandbox has what programs under Name see.
const Root = "/.fit-untrusted"

// Passes is the variable that names those that programs under Name get, with commas between them.
const Passes = "FIT_UNTRUSTED"

// View is the variable with the Files of programs under Name, as JSON. What it hides matters where
// nothing can be mounted at Root: in containers, and on machines that give no privileges in a user
// namespace.
const View = "FIT_UNTRUSTED_VIEW"

// Files are absolute paths. Where nothing can be mounted, all that is neither hidden nor below a
// hidden path is seen, and so is what is shown.
type Files struct {
	Work   []string `json:"work,omitempty"` // what the program may change
	Hidden []string `json:"hidden,omitempty"`
	Shown  []string `json:"shown,omitempty"`
	Temp   string   `json:"temp,omitempty"` // the program's own directory for temporary files
	// Env are variables of which the program has values of its own, such as HOME.
	Env map[string]string `json:"env,omitempty"`

	input bool // the program gets standard input
}

// passed are the variables that programs get where nobody says which.
const passed = "PATH,HOME,USER,LOGNAME,SHELL,LANG,LC_ALL,TMPDIR,TZ,TERM,CI,NO_COLOR,PORT"

// inputFlag says that standard input is meant for the program.
const inputFlag = "--stdin"

// The statuses with which shells report that a program could not be run.
const (
	statusUsage         = 2
	statusExhausted     = 125 // the machine has run out of what a process needs
	StatusNotExecutable = 126
	StatusNotFound      = 127
)

var _ = helper.Become(Name, run)

func run(args []string) int {
	// The program dies with the thread that has started it.
	runtime.LockOSThread()
	given := len(args) > 0 && args[0] == inputFlag
	if given {
		args = args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 || args[0] == "" {
		fmt.Fprintf(os.Stderr, "usage: %s [%s] PROGRAM [ARGUMENT…]\n", Name, inputFlag)
		return statusUsage
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return failure(args[0], err)
	}
	proc.CloseAllOnExec()
	defer restoreStreams(streamFlags())
	files := Files{}
	_ = json.Unmarshal([]byte(os.Getenv(View)), &files) // without it nothing is hidden
	if len(files.Hidden) > 0 {
		if files.Temp, err = os.MkdirTemp("", Name+"-"); err != nil {
			return failure(args[0], err)
		}
		defer os.RemoveAll(files.Temp)
	}
	files.input = given || !inputIsShared()
	before := files.leadingOut()
	tell(Began)
	asked := make(chan os.Signal, 1)
	notify(asked)
	cmd, err := start(program, args, files)
	if err != nil {
		return failure(args[0], err)
	}
	signaled := wait(cmd, asked)
	if err := files.removeLinks(before); err != nil {
		return failure(args[0], err)
	}
	if signaled != 0 {
		return 128 + int(signaled)
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		return cmd.ProcessState.ExitCode()
	}
	switch {
	case status.ExitStatus() == statusExhausted:
		tell(Failed)
	case !killed(status, cmd.Args[0] == initName):
		tell(Ended)
	}
	return shellStatus(status)
}

// notify asks for the signals with which a hook ends a program, except for those it has ignored.
func notify(asked chan<- os.Signal) {
	for _, sig := range []os.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGABRT, unix.SIGALRM, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGXCPU, unix.SIGVTALRM, unix.SIGPROF,
	} {
		if !signal.Ignored(sig) {
			signal.Notify(asked, sig)
		}
	}
}

// wait returns when the program has ended, and which signal was asked for before: the program is
// killed then, and what it has left can be removed.
func wait(cmd *exec.Cmd, asked <-chan os.Signal) (signaled syscall.Signal) {
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the state says the same
		close(ended)
	}()
	select {
	case <-ended:
	case sig := <-asked:
		signaled, _ = sig.(syscall.Signal)
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	}
	return signaled
}

// Channel is the variable with the number of the descriptor to which a hook reports. Programs do
// not have it; what becomes of them is told there, because a hook only sees that they printed
// nothing.
const Channel = "RESULTS_FD"

// What is told about a program.
const (
	Began  = `{"fit-untrusted":"began"}`
	Ended  = `{"fit-untrusted":"ended"}`
	Failed = `{"fit-untrusted":"failed"}` // the machine could not start it
)

// tell writes a line to the socket of a hook, if there is one.
func tell(line string) {
	fd, err := strconv.Atoi(os.Getenv(Channel))
	var stat unix.Stat_t
	if err != nil || fd < 3 || unix.Fstat(fd, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return
	}
	_, _ = unix.Write(fd, []byte(line+"\n")) // somebody has closed it
}

// killed reports whether something ended process 1 around a program, or killed the program. Nobody
// knows who did that.
func killed(status syscall.WaitStatus, around bool) bool {
	return status.Signaled() && around || shellStatus(status) == 128+int(unix.SIGKILL)
}

// shellStatus returns how shells report the end of a process.
func shellStatus(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// streamFlags returns the flags of the standard streams. The hook has the same open files: a
// program that makes one of them non-blocking would break what the hook writes next.
func streamFlags() [3]int {
	var flags [3]int
	for fd := range flags {
		flags[fd], _ = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0) // -1 for one that is closed
	}
	return flags
}

func restoreStreams(flags [3]int) {
	for fd, flag := range flags {
		if flag >= 0 {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flag)
		}
	}
}

func (f Files) command(program string, args []string, attributes *syscall.SysProcAttr) *exec.Cmd {
	names := strings.Split(cmp.Or(os.Getenv(Passes), passed), ",")
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		_, own := f.Env[name]
		return own || !slices.Contains(names, name)
	})
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		env = append(env, name+"="+f.Env[name])
	}
	cmd := &exec.Cmd{
		Path:        program,
		Args:        args,
		Env:         env,
		SysProcAttr: attributes,
	}
	if !ends(attributes) {
		cmd.WaitDelay = lastOutput
	}
	if f.input {
		cmd.Stdin = input(os.Stdin)
	}
	cmd.Stdout = output(os.Stdout)
	if cmd.Stderr = cmd.Stdout; !sameFile(os.Stdout, os.Stderr) {
		cmd.Stderr = output(os.Stderr)
	}
	return cmd
}

// lastOutput is how long a program that has ended may keep its streams open, by processes it has
// left where the kernel allows no namespaces.
const lastOutput = 5 * time.Second

// input and output return a stream as the program gets it: devices as they are, and others by way
// of a pipe. The program could otherwise open a file once more, and read and write what is not
// meant for it, or read what its hook prints where it prints.
func input(file *os.File) io.Reader {
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		return struct{ io.Reader }{file}
	}
	return file
}

func output(file *os.File) io.Writer {
	info, err := file.Stat()
	if err != nil || info.Mode()&fs.ModeDevice != 0 {
		return file
	}
	// A copy, because Go ends a process whose standard output nobody reads.
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return struct{ io.Writer }{file}
	}
	return struct{ io.Writer }{os.NewFile(uintptr(fd), file.Name())}
}

func sameFile(a, b *os.File) bool {
	one, err := a.Stat()
	other, missing := b.Stat()
	return err == nil && missing == nil && os.SameFile(one, other)
}

func failure(program string, err error) int {
	fmt.Fprintf(os.Stderr, "%s: %s: %v\n", Name, program, err)
	for _, scarce := range []error{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.ENOSPC} {
		if errors.Is(err, scarce) {
			tell(Failed)
			return statusExhausted
		}
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return StatusNotFound
	}
	return StatusNotExecutable
}
