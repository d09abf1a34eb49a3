package workspace

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox"
)

// services is a preflight hook with everything that it has started. They live in one process tree,
// which ends when the context is cancelled.
type services struct {
	cancel context.CancelFunc
	keep   *os.File      // while it is open, the tree lives
	done   chan struct{} // closed when the tree is gone
	pid    int           // of the tree's first process, as we see it
	// listened says that something listened on the port when the hook had ended.
	listened bool
	err      error
}

// preflightScript runs the hook and reports its exit status on descriptor 3 as soon as it has
// ended, whatever it has left running with its output open. Then it keeps the process tree alive
// until its standard input is closed.
const preflightScript = `"$0" </dev/null >&4 2>&5 3>&- 4>&- 5>&-
echo $? >&3
exec 3>&- 4>&- 5>&-
read -r line || :`

// messageLimit bounds what is kept of a hook's stderr.
const messageLimit = 2000

// Preflight runs the task's preflight hook in dir and leaves the services that it started alive
// until StopServices. A hook that fails has nothing left running. An empty dir means Dir, and that
// an agent will work there: until Seal it reaches the services at its port, wherever they are.
func (w *Workspace) Preflight(ctx context.Context, dir string) (PreflightResult, error) {
	hook := w.cfg.Task.Hooks.Preflight
	if hook == "" {
		return PreflightResult{}, nil
	}
	if w.services != nil {
		return PreflightResult{}, errors.New("preflight: the services of an earlier one are still running")
	}
	forAgent := dir == ""
	if forAgent {
		dir = w.Dir
	}
	logs, err := w.preflightLogs()
	if err != nil {
		return PreflightResult{}, fmt.Errorf("preflight: %w", err)
	}
	defer closeQuietly(logs...)
	if err := w.openPrivate(ctx); err != nil {
		return PreflightResult{}, fmt.Errorf("preflight: %w", err)
	}
	status, err := w.startServices(ctx, hook, dir, logs)
	if err != nil {
		return PreflightResult{}, fmt.Errorf("preflight: %w", err)
	}
	result, err := w.awaitPreflight(ctx, status)
	result.Ran = true
	if err != nil {
		w.StopServices()
		return result, fmt.Errorf("preflight: %w", err)
	}
	if !result.OK() {
		w.StopServices()
		result.Message = preflightMessage(logs[1], result)
		return result, nil
	}
	w.services.listened = w.Port != 0 && listens(w.services.pid, w.Port)
	if forAgent {
		if err := w.openOutward(ctx); err != nil {
			w.StopServices()
			return result, fmt.Errorf("preflight: port %d: %w", w.Port, err)
		}
	}
	return result, nil
}

// preflightLogs opens the files for the hook's output: unlike a pipe they need no reader.
func (w *Workspace) preflightLogs() ([]*os.File, error) {
	var files []*os.File
	dir, err := w.hookDir()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"preflight.stdout.log", "preflight.stderr.log"} {
		file, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND,
			0o600)
		if err != nil {
			closeQuietly(files...)
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// startServices starts the process tree and returns the file that the hook's exit status comes
// from.
func (w *Workspace) startServices(ctx context.Context, hook, dir string, logs []*os.File) (*os.File, error) {
	status, statusEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdin, keep, err := os.Pipe()
	if err != nil {
		closeQuietly(status, statusEnd)
		return nil, err
	}
	place := w.Hook(dir)
	if w.cfg.Task.Settings.PreflightNetwork {
		place.Isolation.Network = true
	}
	if w.containers != nil {
		w.servicesDir = dir
		place.Isolation.Container = w.container("services", dir, func(cfg *sandbox.ContainerConfig) {
			cfg.HostNetwork = w.cfg.Task.Settings.PreflightNetwork
		})
	}
	// The services outlive this call; StopServices ends them and waits.
	living, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &services{cancel: cancel, keep: keep, done: make(chan struct{})}
	started := make(chan struct{})
	spec := sandbox.SpawnSpec{
		Argv:       []string{"/bin/sh", "-c", preflightScript, hook},
		Dir:        dir,
		Env:        place.Env.List(),
		Stdin:      stdin,
		ExtraFiles: []*os.File{statusEnd, logs[0], logs[1]},
		Grace:      200 * time.Millisecond,
		Isolation:  place.Isolation,
		Limits:     place.Limits,
		OnStart:    func(pid int) { s.pid = pid; close(started) },
	}
	go func() {
		defer close(s.done)
		_, s.err = cmp.Or(w.cfg.Spawner, sandbox.NewSpawner()).Spawn(living, spec, io.Discard, io.Discard)
		closeQuietly(stdin, statusEnd)
	}()
	select {
	case <-started:
		closeQuietly(statusEnd) // from here on only the program can hold it
	case <-s.done:
		if s.err != nil {
			cancel()
			closeQuietly(status, keep)
			return nil, s.err
		}
	}
	w.services = s
	return status, nil
}

// awaitPreflight waits for the hook itself, not for what it has started.
func (w *Workspace) awaitPreflight(ctx context.Context, status *os.File) (PreflightResult, error) {
	defer closeQuietly(status)
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(status, 16)).ReadString('\n')
		lines <- strings.TrimSpace(line)
	}()
	limit := w.cfg.Task.Settings.Timeouts.Preflight
	var timeout <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case line := <-lines:
		code, err := strconv.Atoi(line)
		if err != nil { // the tree died before the hook had ended
			return PreflightResult{ExitCode: -1, Signal: "SIGKILL"}, nil
		}
		return exitStatus(code), nil
	case <-timeout:
		return PreflightResult{ExitCode: -1, TimedOut: true}, nil
	case <-ctx.Done():
		return PreflightResult{ExitCode: -1}, ctx.Err()
	}
}

// exitStatus reads a shell's $?: above 128 it means a signal.
func exitStatus(code int) PreflightResult {
	if name := unix.SignalName(unix.Signal(code - 128)); code > 128 && name != "" {
		return PreflightResult{ExitCode: -1, Signal: name}
	}
	return PreflightResult{ExitCode: code}
}

// preflightMessage returns the end of what the hook printed, or a sentence.
func preflightMessage(stderr *os.File, r PreflightResult) string {
	if r.Signal != "" {
		return "preflight was killed by " + r.Signal
	}
	content := make([]byte, messageLimit)
	size, err := stderr.Seek(0, io.SeekEnd)
	if err == nil {
		n, _ := stderr.ReadAt(content, max(0, size-messageLimit))
		if text := bytes.TrimSpace(content[:n]); len(text) > 0 {
			return strings.ToValidUTF8(string(text), "?")
		}
	}
	if r.TimedOut {
		return "preflight did not end in time"
	}
	return fmt.Sprintf("preflight exited with code %d", r.ExitCode)
}

// StopServices kills everything that Preflight started, and returns as soon as it is gone. Graders
// cannot run after it.
func (w *Workspace) StopServices() {
	defer w.closePrivate()
	w.closeOutward()
	s := w.services
	if s == nil {
		return
	}
	w.services = nil
	s.cancel()
	closeQuietly(s.keep)
	<-s.done // bounded: the spawner gives up on a tree that does not die
	if w.containers != nil {
		bestEffort(w.container("services", w.servicesDir, nil).Close())
	}
}

func closeConnection(c io.Closer) { bestEffort(c.Close()) }
