package sandbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/sandbox/untrusted"
)

// The kinds of isolation.
const (
	IsolationNone   = "none"
	IsolationBwrap  = "bwrap"
	IsolationPodman = "podman"
	IsolationDocker = "docker"
)

// Isolates reports whether programs with a kind of isolation see only what they are shown.
func Isolates(kind string) bool { return kind == IsolationBwrap || InContainer(kind) }

// InContainer reports whether programs with a kind of isolation run in a container.
func InContainer(kind string) bool { return kind == IsolationPodman || kind == IsolationDocker }

// The networks that an agent can have, as tasks, flags and records name them.
const (
	NetworkHost  = "host"  // that of the machine
	NetworkModel = "model" // a loopback on which its model, its team's tools and its task's services answer
	NetworkNone  = "none"  // a loopback on which nobody answers
	// NetworkRegistries is NetworkModel with access to the package registries of a task.
	NetworkRegistries = "registries"
)

// Isolation decides what a program sees of the machine. Its zero value isolates
// nothing: the program sees the files and the network of the user who runs it.
type Isolation struct {
	// Kind is IsolationNone (also the empty string), IsolationBwrap, IsolationPodman or
	// IsolationDocker.
	Kind string
	// ReadOnly, Writable and Hidden are absolute paths. Beside them the program sees
	// the system's directories read-only, and an empty /tmp and home. Where paths
	// contain each other the longer one decides.
	ReadOnly []string
	Writable []string
	Hidden   []string
	// Untrusted, if set, is what programs see that this one starts by fit-untrusted: these paths in
	// place of ReadOnly and Writable. What lies in Writable is hidden only with bubblewrap.
	Untrusted *UntrustedView
	// Shown are directories of the machine by the paths inside that show them, writable, beside
	// their own. Only bubblewrap can do that.
	Shown map[string]string
	// Network lets the program use the network, loopback included. Without it the program has only
	// its own loopback.
	Network bool
	// Join is the network of a program without Network, in place of its own loopback.
	Join *PrivateNetwork
	// Container is where the program runs, with IsolationPodman and IsolationDocker. It decides
	// about the network, and shows only ReadOnly and Writable of the machine.
	Container *Container
	// User is the program's in a container; empty: the container's.
	User string
	// ImageHome gives a program in a container the home directory that the image has for its user,
	// in place of that of its environment, which it still owns.
	ImageHome bool
	// LeftOpen is what this isolation leaves open on this machine, for the record; see
	// Capabilities.LeftOpen.
	LeftOpen string
}

// UntrustedView holds absolute paths, as an Isolation does. What that hides is hidden here, too.
type UntrustedView struct {
	ReadOnly []string
	Writable []string
	Hidden   []string
	// Env are variables of which the program has values of its own, such as HOME.
	Env Environment
}

// untrustedFiles returns the variable that names the files of programs started by fit-untrusted.
func (i Isolation) untrustedFiles() (string, error) {
	files := untrusted.Files{Env: i.Untrusted.Env}
	if i.Isolates() {
		i.addUntrustedFiles(&files)
	}
	text, err := json.Marshal(files)
	return untrusted.View + "=" + string(text), err
}

func (i Isolation) addUntrustedFiles(files *untrusted.Files) {
	files.Work = slices.Clone(i.Untrusted.Writable)
	files.Hidden = []string{"/tmp", "/var/tmp"}
	files.Shown = slices.Concat(i.Untrusted.ReadOnly, i.Untrusted.Writable)
	if i.Container != nil && i.Container.cfg.Workdir != "" {
		files.Shown = append(files.Shown, i.Container.cfg.Workdir)
		files.Work = append(files.Work, i.Container.cfg.Workdir)
	}
	for _, path := range slices.Concat(i.ReadOnly, i.Writable, i.Hidden, i.Untrusted.Hidden) {
		if slices.Contains(files.Shown, path) {
			continue
		}
		files.Hidden = append(files.Hidden, filepath.Clean(path))
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			files.Hidden = append(files.Hidden, resolved)
		}
	}
}

// String returns the kind of isolation and what it leaves open.
func (i Isolation) String() string { return WithLeftOpen(cmp.Or(i.Kind, IsolationNone), i.LeftOpen) }

// setupError says that a program could not be run because its sandbox or its supervisor could not
// be made. The program did not run: the machine failed. It is an ErrBroken.
type setupError struct{ Err error }

func (e *setupError) Error() string        { return "make its sandbox: " + e.Err.Error() }
func (e *setupError) Unwrap() error        { return e.Err }
func (e *setupError) Is(target error) bool { return target == ErrBroken }

func (i Isolation) active() bool { return i.Kind == IsolationBwrap }

// Isolates reports whether the program sees only what it is shown.
func (i Isolation) Isolates() bool { return Isolates(i.Kind) }

func (i Isolation) check() error {
	switch i.Kind {
	case "", IsolationNone, IsolationBwrap:
		if i.Join != nil && !i.active() {
			return fmt.Errorf("a private network needs isolation %s", IsolationBwrap)
		}
		return nil
	case IsolationPodman, IsolationDocker:
		if i.Container == nil {
			return fmt.Errorf("isolation %s without a container", i.Kind)
		}
		return nil
	}
	return fmt.Errorf("unknown isolation %q: use %s, %s, %s or %s", i.Kind, IsolationNone, IsolationBwrap,
		IsolationPodman, IsolationDocker)
}
