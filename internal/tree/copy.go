package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/scratch"
)

// Over says what a copy does about what it finds at its destination. Directories are always merged,
// and keep their permissions.
type Over int

// The ways to copy over something.
const (
	Refuse  Over = iota // anything else in the way is an error
	Merge               // files and symlinks are replaced; a directory in their way is an error
	Replace             // whatever is in the way is removed
)

// Copy says how a tree is copied.
type Copy struct {
	Walk
	// To is where in the destination the tree goes; empty: its top.
	To   string
	Over Over
	// Follow copies the files that symlinks lead to, wherever they are, in place of the symlinks;
	// links to directories are left out. It is for trees that no agent has written.
	Follow bool
	// Accept reports whether an entry is copied. It may change where a symlink leads. Without it,
	// special files are an error, and everything else is copied.
	Accept func(e *Entry) (bool, error)
	// Copied is called for every entry that was copied, regular files with their hash.
	Copied func(e Entry) error
}

// Dir copies a directory into one that exists. On an error a part may have been copied.
func (c Copy) Dir(ctx context.Context, from, to string) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	dest, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dest.Close()
	return in(dest, path.Clean(filepath.ToSlash(c.To)), true, func(top *os.Root) (err error) {
		cp := copying{
			Copy:  c,
			from:  source,
			top:   top,
			first: map[inode]copied{},
		}
		defer func() { err = errors.Join(err, cp.leave(0)) }()
		if err := cp.enter(top, Entry{}, false, func() error { return nil }); err != nil {
			return err
		}
		return c.Each(source, func(dir *os.Root, e Entry) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := cp.visit(dir, e); err != nil {
				return fmt.Errorf("%q: %w", e.Path, err)
			}
			return nil
		})
	})
}

// copying is a copy in progress.
type copying struct {
	Copy
	from, top *os.Root
	// dirs are the directories from the top of the destination to the one that is being filled.
	dirs  []destination
	first map[inode]copied // files with several names, by the first that was copied
}

type copied struct{ path, sum string }

// destination is a directory that is being filled.
type destination struct {
	entry Entry // of the directory it is a copy of
	root  *os.Root
	file  *os.File // the same directory, for what a root cannot do
	made  bool     // by this copy, and its permissions and time come last
	lock  func() error
}

func (cp *copying) enter(root *os.Root, e Entry, made bool, lock func() error) error {
	file, err := root.Open(".")
	if err != nil {
		return err
	}
	cp.dirs = append(cp.dirs, destination{e, root, file, made, lock})
	return nil
}

// leave completes the directories below a depth.
func (cp *copying) leave(depth int) error {
	var errs []error
	for len(cp.dirs) > depth {
		last := len(cp.dirs) - 1
		d := cp.dirs[last]
		cp.dirs = cp.dirs[:last]
		if d.made {
			errs = append(errs, d.file.Chmod(d.entry.Mode.Perm()|0o500))
		}
		errs = append(errs, d.lock(), d.file.Close())
		if last == 0 {
			break // the top is the caller's
		}
		errs = append(errs, d.root.Close())
		if d.made {
			errs = append(errs, stamp(cp.dirs[last-1].file, path.Base(d.entry.Path), d.entry.ModTime))
		}
	}
	return errors.Join(errs...)
}

func (cp *copying) visit(dir *os.Root, e Entry) error {
	if err := cp.leave(1 + strings.Count(e.Path, "/")); err != nil {
		return err
	}
	if cp.Accept != nil {
		if ok, err := cp.Accept(&e); !ok || err != nil {
			if e.IsDir() && err == nil {
				err = errors.New("a directory cannot be left out of a copy; skip it")
			}
			return err
		}
	}
	err := cp.clear(e)
	if err != nil {
		return err
	}
	switch {
	case e.IsDir():
		err = cp.directory(e)
	case e.IsLink() && cp.Follow:
		return cp.followed(e)
	case e.IsLink():
		err = cp.link(e)
	case e.IsRegular():
		return cp.file(dir, e)
	default:
		err = errors.New("neither a regular file, a directory nor a symlink")
	}
	return cp.done(e, err)
}

func (cp *copying) done(e Entry, err error) error {
	if err != nil || cp.Copied == nil {
		return err
	}
	return cp.Copied(e)
}

func (cp *copying) into() destination { return cp.dirs[len(cp.dirs)-1] }

// clear removes what is in the way of an entry.
func (cp *copying) clear(e Entry) error {
	if cp.Over == Refuse {
		return nil
	}
	root, base := cp.into().root, path.Base(e.Path)
	before, err := root.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && before.IsDir() && e.IsDir():
		return nil
	case err != nil:
		return err
	case before.IsDir() && cp.Over == Merge:
		return errors.New("there is a directory of this name already")
	}
	return scratch.RemoveBelow(root, base)
}

func (cp *copying) directory(e Entry) error {
	root, base := cp.into().root, path.Base(e.Path)
	err := root.Mkdir(base, 0o700)
	made := err == nil
	if err != nil && (cp.Over == Refuse || !errors.Is(err, fs.ErrExist)) {
		return err
	}
	inner, lock, err := enter(root, base)
	if err != nil {
		return err
	}
	return cp.enter(inner, e, made, lock)
}

func (cp *copying) link(e Entry) error {
	into, base := cp.into(), path.Base(e.Path)
	if err := into.root.Symlink(e.Target, base); err != nil {
		return err
	}
	return stamp(into.file, base, e.ModTime)
}

// followed copies the file that a symlink leads to.
func (cp *copying) followed(e Entry) error {
	name := filepath.Join(cp.from.Name(), filepath.FromSlash(e.Path))
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	target := EntryOf(e.Path, info)
	target.Sum, err = write(cp.into(), path.Base(e.Path), file, target)
	return cp.done(target, err)
}

func (cp *copying) file(dir *os.Root, e Entry) error {
	base := path.Base(e.Path)
	if first, ok := cp.first[e.inode]; ok && e.inode != (inode{}) && cp.top.Link(first.path, e.Path) == nil {
		e.Sum = first.sum
		return cp.done(e, nil)
	}
	file, err := cp.Open(dir, base)
	if err != nil {
		return err
	}
	defer file.Close()
	if e.Sum, err = write(cp.into(), base, file, e); err == nil && e.inode != (inode{}) {
		cp.first[e.inode] = copied{e.Path, e.Sum}
	}
	return cp.done(e, err)
}

// write makes a file with the permissions and the time of an entry, and returns the hash of its
// content.
func write(to destination, base string, content *os.File, e Entry) (string, error) {
	file, err := to.root.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	sum, err := pour(file, content, e.Size)
	return sum, errors.Join(err, file.Chmod(e.Mode.Perm()|0o400), file.Close(), stamp(to.file, base, e.ModTime))
}

// stamp sets the time of something in a directory. No symlink is followed.
func stamp(dir *os.File, base string, t time.Time) error {
	at := unix.NsecToTimespec(t.UnixNano())
	return unix.UtimesNanoAt(int(dir.Fd()), base, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}

// Put copies one file or symlink of a tree to a path below another root, in place of whatever is
// there. It returns the hash of a file.
func Put(from *os.Root, e Entry, to *os.Root, name string) (sum string, err error) {
	err = in(to, path.Dir(name), true, func(dir *os.Root) error {
		if err := scratch.RemoveBelow(dir, path.Base(name)); err != nil {
			return err
		}
		handle, err := dir.Open(".")
		if err != nil {
			return err
		}
		defer handle.Close()
		base, into := path.Base(name), destination{root: dir, file: handle}
		if e.IsLink() {
			return errors.Join(dir.Symlink(e.Target, base), stamp(handle, base, e.ModTime))
		}
		file, err := Walk{}.Open(from, e.Path)
		if err != nil {
			return err
		}
		defer file.Close()
		sum, err = write(into, base, file, e)
		return err
	})
	return sum, err
}

// Write makes a file below a root, in place of whatever is there.
func Write(root *os.Root, name string, content []byte, mode fs.FileMode) error {
	return in(root, path.Dir(name), true, func(dir *os.Root) error {
		if err := scratch.RemoveBelow(dir, path.Base(name)); err != nil {
			return err
		}
		file, err := dir.OpenFile(path.Base(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = file.Write(content)
		return errors.Join(err, file.Chmod(mode.Perm()), file.Close())
	})
}

// Remove removes a file or directory below a root, if it is there.
func Remove(root *os.Root, name string) error {
	return in(root, path.Dir(name), true, func(dir *os.Root) error { return scratch.RemoveBelow(dir, path.Base(name)) })
}

// in opens a directory below a root and calls do with it. Directories on the way are made, and
// anything else in the way is removed, or is an error; no symlink is followed. A directory that is
// not writable becomes so for the time of the call.
func in(root *os.Root, dir string, clear bool, do func(dir *os.Root) error) (err error) {
	if dir == "." {
		return do(root)
	}
	first, rest, more := strings.Cut(dir, "/")
	if info, err := root.Lstat(first); err == nil && !info.IsDir() {
		if !clear {
			return fmt.Errorf("%q is in the way of a directory", first)
		}
		if err := root.Remove(first); err != nil {
			return err
		}
	}
	if err := root.Mkdir(first, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	inner, lock, err := enter(root, first)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock(), inner.Close()) }()
	if !more {
		rest = "."
	}
	return in(inner, rest, clear, do)
}

// enter opens a directory for writing. lock makes it as closed as it was.
func enter(parent *os.Root, base string) (dir *os.Root, lock func() error, err error) {
	lock = func() error { return nil }
	info, err := parent.Lstat(base)
	if err != nil {
		return nil, nil, err
	}
	if perm := info.Mode().Perm(); perm&0o700 != 0o700 {
		if err := parent.Chmod(base, perm|0o700); err != nil {
			return nil, nil, err
		}
		lock = func() error { return parent.Chmod(base, perm) }
	}
	dir, err = parent.OpenRoot(base)
	return dir, lock, err
}
