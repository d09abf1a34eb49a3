package selfedit

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// directory is an open directory. Everything in it is reached through the handle and by a single
// name, so later changes of its path do not matter.
type directory struct {
	file *os.File
	// portable avoids the calls that only Linux has, so that the fallback can be tested there.
	portable bool
}

func (d *directory) fd() int { return int(d.file.Fd()) }

// walkBeneath opens a directory below root one name at a time, following no link.
func walkBeneath(root *directory, rel string) (*directory, error) {
	current := root
	for name := range strings.SplitSeq(rel, "/") {
		next, err := current.openDirectory(name)
		if current != root {
			current.file.Close()
		}
		if err != nil {
			return nil, err
		}
		current = next
	}
	return current, nil
}

// openDirectory opens a subdirectory that is not a link.
func (d *directory) openDirectory(name string) (*directory, error) {
	fd, err := unix.Openat(d.fd(), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		return &directory{file: os.NewFile(uintptr(fd), name)}, nil
	}
	if stat, statErr := d.stat(name); statErr == nil && isLink(stat) {
		return nil, errLink
	}
	return nil, &os.PathError{Op: "open", Path: name, Err: err}
}

// stat looks at a name without following it.
func (d *directory) stat(name string) (unix.Stat_t, error) {
	var stat unix.Stat_t
	err := unix.Fstatat(d.fd(), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	return stat, err
}

// open opens a file for reading that is not a link; it does not block on a pipe.
func (d *directory) open(name string) (*os.File, error) {
	fd, err := unix.Openat(d.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, errLink
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// create makes a file that must not be there yet.
func (d *directory) create(name string, mode uint32) (*os.File, error) {
	fd, err := unix.Openat(d.fd(), name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (d *directory) link(from, to string) error   { return unix.Linkat(d.fd(), from, d.fd(), to, 0) }
func (d *directory) rename(from, to string) error { return unix.Renameat(d.fd(), from, d.fd(), to) }
func (d *directory) remove(name string) error     { return unix.Unlinkat(d.fd(), name, 0) }

// writable reports whether we may write to a file, as the permissions say.
func (d *directory) writable(name string) error {
	return unix.Faccessat(d.fd(), name, unix.W_OK, unix.AT_EACCESS)
}

// sync syncs the directory's entries. Some file systems cannot do that for directories; that is not
// a failure of ours.
func (d *directory) sync() error {
	err := d.file.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

// same reports whether two handles are one directory.
func (d *directory) same(other *directory) bool {
	a, errA := d.file.Stat()
	b, errB := other.file.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// spells reports whether the directory lists a name exactly as given. On file systems that ignore
// letter case or normalisation a name can be found that is not listed.
func (d *directory) spells(name string) (bool, error) {
	fd, err := unix.Openat(d.fd(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	listing := os.NewFile(uintptr(fd), ".")
	defer listing.Close()
	names, err := listing.Readdirnames(-1)
	return slices.Contains(names, name), err
}

func isLink(stat unix.Stat_t) bool      { return stat.Mode&unix.S_IFMT == unix.S_IFLNK }
func isDirectory(stat unix.Stat_t) bool { return stat.Mode&unix.S_IFMT == unix.S_IFDIR }
func isRegular(stat unix.Stat_t) bool   { return stat.Mode&unix.S_IFMT == unix.S_IFREG }
