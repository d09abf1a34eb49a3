package grade

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/workspace"
)

// The bounds of every grader.
const (
	maxPrinted     = 64 << 20
	keptHead       = 32 << 10
	keptTail       = 96 << 10
	killGrace      = -1 // graders have nothing to save: no grace
	defaultTimeout = 2 * time.Minute
	// The status of a program that a bound of ours stopped, as the shell's timeout command has it.
	stoppedStatus = 124
	lastSignal    = 32
)

// program is one grader process to run.
type program struct {
	argv    []string
	dir     string
	place   workspace.Place
	env     map[string]string // beside the place's
	stdin   []byte
	files   []*os.File
	timeout time.Duration
	// readable and writable are paths beside the place's own.
	readable, writable []string
	// hidden are the files that programs under test, started by fit-untrusted, do not see.
	hidden []string
	// watch, if set, sees all of standard output.
	watch io.Writer
	// private is set if the output is the report itself: programs that this one starts cannot reach
	// its output unless they inherit it.
	private bool
}

// ended is how it went.
type ended struct {
	sandbox.SpawnResult
	stdout, stderr excerpt
	timeout        time.Duration
	failure        error // it could not be started
}

// run runs a program to its end. The error is the context's, or that of a machine on which nothing
// can be started.
func (g *grading) run(ctx context.Context, p program) (ended, error) {
	p.timeout = cmp.Or(max(p.timeout, 0), defaultTimeout)
	env := sandbox.Environment{}
	maps.Copy(env, p.place.Env)
	maps.Copy(env, p.env)
	isolation := p.place.Isolation
	isolation.ReadOnly = slices.Concat(isolation.ReadOnly, p.readable)
	isolation.Writable = slices.Concat(isolation.Writable, p.writable)
	if view := isolation.Untrusted; view != nil && len(p.hidden) > 0 {
		limited := *view
		limited.Hidden = slices.Concat(view.Hidden, p.hidden)
		isolation.Untrusted = &limited
	}
	spec := sandbox.SpawnSpec{
		Argv:          p.argv,
		Dir:           p.dir,
		Env:           env.List(),
		ExtraFiles:    p.files,
		Timeout:       p.timeout,
		Grace:         killGrace,
		MaxOutput:     maxPrinted,
		PrivateOutput: p.private,
		Isolation:     isolation,
		Limits:        p.place.Limits,
	}
	for tries := 1; ; tries++ {
		done, err := g.spawn(ctx, p, spec)
		if tries == startTries || !notStarted(p, done.failure) || !pause(ctx, startPause) {
			return done, err
		}
	}
}

// A grader that this machine could not start is started again, after a moment.
const (
	startTries = 3
	startPause = 200 * time.Millisecond
)

// notStarted reports whether a program was not started because of this machine. A container is also
// the agent's, whose programs can break it.
func notStarted(p program, err error) bool {
	return MachineFailed(err) || errors.Is(err, sandbox.ErrBroken) && p.place.Isolation.Container == nil
}

// pause waits; it returns false if the context ended.
func pause(ctx context.Context, long time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(long):
		return true
	}
}

func (g *grading) spawn(ctx context.Context, p program, spec sandbox.SpawnSpec) (ended, error) {
	if p.stdin != nil {
		spec.Stdin = bytes.NewReader(p.stdin)
	}
	done := ended{timeout: p.timeout}
	// What is kept is redacted before it is cut: a secret that was cut is no longer recognised.
	cleanOut, cleanErr := g.Redactor.Writer(&done.stdout), g.Redactor.Writer(&done.stderr)
	var stdout io.Writer = cleanOut
	if p.watch != nil {
		stdout = io.MultiWriter(p.watch, cleanOut)
	}
	done.SpawnResult, done.failure = g.Spawner.Spawn(ctx, spec, stdout, cleanErr)
	_, _ = cleanOut.Close(), cleanErr.Close() // excerpts never fail
	if ctx.Err() != nil {
		return done, ctx.Err()
	}
	if notStarted(p, done.failure) {
		return done, fmt.Errorf("start a grader: %w", done.failure)
	}
	return done, nil
}

// abortReason returns why the program did not end by itself; empty if it did, whatever its status.
func (e ended) abortReason() string {
	switch {
	case e.failure != nil:
		return "could not be started: " + e.failure.Error()
	case e.TimedOut:
		return fmt.Sprintf("timed out after %dms", e.timeout.Milliseconds())
	case e.OutputLimit:
		return fmt.Sprintf("printed more than %d bytes", maxPrinted)
	case e.Exceeded != "":
		return "used more " + e.Exceeded + " than its limit"
	case len(e.Unkillable) > 0:
		return "left processes behind that cannot be killed"
	case e.Signal != "":
		return "was killed by " + e.Signal
	case e.killed():
		return "was killed by " + cmp.Or(unix.SignalName(unix.Signal(e.ExitCode-128)), "a signal")
	}
	return ""
}

// killed reports whether a signal ended the program, and none of our bounds.
func (e ended) killed() bool {
	if e.failure != nil || e.TimedOut || e.OutputLimit || e.Exceeded != "" {
		return false
	}
	// Shells and bubblewrap report the signal of what they ran in their status.
	return e.Signal != "" || e.ExitCode > 128 && e.ExitCode < 128+lastSignal
}

// printed returns what is kept of all that was printed.
func (e ended) printed() string { return string(e.stdout.Bytes()) + string(e.stderr.Bytes()) }

// status returns the exit code as a shell would see it, never 0 for a program that was killed.
func (e ended) status() int {
	switch {
	case e.failure != nil:
		return 127
	case e.TimedOut || e.OutputLimit || e.Exceeded != "":
		return stoppedStatus
	case e.Signal != "":
		return 128 + int(unix.SignalNum(e.Signal))
	case e.ExitCode < 0:
		return 255
	}
	return e.ExitCode
}

// excerpt keeps the beginning and the end of what a program prints.
type excerpt struct {
	head, tail []byte
	skipped    int64
}

// Write implements io.Writer; it never fails.
func (e *excerpt) Write(p []byte) (int, error) {
	n := len(p)
	if room := keptHead - len(e.head); room > 0 {
		e.head = append(e.head, p[:min(room, n)]...)
		p = p[min(room, n):]
	}
	e.tail = append(e.tail, p...)
	// Cut rarely, so that many small writes do not move the tail each time.
	if len(e.tail) > 2*keptTail {
		e.cut()
	}
	return n, nil
}

func (e *excerpt) cut() {
	over := len(e.tail) - keptTail
	if over <= 0 {
		return
	}
	e.skipped += int64(over)
	e.tail = append(e.tail[:0], e.tail[over:]...)
}

// Bytes returns what was kept, with a note about what was left out.
func (e *excerpt) Bytes() []byte {
	e.cut()
	if e.skipped == 0 {
		return slices.Concat(e.head, e.tail)
	}
	note := fmt.Sprintf("\n… %d bytes left out …\n", e.skipped)
	return slices.Concat(e.head, []byte(note), e.tail)
}

// last returns up to limit bytes of the end as text that is safe to show.
func (e *excerpt) last(limit int) string {
	return strings.TrimSpace(display.LastBytes(strings.TrimSpace(display.Text(string(e.Bytes()))), limit))
}
