//go:build unix

package sandbox

import (
	"errors"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/proc"
)

// groupTree is a program held together by its process group only, which is all that systems other
// than Linux offer.
type groupTree struct {
	cmd     *exec.Cmd
	env     []string
	killing sync.Mutex
	killed  map[int]bool // descendants that were seen when the tree was killed
	ending
}

func startGroup(job launch) (processTree, int, error) {
	if job.Bwrap != nil {
		return nil, 0, errors.New("isolation needs a supervisor, which a process group does not have")
	}
	if job.Limits.perProcess() != (Limits{}) {
		return nil, 0, errors.New("resource limits need a supervisor, which a process group does not have")
	}
	t := &groupTree{env: job.Env, ending: ending{done: make(chan struct{})}, killed: map[int]bool{}}
	t.cmd = &exec.Cmd{
		Path:       job.Program,
		Args:       job.Argv,
		Dir:        job.Dir,
		Env:        job.Env,
		Stdin:      job.files[0],
		Stdout:     job.files[1],
		Stderr:     job.files[2],
		ExtraFiles: job.files[3:],
		// A new session is also a new process group.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if t.cmd.Env == nil {
		t.cmd.Env = []string{} // nil would inherit ours
	}
	proc.CloseAllOnExec()
	if err := t.cmd.Start(); err != nil {
		return nil, 0, err
	}
	go t.wait()
	return t, t.cmd.Process.Pid, nil
}

// wait waits for the program and then kills what it left behind.
func (t *groupTree) wait() {
	defer close(t.done)
	_ = t.cmd.Wait() // the state below says the same
	end := outcome{ExitCode: -1}
	if state := t.cmd.ProcessState; state != nil {
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			end.Signal = unix.SignalName(status.Signal())
		} else {
			end.ExitCode = state.ExitCode()
		}
		if used, ok := state.SysUsage().(*syscall.Rusage); ok {
			end.Usage = usageOf(used)
		}
	}
	t.killing.Lock()
	defer t.killing.Unlock()
	end.Leftovers, end.Unkillable = proc.KillStrays(t.cmd.Process.Pid, marker(t.env), t.killed, killDelay/2)
	t.set(end)
}

func (t *groupTree) terminate() {
	_ = unix.Kill(-t.cmd.Process.Pid, unix.SIGTERM)
}

func (t *groupTree) kill() {
	pid := t.cmd.Process.Pid
	t.killing.Lock()
	for _, descendant := range proc.Descendants(pid) {
		t.killed[descendant] = true
	}
	for descendant := range t.killed {
		_ = unix.Kill(descendant, unix.SIGKILL)
	}
	t.killing.Unlock()
	if err := unix.Kill(-pid, unix.SIGKILL); err != nil {
		_ = t.cmd.Process.Kill()
	}
}

// abandon has nothing left to try.
func (t *groupTree) abandon() {
	t.set(outcome{ExitCode: -1, Signal: "SIGKILL", Unkillable: []int{t.cmd.Process.Pid}})
}

// marker returns the variable that marks the processes of a run; empty if there is none.
func marker(env []string) string {
	run := lookup(env, RunMarker)
	if run == "" {
		return ""
	}
	return RunMarker + "=" + run
}

// usageOf reads what the kernel accounted for.
func usageOf(used *syscall.Rusage) Usage {
	return Usage{
		UserMs:    used.Utime.Nano() / 1e6,
		SystemMs:  used.Stime.Nano() / 1e6,
		MaxRSSKiB: used.Maxrss / rssUnit,
	}
}
