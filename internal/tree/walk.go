package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"
)

// maxDepth bounds how deep directories may be nested. Deeper ones are made to break tools.
const maxDepth = 256

// Entry is one entry of a tree: a directory, a regular file or a symlink. Everything else is
// special.
type Entry struct {
	Path    string // slash-separated, relative to the tree
	Mode    fs.FileMode
	ModTime time.Time
	Size    int64  // of a regular file
	Target  string // of a symlink
	Sum     string // hex SHA-256 of a regular file's content, once it is known
	inode   inode  // zero for what has only one name
}

// inode names a file that has several names.
type inode struct{ device, number uint64 }

// IsDir reports whether the entry is a directory.
func (e Entry) IsDir() bool { return e.Mode.IsDir() }

// IsRegular reports whether the entry is a regular file.
func (e Entry) IsRegular() bool { return e.Mode.IsRegular() }

// IsLink reports whether the entry is a symlink.
func (e Entry) IsLink() bool { return e.Mode&fs.ModeSymlink != 0 }

// IsSpecial reports whether the entry is a pipe, a socket or a device.
func (e Entry) IsSpecial() bool { return !e.IsDir() && !e.IsRegular() && !e.IsLink() }

// IsProgram reports whether the entry is a file that somebody may execute.
func (e Entry) IsProgram() bool { return e.IsRegular() && e.Mode&0o111 != 0 }

// LimitError says that a tree was too large to read. Whoever wrote it is responsible.
type LimitError struct {
	What  string // "bytes", "files" or "depth"
	Limit int64
}

// Error says which bound was passed.
func (e *LimitError) Error() string {
	switch e.What {
	case "depth":
		return fmt.Sprintf("directories are nested deeper than %d", e.Limit)
	case "files":
		return fmt.Sprintf("there are more than %d files", e.Limit)
	default:
		return fmt.Sprintf("the files have more than %d bytes", e.Limit)
	}
}

// Walk says which part of a tree is read.
type Walk struct {
	// MaxFiles and MaxBytes bound it; zero: they do not.
	MaxFiles int
	MaxBytes int64
	// Skip leaves out a directory or file by its path; nil leaves out nothing.
	Skip func(path string) bool
	// Unlock makes readable what its owner cannot read. Without it, that is an error.
	Unlock bool
	// Ignore, if set, leaves out what cannot be read for such a reason.
	Ignore func(err error) bool
}

// List returns the entries of a directory: sorted by name, directories before what is in them.
func (w Walk) List(dir string) ([]Entry, error) { return w.list(dir, false) }

// Hash is List with the hash of every regular file.
func (w Walk) Hash(dir string) ([]Entry, error) { return w.list(dir, true) }

func (w Walk) list(dir string, hash bool) ([]Entry, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var entries []Entry
	err = w.Each(root, func(parent *os.Root, e Entry) (err error) {
		if hash && e.IsRegular() {
			if e.Sum, err = w.sum(parent, e); err != nil {
				return fmt.Errorf("%q: %w", e.Path, err)
			}
		}
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

// Each calls visit for every entry, directories before what is in them. dir is the directory of the
// entry and must not be kept.
func (w Walk) Each(root *os.Root, visit func(dir *os.Root, e Entry) error) error {
	all, err := list(root, ".")
	if err != nil {
		return fmt.Errorf("list \".\": %w", err)
	}
	defer all.dir.Close()
	return (&walking{Walk: w, visit: visit}).directory(all, "", 0)
}

// walking is a walk in progress.
type walking struct {
	Walk
	visit func(dir *os.Root, e Entry) error
	files int
	bytes int64
}

func (w *walking) directory(all listing, prefix string, depth int) error {
	if depth > maxDepth {
		return &LimitError{What: "depth", Limit: maxDepth}
	}
	for _, base := range all.names {
		if err := w.entry(all.dir, base, path.Join(prefix, base), depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walking) entry(dir *os.Root, base, name string, depth int) error {
	if w.Skip != nil && w.Skip(name) {
		return nil
	}
	info, err := dir.Lstat(base)
	switch {
	case err != nil && w.ignored(err):
		return nil
	case err != nil:
		return err
	}
	if w.files++; w.MaxFiles > 0 && w.files > w.MaxFiles {
		return &LimitError{What: "files", Limit: int64(w.MaxFiles)}
	}
	e := EntryOf(name, info)
	if w.bytes += e.Size; w.MaxBytes > 0 && w.bytes > w.MaxBytes {
		return &LimitError{What: "bytes", Limit: w.MaxBytes}
	}
	if e.IsLink() {
		if e.Target, err = dir.Readlink(base); err != nil {
			return err
		}
	}
	if err := w.visit(dir, e); err != nil || !e.IsDir() {
		return err
	}
	inner, err := open(w.Walk, dir, base, 0o500, func() (listing, error) { return list(dir, base) })
	switch {
	case err != nil && w.ignored(err):
		return nil
	case err != nil:
		return fmt.Errorf("open %q: %w", name, err)
	}
	defer inner.dir.Close()
	return w.directory(inner, name, depth+1)
}

func (w Walk) ignored(err error) bool { return w.Ignore != nil && w.Ignore(err) }

// EntryOf returns the entry of a file or directory.
func EntryOf(name string, info fs.FileInfo) Entry {
	e := Entry{Path: name, Mode: info.Mode(), ModTime: info.ModTime()}
	if e.IsRegular() {
		e.Size = info.Size()
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
			e.inode = inode{uint64(stat.Dev), stat.Ino} //nolint:unconvert // not the same type everywhere
		}
	}
	return e
}

// listing is an open directory with the names of what is in it.
type listing struct {
	dir   *os.Root
	names []string
}

// list opens a directory of a tree.
func list(parent *os.Root, base string) (listing, error) {
	dir, err := parent.OpenRoot(base)
	if err != nil {
		return listing{}, err
	}
	names, err := readNames(dir)
	if err != nil {
		dir.Close()
	}
	return listing{dir, names}, err
}

func readNames(dir *os.Root) ([]string, error) {
	opened, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	names, err := opened.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// open calls try. If that is not permitted and the walk unlocks, it gives the owner access to what
// is opened and calls try again.
func open[T any](w Walk, dir *os.Root, base string, access fs.FileMode, try func() (T, error)) (T, error) {
	opened, err := try()
	if !w.Unlock || !errors.Is(err, fs.ErrPermission) {
		return opened, err
	}
	info, err := dir.Lstat(base)
	if err == nil {
		err = dir.Chmod(base, info.Mode().Perm()|access)
	}
	if err != nil {
		return opened, err
	}
	return try()
}

// Open opens a regular file below a root for reading. A pipe in its place does not block, and is
// refused like everything else that is not a regular file.
func (w Walk) Open(dir *os.Root, name string) (*os.File, error) {
	file, err := open(w, dir, name, 0o400, func() (*os.File, error) {
		return dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	})
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, errors.Join(err, fmt.Errorf("%q is no longer a regular file", name))
	}
	return file, nil
}

func (w Walk) sum(dir *os.Root, e Entry) (string, error) {
	file, err := w.Open(dir, path.Base(e.Path))
	if err != nil {
		return "", err
	}
	defer file.Close()
	return pour(io.Discard, file, e.Size)
}

// Sum returns the hex SHA-256 and the size of a file.
func Sum(name string) (sum string, size int64, err error) {
	file, err := os.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", 0, err
	}
	sum, err = pour(io.Discard, file, info.Size())
	return sum, info.Size(), err
}

// buffers are lent to pour: a tree has many small files, and a buffer for each would keep the
// collector busy.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

var errGrew = errors.New("it changed while it was read")

// pour copies a file of a known size and returns the hash of its content.
func pour(to io.Writer, from io.Reader, size int64) (string, error) {
	buffer := buffers.Get().(*[64 << 10]byte) //nolint:forcetypeassert // nothing else is in the pool
	defer buffers.Put(buffer)
	sum := sha256.New()
	// without its methods, so that the buffer is used
	in := struct{ io.Reader }{io.LimitReader(from, size+1)}
	n, err := io.CopyBuffer(io.MultiWriter(to, sum), in, buffer[:])
	if err == nil && n > size {
		err = errGrew
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}
