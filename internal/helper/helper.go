// Package helper is where a process finds out that fit has started it to help: to supervise a
// program, to become one, to hold a network, to serve a cache. A helper is our own binary under
// another name, because every program that imports the library has that at hand; it does its work
// while packages are initialised, so that no program can forget it and no helper waits for
// packages that it does not need.
//
// The name is looked at here, once, and nowhere else. A process that was started under a name of
// its own is none of this, whatever its arguments are.
//
// The package imports nothing that imports more than os, so that Go initialises it before
// everything else.
package helper

import (
	"os"
	"syscall"
)

// name is the name that this process was started under, without a directory, and arguments are
// what follows it.
var name, arguments = started(os.Args)

// descriptor begins the name of a process whose file is known by a descriptor only: bubblewrap
// starts programs under the name of their file. Its first argument is then the name of the helper.
const descriptor = "/proc/self/fd/"

func started(args []string) (name string, arguments []string) {
	if len(args) == 0 {
		return "", nil
	}
	name, arguments = args[0], args[1:]
	if len(arguments) > 0 && len(name) > len(descriptor) && name[:len(descriptor)] == descriptor {
		return arguments[0], arguments[1:]
	}
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			return name[i+1:], arguments
		}
	}
	return name, arguments
}

// Become does the work of a helper, whose result is the exit status, in a process that was started
// under its name, and does not return there. Everywhere else it returns false and has no effect.
func Become(helper string, work func(arguments []string) (status int)) bool {
	if name != helper {
		return false
	}
	syscall.Exit(work(arguments)) // at once: under the race detector, os.Exit sleeps for a second
	return true
}
