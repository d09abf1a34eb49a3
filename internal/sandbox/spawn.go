package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The defaults of a zero SpawnSpec.
const (
	defaultGrace     = 10 * time.Second
	defaultMaxOutput = 256 << 20
)

// ProcessSpawner runs one program to its end; Local does it on this machine.
type ProcessSpawner interface {
	// Spawn starts the program, copies what it prints to the two writers as it comes,
	// and returns when the program and everything it started are gone. The error is for failures
	// that the program did not cause: it could not be started, or a writer failed. Timeouts,
	// cancellation and exit codes are in the result.
	Spawn(ctx context.Context, s SpawnSpec, stdout, stderr io.Writer) (SpawnResult, error)
}

// SpawnSpec says what to run and within which bounds.
type SpawnSpec struct {
	// Argv is the program and its arguments. A name without a slash is looked up in
	// the PATH of Env, not in ours.
	Argv []string
	// Dir is the working directory; empty means ours.
	Dir string
	// Env is the complete environment as NAME=value; nothing is inherited.
	Env []string
	// Stdin is what the program reads; nil is /dev/null. An *os.File is handed over
	// as it is. Any other reader is copied, and closed when the program ends if it is
	// an io.Closer, so that its writer learns about the end.
	Stdin io.Reader
	// ExtraFiles become the descriptors 3, 4, … of the program.
	ExtraFiles []*os.File
	// Timeout ends the run this long after its start; zero is no timeout.
	Timeout time.Duration
	// Grace is how long the program may take between SIGTERM and SIGKILL. Zero means
	// defaultGrace, a negative value means no grace at all.
	Grace time.Duration
	// MaxOutput bounds the bytes of stdout and stderr together; zero means
	// defaultMaxOutput, a negative value means no bound. The program is killed when it
	// prints more; everything up to the bound is delivered.
	MaxOutput int64
	// PrivateOutput makes sockets of stdout and stderr. Unlike pipes they cannot be
	// opened again through /proc, so only those child programs can write to them that inherit them.
	// Opening /dev/stdout fails then.
	PrivateOutput bool
	// Isolation decides what the program sees of the machine.
	Isolation Isolation
	// Limits are resource limits of each process; zero values are inherited.
	Limits Limits
	// OnStart, if set, is called once with the process id as we see it, when the
	// program runs. It must not block.
	OnStart func(pid int)

	room *room // a container that is being made, in place of the isolation's own
}

// Limits bounds what the program may use. Most are the kernel's rlimits, which hold for each
// process and not for the sum; those are inherited where they are zero. TreeMemoryBytes and
// DiskBytes hold for all processes together: we check them twice a second, and kill a tree that
// exceeds them.
type Limits struct {
	// MemoryBytes bounds private writable memory (RLIMIT_DATA). Address space is left
	// alone: language runtimes reserve far more of it than they use.
	MemoryBytes uint64
	// Processes bounds the processes and threads of the user (RLIMIT_NPROC), in a sandbox those of
	// the sandbox. The kernel does not apply it to root.
	Processes uint64
	// FileBytes bounds the size of a file that is written (RLIMIT_FSIZE).
	FileBytes uint64
	// CPUSeconds bounds the CPU time (RLIMIT_CPU).
	CPUSeconds uint64
	// OpenFiles bounds the open descriptors (RLIMIT_NOFILE).
	OpenFiles uint64
	// TreeMemoryBytes bounds the memory of all processes together; zero is no bound.
	TreeMemoryBytes uint64
	// DiskBytes bounds by how much the files in the isolation's writable paths may grow; zero is no
	// bound.
	DiskBytes uint64
}

// perProcess returns the limits that the kernel enforces.
func (l Limits) perProcess() Limits {
	l.TreeMemoryBytes, l.DiskBytes = 0, 0
	return l
}

// Containment names the mechanism that held the process tree together.
type Containment string

// The mechanisms, strongest first. The package comment explains them.
const (
	PIDNamespace Containment = "pid-namespace"
	InsideEngine Containment = "container"
	SubReaper    Containment = "sub-reaper"
	ProcessGroup Containment = "process-group"
)

// SpawnResult is how a run ended.
type SpawnResult struct {
	// ExitCode is the program's exit status, or -1 when a signal ended it.
	ExitCode int `json:"exitCode"`
	// Signal is the name of the signal that ended it, such as SIGKILL.
	Signal string `json:"signal,omitempty"`
	// StartMs and EndMs are epoch milliseconds; the end is when the tree was gone.
	StartMs int64 `json:"startMs"`
	EndMs   int64 `json:"endMs"`
	// At most one of these is set: the reason why we ended the program.
	TimedOut    bool `json:"timedOut,omitempty"`
	OutputLimit bool `json:"outputLimit,omitempty"`
	Cancelled   bool `json:"cancelled,omitempty"`
	// Exceeded names the tree-wide limit that was exceeded, such as ExceededMemory; the program
	// was killed for it.
	Exceeded string `json:"exceeded,omitempty"`
	// LeftoversKilled counts processes that were alive after the program itself had
	// ended and had to be killed.
	LeftoversKilled int `json:"leftoversKilled,omitempty"`
	// Unkillable lists process ids that could not be killed. If there are any, distrust everything
	// that comes after.
	Unkillable []int `json:"unkillable,omitempty"`
	// StdoutBytes and StderrBytes count what was delivered.
	StdoutBytes int64 `json:"stdoutBytes"`
	StderrBytes int64 `json:"stderrBytes"`
	// Containment is the mechanism that held the tree.
	Containment Containment `json:"containment"`
	// Usage is what the tree used, according to the kernel's accounting.
	Usage Usage `json:"usage"`
}

// Usage is the CPU time of the tree and the memory of its largest process.
type Usage struct {
	UserMs    int64 `json:"userMs"`
	SystemMs  int64 `json:"systemMs"`
	MaxRSSKiB int64 `json:"maxRssKiB"`
}

// withDefaults returns the spec with its zero values filled in, or an error that
// says what is wrong with it.
func (s SpawnSpec) withDefaults() (SpawnSpec, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return s, errors.New("no program to run: argv is empty")
	}
	for _, arg := range s.Argv {
		if strings.ContainsRune(arg, 0) {
			return s, fmt.Errorf("run %s: an argument contains a zero byte", s.Argv[0])
		}
	}
	for _, variable := range s.Env {
		name, _, found := strings.Cut(variable, "=")
		if !found || name == "" || strings.ContainsRune(variable, 0) {
			return s, fmt.Errorf("run %s: %q is not a NAME=value environment variable", s.Argv[0], name)
		}
	}
	s.Grace = cmp.Or(s.Grace, defaultGrace)
	s.MaxOutput = cmp.Or(s.MaxOutput, defaultMaxOutput)
	return s, s.checkDir()
}

func (s SpawnSpec) checkDir() error {
	if s.Dir == "" || s.Isolation.Container != nil { // it may be one of the container's own
		return nil
	}
	info, err := os.Stat(s.Dir)
	if err != nil {
		return fmt.Errorf("run %s: working directory: %w", s.Argv[0], err)
	}
	if !info.IsDir() {
		return fmt.Errorf("run %s: working directory %s is not a directory", s.Argv[0], s.Dir)
	}
	return nil
}

// lookProgram finds the file to execute the way a shell in the child's environment
// would: by the child's PATH.
func lookProgram(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, entry := range filepath.SplitList(lookup(env, "PATH")) {
		// An empty or relative entry would run a program of the workspace that has a common name;
		// the standard library refuses it too.
		if !filepath.IsAbs(entry) {
			continue
		}
		candidate := filepath.Join(entry, name)
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return candidate, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// lookup returns the value of a variable in a NAME=value list; the last one counts.
func lookup(env []string, name string) string {
	value := ""
	for _, variable := range env {
		if n, v, ok := strings.Cut(variable, "="); ok && n == name {
			value = v
		}
	}
	return value
}
