package selfedit

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openBeneath opens a directory below another one, or that one by "."; the kernel guarantees that
// no link is followed on the way. Where the kernel is too old or a filter forbids the call, the way
// is walked step by step with the same guarantee.
func openBeneath(root *directory, rel string) (*directory, error) {
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(root.fd(), rel, &how)
		switch {
		case err == nil:
			return &directory{file: os.NewFile(uintptr(fd), rel)}, nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			return walkBeneath(root, rel)
		case errors.Is(err, unix.ELOOP):
			return nil, errLink
		default:
			return nil, &os.PathError{Op: "open", Path: rel, Err: err}
		}
	}
}

// exchange swaps two files of one directory atomically.
func (d *directory) exchange(a, b string) error {
	if d.portable {
		return unix.ENOTSUP
	}
	return unix.Renameat2(d.fd(), a, d.fd(), b, unix.RENAME_EXCHANGE)
}

// renameNew renames a file of the directory and fails if the new name is taken.
func (d *directory) renameNew(from, to string) error {
	if d.portable {
		return unix.ENOTSUP
	}
	return unix.Renameat2(d.fd(), from, d.fd(), to, unix.RENAME_NOREPLACE)
}

// createAnonymous makes a file that has no name yet, so that nothing is left of it if we are
// killed. It fails where the file system cannot do that.
func (d *directory) createAnonymous(mode uint32) (*os.File, error) {
	if d.portable {
		return nil, unix.ENOTSUP
	}
	fd, err := unix.Openat(d.fd(), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, mode)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "temporary file"), nil
}

// nameAnonymous gives a file made by createAnonymous its name.
func (d *directory) nameAnonymous(file *os.File, name string) error {
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", file.Fd()), d.fd(), name, unix.AT_SYMLINK_FOLLOW)
}
