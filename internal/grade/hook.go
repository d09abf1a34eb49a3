package grade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/sandbox/untrusted"
)

// hookStderr bounds what of the hook's standard error is in the record; artefacts have more.
const hookStderr = 4 << 10

// graded is the result of one producer of rows.
type graded struct {
	rows     []Row
	health   health
	reasons  []string
	missing  []string // declared checks that no row is about
	exitCode int
	stderr   string
	// way is how a hook was stopped; empty if it ended by itself.
	way string
	// died is set for a hook that may have met an accident: it was killed, or ended without saying
	// all that it has to say.
	died bool
	// accident says what may have made a check of a hook fail beside the work: one of its programs
	// was ended from outside, by the hook, by itself or by chance, or could not be started.
	accident string
	// noProcess is set if the hook's shell says that it could not start a process.
	noProcess bool
	// commands are the results of the commands to verify.
	commands []CommandResult
}

// judgeHook runs the invariants hook and, if it did not do its work, finds out whose fault that is.
func (g *grading) judgeHook(ctx context.Context) (graded, error) {
	if g.Task.Hooks.Invariants == "" {
		return graded{}, nil
	}
	found, err := g.runHook(ctx)
	if err != nil {
		return found, err
	}
	if broken := found.failureReason(); broken != "" {
		found.health, err = g.blameHook(ctx, found, broken)
	} else if found.accident != "" && len(found.failing()) > 0 {
		found.health, err = g.confirm(ctx, found)
	}
	return found, err
}

// failing names the checks that failed.
func (found graded) failing() []string {
	var names []string
	for _, row := range found.rows {
		if row.Role != Diagnostic && !row.Pass {
			names = append(names, row.Name)
		}
	}
	return names
}

// accidents takes what fit-untrusted told about its programs out of what a hook reported.
func accidents(data []byte) (rows []byte, cutOff, failed bool) {
	running := 0
	for line := range bytes.Lines(data) {
		switch string(bytes.TrimSpace(line)) {
		case untrusted.Began:
			running++
		case untrusted.Ended:
			running--
		case untrusted.Failed:
			failed = true
		default:
			rows = append(rows, line...)
		}
	}
	return rows, running > 0, failed
}

// failureReason returns why a hook did not do its work; empty means that it did.
func (found graded) failureReason() string {
	switch {
	case found.health.broken != "":
		return found.health.broken
	case len(found.rows) == 0:
		return "the invariants hook reported no row"
	case len(found.missing) > 0:
		return "the invariants hook did not report " + display.CutBytes(strings.Join(found.missing, ", "), 300)
	}
	return ""
}

// unrecorded returns the same grading without a place for artefacts.
func (g *grading) unrecorded() *grading {
	again := &grading{Config: g.Config, scratch: g.scratch, again: g.again}
	again.Artifacts = ""
	return again
}

// runHook runs the hook on a fresh copy and reads its rows.
func (g *grading) runHook(ctx context.Context) (graded, error) {
	copied, err := g.copy(ctx, gitSettings...)
	if _, unfit := errors.AsType[*copyError](err); unfit {
		return graded{exitCode: 126, health: health{broken: err.Error()}}, nil
	}
	if err != nil {
		return graded{}, err
	}
	defer func() { _ = copied.Remove() }()
	place := g.Source.Hook(copied.Dir)
	argv, shell, err := g.guardShell([]string{g.Task.Hooks.Invariants}, copied.Dir, place)
	if err != nil {
		return graded{}, fmt.Errorf("shell of the invariants hook: %w", err)
	}
	channel, err := openChannel()
	if err != nil {
		return graded{}, fmt.Errorf("channel for rows: %w", err)
	}
	env := hookEnvironment(place)
	env[untrusted.Channel] = "3"
	done, err := g.run(ctx, program{
		argv:  argv,
		dir:   copied.Dir,
		place: place,
		env:   env,
		files: []*os.File{channel.childEnd},
		// The hook's shell must be seen from inside.
		readable: visible(shell),
		timeout:  g.Task.Settings.Timeouts.Invariants,
	})
	told, overflow := channel.close()
	if err != nil {
		return graded{}, err
	}
	data, cutOff, failed := accidents(told)
	found := graded{
		rows:     parseRows(g.redactRows(data)),
		exitCode: done.status(),
		stderr:   done.stderr.last(hookStderr),
	}
	found.reasons, found.missing = compareRows(found.rows, g.Task.Settings.Checks)
	found.health.broken = hookAbortReason(done, overflow || len(found.rows) >= maxRows)
	found.way = done.abortReason()
	found.died = found.way == "" || done.killed()
	found.noProcess = cannotFork.MatchString(string(done.stderr.Bytes()))
	switch {
	case found.noProcess:
		found.accident = "the hook's shell could not start a process"
	case cutOff:
		found.accident = "a program under " + untrusted.Name + " was ended from outside"
	case lastWords.MatchString(done.printed() + string(data)):
		found.accident = "a program of the hook was killed"
	}
	if failed && found.health.broken == "" {
		found.health.broken = "the machine could not start a program under " + untrusted.Name
		found.noProcess, found.died = true, true
	}
	g.keep("invariants.stderr.log", done.stderr.Bytes())
	g.keep("invariants.stdout.log", done.stdout.Bytes())
	g.keep("invariants.rows.ndjson", data)
	return found, nil
}

// visible returns the directories that are not empty.
func visible(dirs ...string) []string {
	return slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" })
}

func hookAbortReason(done ended, overflow bool) string {
	aborted := done.abortReason()
	switch {
	case aborted != "":
		return "the invariants hook " + aborted
	case done.ExitCode != 0:
		return fmt.Sprintf("the invariants hook ended with status %d", done.ExitCode)
	case overflow:
		return "the invariants hook reported more than it may"
	}
	return ""
}

// redactRows takes secrets out line by line, so that rows stay valid JSON.
func (g *grading) redactRows(data []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		out.Write(g.Redactor.JSON(line))
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// channel carries rows from the hook to us. It is a socket: unlike a file or a pipe it can neither
// be truncated nor rewritten nor opened a second time through /proc, so a process that inherits it
// can add rows but not take any away.
type channel struct {
	childEnd, ourEnd *os.File
	data             bytes.Buffer
	overflow         bool
	reading          sync.WaitGroup
}

func openChannel() (*channel, error) {
	ours, theirs, err := sandbox.Sockets()
	if err != nil {
		return nil, err
	}
	c := &channel{ourEnd: ours, childEnd: theirs}
	c.reading.Go(c.read)
	return c, nil
}

// read drains the socket, so that no writer ever blocks, and keeps what is within the limit.
func (c *channel) read() {
	n, _ := io.Copy(&c.data, io.LimitReader(c.ourEnd, maxRowsSize))
	if n < maxRowsSize {
		return
	}
	more, _ := io.Copy(io.Discard, c.ourEnd)
	c.overflow = more > 0
}

// close ends the reading and returns what was written. The process tree is gone by then, so all
// that was ever written is in the socket.
func (c *channel) close() (data []byte, overflow bool) {
	// A process that cannot be killed may hold the other side, but nothing writes to it any more.
	_ = syscall.Shutdown(int(c.childEnd.Fd()), syscall.SHUT_WR)
	_ = c.childEnd.Close()
	c.reading.Wait()
	_ = c.ourEnd.Close()
	return c.data.Bytes(), c.overflow
}

// testRow makes the row of a check of ours.
func testRow(name string, gate bool, weight float64, pass bool, message string) Row {
	fields := map[string]any{"test": name, "pass": pass}
	switch {
	case gate:
		fields["gate"] = true
	case weight > 0 && weight != 1:
		fields["weight"] = weight
	}
	if message != "" && !pass {
		fields["message"] = message
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return unreadable(name)
	}
	return Classify(raw)
}
