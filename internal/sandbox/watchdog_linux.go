package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// watchdogName is the name of our own binary as a watchdog.
const watchdogName = "fit-watchdog"

// Watchdog is a process that ends this one, and with it everything that it has spawned, when this
// one hangs: a process that is stopped can do nothing itself.
type Watchdog struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	to  *os.File
}

// StartWatchdog starts a watchdog. It does nothing before Within is called.
func StartWatchdog() (*Watchdog, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start a watchdog: %w", err)
	}
	defer from.Close()
	cmd := ownCommand(watchdogName, &syscall.SysProcAttr{Setsid: true}) // Ctrl-Z stops us and not it
	cmd.Stdin, cmd.Stderr = from, os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start a watchdog: %w", err), to.Close())
	}
	return &Watchdog{cmd: cmd, to: to}, nil
}

// Within makes the watchdog end this process unless Within is called again in that time; 0: it no
// longer does.
func (w *Watchdog) Within(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.to.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // it may hang itself
	_, _ = w.to.Write(binary.BigEndian.AppendUint64(nil, uint64(max(limit, 0))))
}

// Close ends the watchdog.
func (w *Watchdog) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.to.Close(), w.cmd.Wait())
}

// watch runs a watchdog. It ends when the process that it watches has ended.
func watch([]string) (status int) {
	watched := os.Getppid()
	limits := make(chan time.Duration)
	go func() {
		defer close(limits)
		for {
			var limit [8]byte
			if _, err := io.ReadFull(os.Stdin, limit[:]); err != nil {
				return
			}
			limits <- time.Duration(binary.BigEndian.Uint64(limit[:]))
		}
	}()
	var late <-chan time.Time
	var last time.Duration
	for {
		select {
		case limit, alive := <-limits:
			if !alive {
				return 0
			}
			late, last = nil, limit
			if limit > 0 {
				late = time.After(limit)
			}
		case <-late:
			if os.Getppid() != watched { // it is dead, and its number may be reused
				return 0
			}
			fmt.Fprintf(os.Stderr, "fit: this process was stopped for %s, and was ended with everything it runs\n",
				last)
			_ = syscall.Kill(watched, syscall.SIGKILL)
			return 0
		}
	}
}
