package sandbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// firstName is the name under which our binary sets the last bounds and becomes the program; it
// appears in ps.
const firstName = "fit-sandbox-first"

// first is what is left to do between the start of a process and the program: limits, which the
// supervisor would suffer under; and in a sandbox the user, whom bubblewrap cannot change, and the
// working directory, which only that user may enter.
type first struct {
	Limits Limits `json:"limits"`
	UID    int    `json:"uid,omitempty"`
	// Inside is set in a container: there the program is looked for, and User is one of its own.
	Inside bool   `json:"inside,omitempty"`
	User   string `json:"user,omitempty"`
	Home   string `json:"home,omitempty"` // in place of that of the environment
	Dir    string `json:"dir,omitempty"`
	Nice   int    `json:"nice,omitempty"` // its niceness, see room.prefer
	// StartFD is where to report, and SelfFD what we were started from; 0 outside a sandbox.
	StartFD int `json:"startFd,omitempty"`
	SelfFD  int `json:"selfFd,omitempty"`
}

// startedProgram is what first reports when only the program is left to be started. An error
// follows if that fails.
const startedProgram = "started\n"

// argv is the command line of our binary that does it and becomes the program.
func (f first) argv(ord order) ([]string, error) {
	settings, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	return append([]string{firstName, string(settings), ord.Program}, ord.Argv...), nil
}

// calledFirst reports whether this process is to become a program. In a sandbox our binary has no
// name but that of a descriptor.
func calledFirst() bool {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[0], "/proc/self/fd/") && os.Args[1] == firstName {
		os.Args = os.Args[1:]
	}
	return os.Args[0] == firstName
}

// becomeProgram is the other side of first.argv. It returns only if that failed.
func becomeProgram() {
	if len(os.Args) < 4 {
		return
	}
	var f first
	err := json.Unmarshal([]byte(os.Args[1]), &f)
	if err == nil {
		err = f.become(os.Args[2], os.Args[3:])
	}
	if f.StartFD == 0 {
		fmt.Fprintln(os.Stderr, "fit:", err)
	} else {
		_, _ = unix.Write(f.StartFD, []byte(err.Error()))
	}
}

func (f first) become(program string, argv []string) error {
	env := os.Environ()
	if f.StartFD != 0 {
		unix.CloseOnExec(f.StartFD)
		if f.SelfFD != 0 {
			unix.CloseOnExec(f.SelfFD)
		}
		_ = os.Setenv("PWD", f.Dir)
		env = os.Environ()
	}
	if f.Inside {
		if err := f.enter(); err != nil {
			return err
		}
		env = os.Environ()
	}
	if f.UID != 0 {
		if err := dropTo(f.UID); err != nil {
			return fmt.Errorf("become user %d: %w", f.UID, err)
		}
	}
	if f.Dir != "" {
		if err := unix.Chdir(f.Dir); err != nil {
			return fmt.Errorf("enter %s: %w", f.Dir, err)
		}
	}
	if f.Inside {
		found, err := lookProgram(argv[0], env)
		if err != nil {
			return err
		}
		program = found
	}
	if err := f.Limits.apply(); err != nil {
		return fmt.Errorf("set resource limits: %w", err)
	}
	if f.StartFD != 0 {
		_, _ = unix.Write(f.StartFD, []byte(startedProgram))
	}
	return fmt.Errorf("start %s: %w", program, syscall.Exec(program, argv, env))
}

// enter becomes the user that a program in a container is to be. When memory is short the kernel is
// to end programs, and not whoever holds the container.
func (f first) enter() error {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0) // not everywhere
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, f.Nice)             // which is refused only where it would be more
	who, err := findAccount(cmp.Or(f.User, "0"))
	if err != nil {
		return err
	}
	given := os.Getenv("HOME")
	f.goHome(who)
	if f.User == "" || who.uid == 0 && who.gid == 0 {
		return nil
	}
	if err := who.own(given); err != nil {
		return fmt.Errorf("give its home to user %s: %w", f.User, err)
	}
	if err := who.become(); err != nil {
		return fmt.Errorf("become user %s: %w", f.User, err)
	}
	return nil
}

// goHome sets the home directory that the image has for a user, if there is such a directory.
func (f first) goHome(who account) {
	home := f.Home
	if home == usersHome {
		home = who.home
	}
	if info, err := os.Stat(home); err == nil && info.IsDir() && home != "/" {
		_ = os.Setenv("HOME", home)
	}
}

// dropTo makes this thread, which becomes the program, another user, with no group and no privilege
// but that user's.
func dropTo(uid int) error {
	if err := setUser(uid, uid, nil); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// startReport reads what first reports in a sandbox.
type startReport struct {
	done chan struct{}
	text []byte
}

func (s *startReport) follow(read *os.File) {
	defer close(s.done)
	defer read.Close()
	s.text, _ = io.ReadAll(read)
}

// outcome returns, after bubblewrap has ended, whether the sandbox was made, and why the program
// was not started in it.
func (s *startReport) outcome() (made bool, err error) {
	select {
	case <-s.done: // it ends with the start of the program, or with bubblewrap
	case <-time.After(time.Second):
		return true, nil
	}
	text, made := strings.CutPrefix(string(s.text), startedProgram)
	if text == "" {
		return made, nil
	}
	return true, errors.New(text)
}
