package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/sandbox/pipes"
	"github.com/fit-eval/fit/internal/sandbox/proc"
)

const (
	// waitDelay is how long we wait for pipes and readers after the tree is gone.
	waitDelay = 5 * time.Second
	// killDelay is how long we wait for a tree to die after SIGKILL. Only a process
	// that hangs inside the kernel takes longer.
	killDelay = 30 * time.Second
)

// Local runs programs on this machine. Its zero value is ready for use and takes the
// strongest containment that works here.
type Local struct {
	// Containment, if set, is the mechanism to use.
	Containment Containment
}

// NewSpawner returns the spawner that really starts programs.
func NewSpawner() ProcessSpawner { return Local{} }

// launch is a program that is ready to be started: resolved, with its isolation
// turned into arguments, and its descriptors open.
type launch struct {
	order
	files   []*os.File // descriptors 0, 1, 2 and on
	network *PrivateNetwork
	room    *room // nil: not in a container
	// identity is the user of an isolated program where we are root; its namespaces are handed to
	// the supervisor after the files.
	identity   *identity
	namespaces []*os.File
}

// order is our first message to the supervisor: what to run, and how.
type order struct {
	Probe        bool     `json:"probe,omitempty"` // only report whether the namespace works
	PIDNamespace bool     `json:"pidNamespace,omitempty"`
	Program      string   `json:"program"`
	Argv         []string `json:"argv"`
	Dir          string   `json:"dir,omitempty"`
	Env          []string `json:"env"`
	Limits       Limits   `json:"limits"`
	ExtraFiles   int      `json:"extraFiles,omitempty"`
	// Bwrap isolates the program; nil does not.
	Bwrap *bwrapOrder `json:"bwrap,omitempty"`
	// Inside is for a program in a container.
	Inside *insideOrder `json:"inside,omitempty"`
}

// insideOrder is how a program is run in a container.
type insideOrder struct {
	User string `json:"user,omitempty"`
	Dir  string `json:"dir"`
	Keep bool   `json:"keep,omitempty"` // what it leaves running lives on
	Home string `json:"home,omitempty"` // of the image; see Container.homes
	Nice int    `json:"nice,omitempty"`
	// Filter is said of a container whose engine filters no system calls.
	Filter bool `json:"filter,omitempty"`
}

// processTree is a started program with everything it starts.
type processTree interface {
	// terminate asks the program to end (SIGTERM).
	terminate()
	// kill kills the whole tree (SIGKILL).
	kill()
	// gone is closed when no process is left.
	gone() <-chan struct{}
	// abandon gives up a tree that does not die.
	abandon()
	// outcome returns how it ended, once gone is closed or the tree is abandoned.
	outcome() outcome
}

// outcome is how a tree ended.
type outcome struct {
	ExitCode   int    `json:"exitCode"`
	Signal     string `json:"signal,omitempty"`
	Leftovers  int    `json:"leftovers,omitempty"`
	Unkillable []int  `json:"unkillable,omitempty"`
	Usage      Usage  `json:"usage"`
	// NoSandbox is set when bubblewrap ended without having made the sandbox, and NoProgram when
	// the program could not be started in it: then it says why.
	NoSandbox bool   `json:"noSandbox,omitempty"`
	NoProgram string `json:"noProgram,omitempty"`
}

// ending is the end of a tree, and how it was.
type ending struct {
	done   chan struct{} // closed when no process is left
	mu     sync.Mutex
	result outcome
}

func (e *ending) gone() <-chan struct{} { return e.done }

func (e *ending) set(result outcome) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.result = result
}

func (e *ending) outcome() outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.result
}

// Spawn implements ProcessSpawner.
func (l Local) Spawn(ctx context.Context, spec SpawnSpec, stdout, stderr io.Writer) (SpawnResult, error) {
	result := SpawnResult{ExitCode: -1}
	spec, err := spec.withDefaults()
	if err != nil {
		return result, err
	}
	if err := ctx.Err(); err != nil {
		result.Cancelled = true
		return result, fmt.Errorf("run %s: %w", spec.Argv[0], err)
	}
	job, err := prepare(ctx, spec)
	if err == nil {
		result.Containment, err = l.containment(job)
	}
	if err != nil {
		return result, fmt.Errorf("run %s: %w", spec.Argv[0], blamed(err, false))
	}
	if err := job.assumeIdentity(); err != nil {
		return result, fmt.Errorf("run %s: %w", spec.Argv[0], &setupError{Err: err})
	}
	r := &run{spec: spec, job: job, result: result}
	err = r.execute(ctx, stdout, stderr)
	if len(r.result.Unkillable) == 0 {
		job.dropIdentity()
	}
	if err != nil {
		return r.result, fmt.Errorf("run %s: %w", spec.Argv[0], blamed(err, job.room != nil))
	}
	return r.result, nil
}

// prepare resolves the program and builds the command line of the isolation.
func prepare(ctx context.Context, spec SpawnSpec) (launch, error) {
	if spec.Isolation.Untrusted != nil {
		files, err := spec.Isolation.untrustedFiles()
		if err != nil {
			return launch{}, err
		}
		spec.Env = append(slices.Clone(spec.Env), files)
	}
	if spec.Isolation.Container != nil {
		return prepareInside(ctx, spec)
	}
	program, err := lookProgram(spec.Argv[0], spec.Env)
	if err != nil {
		return launch{}, err
	}
	job := launch{order: order{
		Program: program,
		Argv:    spec.Argv,
		Dir:     spec.Dir,
		Env:     spec.Env,
		Limits:  spec.Limits,
	}}
	if !spec.Isolation.active() {
		return job, spec.Isolation.check()
	}
	if job.Bwrap, err = spec.Isolation.bwrapOrder(spec.Dir, len(spec.ExtraFiles)); err != nil {
		return launch{}, err
	}
	if !spec.Isolation.Network {
		job.network = spec.Isolation.Join
	}
	return job, nil
}

// prepareInside starts the container of a program, unless it runs. The program itself is looked up
// in there.
func prepareInside(ctx context.Context, spec SpawnSpec) (launch, error) {
	c, r := spec.Isolation.Container, spec.room
	if r == nil {
		var err error
		if r, err = c.enter(ctx, spec.Isolation); err != nil {
			return launch{}, &setupError{Err: err}
		}
	}
	return launch{room: r, order: order{
		Argv:   spec.Argv,
		Env:    c.environment(spec.Env),
		Limits: spec.Limits,
		Inside: &insideOrder{
			User:   cmp.Or(spec.Isolation.User, c.cfg.User),
			Dir:    c.inside(spec.Dir),
			Keep:   c.cfg.KeepRunning,
			Home:   c.homes(spec.Isolation),
			Nice:   r.nice,
			Filter: r.unfiltered,
		},
	}}, nil
}

// run is one call of Spawn.
type run struct {
	spec   SpawnSpec
	job    launch
	result SpawnResult
	output *pipes.Copier
	usage  *proc.UsageWatch
	setup  *firstBytes // what bubblewrap prints on stderr when it fails
}

func (r *run) execute(ctx context.Context, stdout, stderr io.Writer) error {
	ends, err := r.openPipes(stdout, stderr)
	if err != nil {
		return err
	}
	r.result.StartMs = time.Now().UnixMilli()
	grown, pid, err := startTree(r.result.Containment, r.job)
	ends.closeChildEnds()
	if err != nil {
		r.output.Abandon()
		ends.feed.Stop(waitDelay)
		r.result.EndMs = time.Now().UnixMilli()
		return err
	}
	if r.spec.OnStart != nil {
		r.spec.OnStart(pid)
	}
	dirs := r.spec.Isolation.Writable
	if r.job.room != nil {
		dirs = append(slices.Clone(dirs), r.job.room.written()...)
	}
	below := proc.Supervised
	if r.result.Containment == ProcessGroup {
		below = proc.Descendants
	}
	r.usage = proc.WatchUsage(func() []int { return below(pid) }, r.spec.Limits.TreeMemoryBytes,
		r.spec.Limits.DiskBytes, dirs)
	r.watch(ctx, grown)
	r.usage.Close()
	writeErr := r.output.Finish()
	ends.feed.Stop(waitDelay)
	r.result.EndMs = time.Now().UnixMilli()
	return r.conclude(grown.outcome(), writeErr)
}

// watch waits until the tree is gone, and ends it if there is a reason to.
func (r *run) watch(ctx context.Context, t processTree) {
	var timeout <-chan time.Time
	if r.spec.Timeout > 0 {
		timer := time.NewTimer(r.spec.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-t.gone():
		return
	case <-ctx.Done():
		r.result.Cancelled = true
		r.terminate(t)
	case <-timeout:
		r.result.TimedOut = true
		r.terminate(t)
	case r.result.Exceeded = <-r.usage.Exceeded:
	case <-r.output.Exceeded:
	case <-r.output.Failed:
	}
	t.kill()
	timer := time.NewTimer(killDelay)
	defer timer.Stop()
	select {
	case <-t.gone():
	case <-timer.C:
		t.abandon()
	}
}

// terminate lets the program end by itself. There is no grace for a program whose
// output nobody reads.
func (r *run) terminate(t processTree) {
	if r.spec.Grace < 0 {
		return
	}
	t.terminate()
	timer := time.NewTimer(r.spec.Grace)
	defer timer.Stop()
	select {
	case <-t.gone():
	case <-timer.C:
	case <-r.output.Exceeded:
	case <-r.output.Failed:
	}
}

// conclude turns the outcome of the tree into the result.
func (r *run) conclude(end outcome, writeErr error) error {
	r.result.ExitCode, r.result.Signal = end.ExitCode, end.Signal
	r.result.LeftoversKilled, r.result.Unkillable = end.Leftovers, end.Unkillable
	r.result.Usage = end.Usage
	ended := r.result.Cancelled || r.result.TimedOut
	select {
	case <-r.output.Exceeded:
		r.result.OutputLimit = !ended
	default:
	}
	if writeErr != nil {
		return fmt.Errorf("deliver its output: %w", writeErr)
	}
	switch {
	case ended || r.result.OutputLimit:
	case end.NoProgram != "":
		return notStarted(end.NoProgram)
	case end.NoSandbox:
		return &setupError{Err: errors.New("bubblewrap failed: " + r.setup.line())}
	}
	return nil
}

// streams are the ends that the program gets; ours are with the copier and the feed.
type streams struct {
	feed  *pipes.Feed
	child []*os.File
}

func (p *streams) closeChildEnds() {
	for _, file := range p.child {
		_ = file.Close()
	}
}

// openPipes makes the descriptors of the program and starts copying.
func (r *run) openPipes(stdout, stderr io.Writer) (*streams, error) {
	stdin, feed, err := pipes.StartFeed(r.spec.Stdin)
	if err != nil {
		return nil, fmt.Errorf("open its stdin: %w", err)
	}
	p := &streams{feed: feed}
	if given, ok := r.spec.Stdin.(*os.File); !ok || given != stdin {
		p.child = append(p.child, stdin)
	}
	r.output = pipes.NewCopier(r.spec.MaxOutput, waitDelay)
	together := sameWriter(stdout, stderr)
	if r.job.Bwrap != nil {
		r.setup = &firstBytes{next: writerOrDiscard(stderr)}
		if stderr = r.setup; together {
			stdout = stderr
		}
	}
	out, err := r.outputPipe(p, stdout, &r.result.StdoutBytes)
	if err != nil {
		return nil, err
	}
	errs := out
	if !together {
		if errs, err = r.outputPipe(p, stderr, &r.result.StderrBytes); err != nil {
			return nil, err
		}
	}
	r.job.files = append([]*os.File{stdin, out, errs}, r.spec.ExtraFiles...)
	return p, nil
}

func (r *run) outputPipe(p *streams, w io.Writer, count *int64) (*os.File, error) {
	open := os.Pipe
	if r.spec.PrivateOutput {
		open = Sockets
	}
	ours, theirs, err := open()
	if err != nil {
		p.closeChildEnds()
		r.output.Abandon()
		return nil, fmt.Errorf("open its output: %w", err)
	}
	p.child = append(p.child, theirs)
	r.output.Copy(ours, writerOrDiscard(w), count)
	return theirs, nil
}

func writerOrDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// sameWriter reports whether stdout and stderr go to one place: then they share one
// pipe, which keeps their order and means that only one goroutine writes.
func sameWriter(a, b io.Writer) bool {
	if a == nil || b == nil {
		return false
	}
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// firstBytes passes everything on and remembers how it began.
type firstBytes struct {
	next io.Writer
	head []byte
}

func (f *firstBytes) Write(p []byte) (int, error) {
	if room := 1024 - len(f.head); room > 0 {
		f.head = append(f.head, p[:min(room, len(p))]...)
	}
	return f.next.Write(p)
}

// line returns the beginning in one printable line.
func (f *firstBytes) line() string {
	if f == nil || len(f.head) == 0 {
		return "it printed nothing"
	}
	return display.Line(string(f.head))
}
