package sandbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/internal/first"
	"github.com/fit-eval/fit/internal/sandbox/seccomp"
	"github.com/fit-eval/fit/internal/sandbox/untrusted"
)

// insideName is the name under which our binary becomes a program in a container; it appears in ps.
const insideName = "fit-sandbox-inside"

// inside holds what our binary does before it becomes a program in a container. The program is
// looked up there, and User is one of the container's.
type inside struct {
	first.Settings
	User string
	Home string // in place of that of the environment
	Nice int    // its niceness, see room.prefer
	// Filter loads our filter of system calls, where the engine has not. Programs then gain no
	// privileges, not even those of sudo.
	Filter bool
}

// argv returns the command line of our binary that does it and becomes the program.
func (i inside) argv(argv []string) ([]string, error) {
	settings, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	return append([]string{insideName, string(settings)}, argv...), nil
}

// becomeProgram is the other side of inside.argv. It returns only if that failed.
func becomeProgram(args []string) (status int) {
	runtime.LockOSThread() // users belong to threads
	if len(args) < 2 {
		return untrusted.StatusNotFound
	}
	var i inside
	err := json.Unmarshal([]byte(args[0]), &i)
	if err == nil {
		err = i.become(args[1:])
	}
	i.Fail(err)
	return untrusted.StatusNotFound
}

func (i inside) become(argv []string) error {
	if err := i.enter(); err != nil {
		return err
	}
	if err := i.Enter(); err != nil {
		return err
	}
	program, err := lookProgram(argv[0], os.Environ())
	if err != nil {
		return err
	}
	if i.Filter {
		if err := seccomp.Load(); err != nil {
			return fmt.Errorf("filter system calls: %w", err)
		}
	}
	return i.Start(program, argv)
}

// enter becomes the user of a program in a container. If memory runs out, the kernel should kill
// programs, and not the process that holds the container.
func (i inside) enter() error {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0) // not everywhere
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, i.Nice)             // which is refused only where it would be more
	who, err := findAccount(cmp.Or(i.User, "0"))
	if err != nil {
		return err
	}
	given := os.Getenv("HOME")
	i.setHome(who)
	if i.User == "" || who.uid == 0 && who.gid == 0 {
		return nil
	}
	if err := who.own(given); err != nil {
		return fmt.Errorf("give its home to user %s: %w", i.User, err)
	}
	if err := who.become(); err != nil {
		return fmt.Errorf("become user %s: %w", i.User, err)
	}
	return nil
}

// setHome sets the home directory that the image has for a user, if there is such a directory.
func (i inside) setHome(who account) {
	home := i.Home
	if home == usersHome {
		home = who.home
	}
	if info, err := os.Stat(home); err == nil && info.IsDir() && home != "/" {
		_ = os.Setenv("HOME", home)
	}
}
