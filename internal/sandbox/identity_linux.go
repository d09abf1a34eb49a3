package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// identityName is the name under which our binary holds a user namespace open; it appears in ps.
const identityName = "fit-sandbox-identity"

// The users of root's isolated programs: numbers that no account, container or service has on any
// common system. Each of our processes takes them from its own block.
const (
	firstIdentity  = 0x7000_0000
	identityBlock  = 1 << 12
	identityBlocks = 0xF000
)

// owner is the owner of a file.
type owner struct{ uid, gid uint32 }

// identity is a user without any rights, used by one sandbox at a time.
type identity struct {
	uid        int
	namespaces map[owner]*os.File // that map an owner of files to the identity
}

// identityPool lends identities. Sandboxes that run at the same time have different ones, so that
// the kernel counts their processes and keys separately.
type identityPool struct {
	mu    sync.Mutex
	first int
	made  int
	free  []*identity
}

var identities identityPool

func (p *identityPool) acquire() (*identity, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.free) - 1; last >= 0 {
		lent := p.free[last]
		p.free = p.free[:last]
		return lent, nil
	}
	if p.first == 0 {
		p.first = firstIdentity + rand.IntN(identityBlocks)*identityBlock
	}
	if p.made == identityBlock {
		return nil, errors.New("too many sandboxes at the same time")
	}
	p.made++
	return &identity{uid: p.first + p.made - 1, namespaces: map[owner]*os.File{}}, nil
}

func (p *identityPool) release(lent *identity) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, lent)
}

// errNoIdentity says that the kernel made no user namespace with the identity in it.
var errNoIdentity = errors.New("make a user namespace")

// assumeIdentity chooses the user of an isolated program if we are root. Root of a user namespace,
// such as the container of an ordinary user, may have no other users; its programs keep its user,
// which is an ordinary one on the machine. The machine's root never lends its own.
func (j *launch) assumeIdentity() error {
	if j.Bwrap == nil || os.Geteuid() != 0 {
		return nil
	}
	lent, err := identities.acquire()
	if err != nil {
		return err
	}
	if j.namespaces, err = lent.mapPaths(j.Bwrap); err != nil {
		identities.release(lent)
		j.Bwrap.UID, j.Bwrap.Namespaces, j.Bwrap.Mapped, j.namespaces = 0, 0, nil, nil
		if errors.Is(err, errNoIdentity) && !machineRoot() {
			return nil
		}
		return err
	}
	j.identity = lent
	return nil
}

// machineRoot reports whether our user 0 is the machine's, that is, whether we are outside all user
// namespaces.
func machineRoot() bool {
	mapping, err := os.ReadFile("/proc/self/uid_map")
	return err != nil || slices.Equal(strings.Fields(string(mapping)), []string{"0", "0", "4294967295"})
}

func (j *launch) dropIdentity() {
	if j.identity != nil {
		identities.release(j.identity)
	}
}

// mapPaths finds the namespaces that make the identity the owner of the paths.
func (i *identity) mapPaths(ord *bwrapOrder) ([]*os.File, error) {
	if len(ord.Mapped) == 0 {
		if _, err := i.namespace(owner{}); err != nil {
			return nil, err
		}
	}
	var used []*os.File
	slices.SortFunc(ord.Mapped, func(a, b mappedPath) int { return strings.Compare(a.Path, b.Path) })
	for n := range ord.Mapped {
		path := &ord.Mapped[n]
		var info unix.Stat_t
		if err := unix.Stat(path.Path, &info); err != nil {
			return nil, &os.PathError{Op: "stat", Path: path.Path, Err: err}
		}
		namespace, err := i.namespace(owner{uid: info.Uid, gid: info.Gid})
		if err != nil {
			return nil, err
		}
		if path.Namespace = slices.Index(used, namespace); path.Namespace < 0 {
			path.Namespace = len(used)
			used = append(used, namespace)
		}
	}
	ord.UID, ord.Namespaces = i.uid, len(used)
	return used, nil
}

// namespace returns a user namespace in which the owner of a file is the identity.
func (i *identity) namespace(of owner) (*os.File, error) {
	if made := i.namespaces[of]; made != nil {
		return made, nil
	}
	stdin, keep, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	holder := ownCommand(identityName, &syscall.SysProcAttr{
		Setpgid:     true,
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: int(of.uid), HostID: i.uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: int(of.gid), HostID: i.uid, Size: 1}},
	})
	holder.Stdin = stdin
	if err := holder.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errNoIdentity, err), keep.Close())
	}
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", holder.Process.Pid))
	_ = keep.Close()
	_ = holder.Wait() // its exit status does not matter
	if err != nil {
		return nil, fmt.Errorf("open a user namespace: %w", err)
	}
	i.namespaces[of] = namespace
	return namespace, nil
}

// holdIdentity lives until its standard input ends.
func holdIdentity([]string) int {
	var nothing [1]byte
	_, _ = os.Stdin.Read(nothing[:])
	return 0
}

// assume makes the paths of an order belong to its user, as seen from here on: in mounts of our
// own, without changing a file. It reports false where the file system of a writable path cannot do
// that; the program keeps our user then, without its privileges.
func (o *bwrapOrder) assume(firstNamespace int) (bool, error) {
	if len(o.Mapped) == 0 {
		return true, nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return false, fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return false, fmt.Errorf("make mounts private: %w", err)
	}
	// All are opened before any is mounted: a path below a mapped one cannot be mapped again.
	trees := make([]int, len(o.Mapped))
	for n, path := range o.Mapped {
		tree, err := mapTree(path.Path, firstNamespace+path.Namespace)
		if err != nil && path.Writable {
			return false, nil
		}
		trees[n] = tree
	}
	for n, path := range o.Mapped {
		if trees[n] < 0 { // readable to everybody, or not to the program
			continue
		}
		err := unix.MoveMount(trees[n], "", unix.AT_FDCWD, path.Path, unix.MOVE_MOUNT_F_EMPTY_PATH)
		_ = unix.Close(trees[n])
		if err != nil {
			return false, fmt.Errorf("mount %s: %w", path.Path, err)
		}
	}
	closeDevices()
	return true, nil
}

// mapTree returns a mount of a path that shows its owner as the user that the namespace says.
func mapTree(path string, namespace int) (int, error) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, err
	}
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace)})
	if err != nil {
		_ = unix.Close(tree)
		return -1, err
	}
	return tree, nil
}

// givePipes lets a user reopen our pipes, as programs that write to /dev/stderr do.
func givePipes(fds []uintptr, uid int) {
	for _, fd := range fds {
		var info unix.Stat_t
		if unix.Fstat(int(fd), &info) == nil && info.Mode&unix.S_IFMT == unix.S_IFIFO {
			_ = unix.Fchown(int(fd), uid, uid)
		}
	}
}
