//go:build unix && !linux

package sandbox

import (
	"context"
	"errors"
)

// rssUnit is the unit of the kernel's resident set size, in KiB.
const rssUnit = 1024

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
