package sandbox

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/bwrap"
)

// detectKernel finds out what the kernel offers.
func detectKernel(c *Capabilities) {
	c.detectUserNamespaces()
	c.PIDNamespace.decide(namespaceWorks(), c.UserNamespaces.Fix)
	c.SubReaper.decide(nil, "") // every kernel that Go supports has it
	c.detectCgroup()
}

// detectBwrap starts a program in bubblewrap that tries to get out. It has no network, so that one
// start answers both questions; where that fails, the program is tried with the network.
func (c *Capabilities) detectBwrap(ctx context.Context) {
	if _, err := bwrap.Find(); err != nil {
		c.Bwrap.decide(err, installCommand("bubblewrap"))
		c.BwrapNetwork.decide(err, c.Bwrap.Fix)
		return
	}
	found, closed := escapeOrStart(ctx, Isolation{Kind: IsolationBwrap})
	err := closed
	if closed != nil && !errors.Is(closed, ErrUntested) {
		found, err = escapeOrStart(ctx, Isolation{Kind: IsolationBwrap, Network: true})
	}
	fix := networkFix
	if err != nil {
		c.detectUserNamespaces()
		closed, fix = err, cmp.Or(c.UserNamespaces.Fix, "make this work: bwrap --ro-bind / / true")
	}
	if errors.Is(err, ErrUntested) {
		c.Unknown = err
	}
	c.LeftOpen = found
	c.Bwrap.decide(err, fixFor(err, fix))
	c.BwrapNetwork.decide(closed, fixFor(closed, fix))
}

// escapeOrStart tries to escape from an isolation, or only to start a program in it where there is
// no room for more.
func escapeOrStart(ctx context.Context, isolation Isolation) (found string, err error) {
	err = tryAgain(ctx, func() (err error) {
		found, err = tryEscape(ctx, isolation)
		if errors.Is(err, errNoRoom) && !isAccident(err) {
			err = tryIsolation(ctx, isolation)
		}
		return err
	})
	return found, err
}

// detectUserNamespaces starts a program in a new user namespace. Root needs none. There is no such
// program, because every machine lacks this one: it is looked for when the namespace is there.
func (c *Capabilities) detectUserNamespaces() {
	cmd := exec.Command("/proc/self/no-such-program")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
	}
	err := cmd.Start()
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
		if sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1" && os.Geteuid() != 0 {
			err = errors.New("AppArmor takes the privileges out of user namespaces")
		}
	}
	c.UserNamespaces.decide(err, userNamespaceFix())
}

// userNamespaceFix names the setting that is in the way.
func userNamespaceFix() string {
	switch {
	case sysctl("kernel/unprivileged_userns_clone") == "0":
		return "sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case sysctl("user/max_user_namespaces") == "0":
		return "sudo sysctl -w user.max_user_namespaces=15000"
	case sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	default:
		return "run as root, or outside of a container that forbids namespaces"
	}
}

func sysctl(name string) string {
	value, _ := os.ReadFile("/proc/sys/" + name) // empty where there is none
	return strings.TrimSpace(string(value))
}

// detectCgroup reports whether limits for a whole tree could be set. Nothing depends on
// it: limits are set per process.
func (c *Capabilities) detectCgroup() {
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(root + "/cgroup.controllers"); err != nil {
		c.Cgroup.Detail = "no unified cgroup hierarchy; limits hold per process"
		return
	}
	if unix.Access(root, unix.W_OK) != nil {
		c.Cgroup.Detail = "not writable; limits hold per process"
		return
	}
	c.Cgroup.OK, c.Cgroup.Detail = true, "unified hierarchy, writable"
}
