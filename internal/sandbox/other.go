//go:build unix && !linux

package sandbox

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// RunMarker is the environment variable that marks the processes of one run. This
// system does not let us search for it.
const RunMarker = "EVAL_RUN_ID"

// rssUnit is the unit of the kernel's resident set size, in KiB.
const rssUnit = 1024

// With this, every binary that imports the package can run untrusted programs.
var _ = MaybeReaper()

// MaybeReaper does the work of UntrustedName, and never returns, in a process that was started
// under that name. On this system no process is started as a supervisor.
func MaybeReaper() bool {
	if calledUntrusted() {
		os.Exit(runUntrusted())
	}
	return false
}

// detectKernel reports that none of this exists here.
func detectKernel(c *Capabilities) {
	for _, capability := range []*Capability{
		&c.Bwrap, &c.BwrapNetwork, &c.PrivateNetwork, &c.PIDNamespace, &c.UserNamespaces, &c.SubReaper, &c.Cgroup,
	} {
		capability.Detail = "needs Linux; here programs are held by their process group only"
		capability.Fix = "run on Linux, for example in a container or a virtual machine"
	}
}

func (c *Capabilities) detectBwrap(context.Context) { detectKernel(c) }

// containment returns the only kind that exists here: a process that starts its own session escapes
// it.
func (l Local) containment(launch) (Containment, error) {
	if l.Containment != "" && l.Containment != ProcessGroup {
		return "", errors.New("containment " + string(l.Containment) +
			" needs Linux; here there are process groups only")
	}
	return ProcessGroup, nil
}

// DefaultLimits returns the default limits of a program. Here only those that are checked from
// outside are enforced.
func DefaultLimits(string) Limits { return Limits{DiskBytes: 16 << 30} }

func supervisedBy(int) []int { return nil }

func memoryExceeds([]int, uint64, uint64) bool { return false }

func unnamedFiles([]int) (memory, disk uint64, ok bool) { return 0, 0, true }

func filesInMemory([]int) uint64 { return 0 }

// TryEscape has nothing to try here.
func TryEscape(context.Context) Capability {
	return Capability{Name: "escape from bubblewrap", Detail: "needs Linux: there is no sandbox here"}
}

// bwrapOrder and identity exist on Linux only.
type (
	bwrapOrder struct{}
	identity   struct{}
)

func (Isolation) bwrapOrder(string, int) (*bwrapOrder, error) {
	return nil, &setupError{Err: errors.New("isolation " + IsolationBwrap + " needs Linux")}
}

func (*launch) assumeIdentity() error { return nil }
func (*launch) dropIdentity()         {}

func startTree(_ Containment, job launch) (processTree, int, error) { return startGroup(job) }

func descendants(int) []int { return nil }

// ProcessesOf finds nothing: this system does not let us look into processes. The spawner has
// killed the process group.
func ProcessesOf(string, []string, int) []int { return nil }

// killStrays kills what is left of the process group.
func killStrays(program int, _ []string, _ map[int]bool) (killed int, unkillable []int) {
	deadline := time.Now().Add(killDelay / 2)
	for unix.Kill(-program, unix.SIGKILL) == nil {
		killed = 1
		if time.Now().After(deadline) {
			return killed, []int{program}
		}
		time.Sleep(time.Millisecond)
	}
	return killed, nil
}
