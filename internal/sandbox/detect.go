package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Capability is one thing that a machine offers or lacks.
type Capability struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
	// Fix is the command that installs what is missing, or a sentence if there is none.
	Fix string `json:"fix,omitempty"`
}

// Capabilities is the result of Detect.
type Capabilities struct {
	// Containment is the mechanism that Local uses here.
	Containment Containment `json:"containment"`
	// Bwrap says whether programs can be isolated; BwrapNetwork, whether they can also be cut off
	// from the network.
	Bwrap Capability `json:"bwrap"`
	// Unknown is set if it could not be found out whether programs can be isolated: the machine
	// failed (ErrUntested), or the context ended. It is no reason to do without.
	Unknown error `json:"-"`
	// LeftOpen is what a program in bubblewrap can do here that it should not be able to; empty if
	// no attempt succeeded.
	LeftOpen     string     `json:"leftOpen,omitempty"`
	BwrapNetwork Capability `json:"bwrapNetwork"`
	// PrivateNetwork says whether isolated programs can share a private network.
	PrivateNetwork Capability `json:"privateNetwork"`
	PIDNamespace   Capability `json:"pidNamespace"`
	UserNamespaces Capability `json:"userNamespaces"`
	SubReaper      Capability `json:"subReaper"`
	Cgroup         Capability `json:"cgroup"`
}

// List returns the capabilities in the order in which they are shown.
func (c Capabilities) List() []Capability {
	return []Capability{
		c.PIDNamespace, c.SubReaper, c.UserNamespaces, c.Bwrap, c.BwrapNetwork, c.PrivateNetwork, c.Cgroup,
	}
}

// Detect finds out what works on this machine by trying it.
func Detect(ctx context.Context) Capabilities {
	c := Capabilities{
		Bwrap:          Capability{Name: "bubblewrap"},
		BwrapNetwork:   Capability{Name: "bubblewrap without network"},
		PrivateNetwork: Capability{Name: "private network"},
		PIDNamespace:   Capability{Name: "PID namespace"},
		UserNamespaces: Capability{Name: "user namespaces"},
		SubReaper:      Capability{Name: "sub-reaper"},
		Cgroup:         Capability{Name: "cgroup"},
	}
	c.Containment, _ = Local{}.containment(launch{})
	detectKernel(&c)
	if runtime.GOOS != "linux" {
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, 2*tryTimeout)
	defer cancel()
	if c.detectBwrap(ctx); !c.Bwrap.OK {
		c.PrivateNetwork.Detail, c.PrivateNetwork.Fix = c.Bwrap.Detail, c.Bwrap.Fix
		return c
	}
	works := PrivateNetworkWorks(ctx)
	if c.PrivateNetwork.decide(works, fixFor(works, networkFix)); c.PrivateNetwork.OK {
		c.PrivateNetwork.Detail += ": agents can be given --network model"
	}
	return c
}

const networkFix = "run where network namespaces may be made, for example outside of a container"

// DetectBwrap finds out whether programs can be isolated here, with and without the network, and
// what that leaves open: Bwrap, Unknown, BwrapNetwork and LeftOpen. It takes a fraction of the time
// of Detect.
func DetectBwrap(ctx context.Context) Capabilities {
	var c Capabilities
	c.detectBwrap(ctx)
	c.Unknown = cmp.Or(ctx.Err(), c.Unknown)
	return c
}

// keepsRoot is what a sandbox leaves open if its programs keep the user id of our root.
const keepsRoot = "programs are root, without its privileges"

// WithLeftOpen adds to the name of an isolation what it leaves open on a machine.
func WithLeftOpen(kind, open string) string {
	switch open {
	case "":
		return kind
	case keepsRoot:
		return kind + " (as root)"
	default:
		return kind + " (left open: " + open + ")"
	}
}

// ErrBroken is wrapped by errors of Spawn that say that this machine failed: the sandbox or the
// process of a program could not be made, and neither the program nor its arguments caused it.
var ErrBroken = errors.New("the sandbox does not start")

// outOf are the errors of a machine that has run out of something or is broken. No file that a
// program leaves behind causes one of them.
var outOf = []error{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.EROFS,
}

// MachineFailed reports whether an error of the system is the machine's, and not that of whoever
// asked for something.
func MachineFailed(err error) bool {
	call, ok := errors.AsType[*fs.PathError](err)
	noProcess := ok && call.Op == "fork/exec" && errors.Is(err, syscall.EAGAIN)
	return noProcess || slices.ContainsFunc(outOf, func(known error) bool { return errors.Is(err, known) })
}

// blamed returns why a program was not started, as an ErrBroken if this machine is to blame. The
// limits of a container are those of the programs in it.
func blamed(err error, inside bool) error {
	var setup *setupError
	switch {
	case err == nil:
	case errors.Is(err, syscall.E2BIG):
		if errors.As(err, &setup) {
			return setup.Err
		}
	case !inside && !errors.Is(err, ErrBroken) && (MachineFailed(err) || errors.Is(err, syscall.EAGAIN)):
		return &setupError{Err: err}
	}
	return err
}

// notStarted returns the error of a process that could not become the program, which reported it as
// text.
func notStarted(text string) error {
	for _, known := range append([]error{syscall.EAGAIN}, outOf...) {
		if strings.HasSuffix(text, ": "+known.Error()) {
			return fmt.Errorf("%s%w", strings.TrimSuffix(text, known.Error()), known)
		}
	}
	return errors.New(text)
}

// decide records that something works or, if err is not nil, why not and how to fix it.
func (c *Capability) decide(err error, fix string) {
	if err != nil {
		c.Detail, c.Fix = err.Error(), fix
		return
	}
	c.OK, c.Detail = true, "works"
}

// tryTimeout is how long a sandbox may take to start. On a busy machine it takes seconds, and
// giving up too early would run agents without isolation.
const tryTimeout = 30 * time.Second

// tryIsolation runs a program that does nothing in an isolation.
func tryIsolation(ctx context.Context, isolation Isolation) error {
	return tryProgram(ctx, isolation, "/", nil, "true")
}

func tryProgram(ctx context.Context, isolation Isolation, dir string, out io.Writer, argv ...string) error {
	result, err := Local{}.Spawn(ctx, SpawnSpec{
		Argv:      argv,
		Dir:       dir,
		Isolation: isolation,
		Env:       []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		Timeout:   tryTimeout,
		Grace:     -1, // it has nothing to save
	}, out, nil)
	switch {
	case err != nil:
		return err
	case result.TimedOut:
		return fmt.Errorf("bubblewrap hangs: it did not start a program within %s: %w", tryTimeout,
			context.DeadlineExceeded)
	case result.Signal != "":
		return &killedError{signal: result.Signal}
	case result.ExitCode != 0:
		return fmt.Errorf("bubblewrap fails with exit code %d", result.ExitCode)
	}
	return nil
}

// installCommand returns how to install a package on this system.
func installCommand(name string) string {
	release, _ := os.ReadFile("/etc/os-release") // without it there is a sentence
	var systems []string
	for line := range strings.Lines(string(release)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key == "ID" || key == "ID_LIKE" {
			systems = append(systems, strings.Fields(strings.Trim(value, `"'`))...)
		}
	}
	return installCommandFor(systems, name, os.Geteuid() == 0)
}

func installCommandFor(systems []string, name string, root bool) string {
	prefix := "sudo "
	if root {
		prefix = ""
	}
	for _, system := range systems {
		switch system {
		case "debian", "ubuntu":
			return prefix + "apt-get install -y " + name
		case "fedora", "rhel", "centos":
			return prefix + "dnf install -y " + name
		case "arch":
			return prefix + "pacman -S --noconfirm " + name
		case "alpine":
			return prefix + "apk add " + name
		case "suse", "opensuse":
			return prefix + "zypper install -y " + name
		}
	}
	return "install " + name + " with the system's package manager"
}
