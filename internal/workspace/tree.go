package workspace

import (
	"cmp"
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

	"github.com/fit-eval/fit/internal/display"
)

// maxDepth bounds how deep directories may be nested. Deeper ones are made to break tools.
const maxDepth = 256

// node is one entry of a tree: a directory, a regular file or a link. Everything else is special.
type node struct {
	Path   string
	Mode   fs.FileMode
	Size   int64
	Hash   string // hex SHA-256 of a regular file's content, once it is known
	Target string // of a link
}

func (n node) isLink() bool    { return n.Mode&fs.ModeSymlink != 0 }
func (n node) isSpecial() bool { return !n.Mode.IsDir() && !n.Mode.IsRegular() && !n.isLink() }

// walker lists a tree that a hostile program may have written. It opens directories by descriptor
// below one root, so that no link, not even one that appears meanwhile, leads it outside.
type walker struct {
	maxFiles int
	maxBytes int64
	files    int
	bytes    int64
	// visit is called for every entry, directories before what is in them. dir is the entry's
	// directory and must not be kept.
	visit func(dir *os.Root, base string, n node) error
	// skip leaves out a directory or file by its path; nil leaves out nothing.
	skip func(path string) bool
}

func (w *walker) walk(root *os.Root) error { return w.directory(root, "", 0) }

func (w *walker) directory(dir *os.Root, prefix string, depth int) error {
	if depth > maxDepth {
		return &LimitError{What: "depth", Limit: maxDepth}
	}
	names, err := readNames(dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", display.Name(cmp.Or(prefix, ".")), err)
	}
	for _, base := range names {
		if err := w.entry(dir, base, path.Join(prefix, base), depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entry(dir *os.Root, base, name string, depth int) error {
	if w.skip != nil && w.skip(name) {
		return nil
	}
	info, err := dir.Lstat(base)
	if err != nil {
		return err
	}
	n := node{Path: name, Mode: info.Mode()}
	if w.files++; w.maxFiles > 0 && w.files > w.maxFiles {
		return &LimitError{What: "files", Limit: int64(w.maxFiles)}
	}
	switch {
	case n.Mode.IsRegular():
		n.Size = info.Size()
		if w.bytes += n.Size; w.maxBytes > 0 && w.bytes > w.maxBytes {
			return &LimitError{What: "bytes", Limit: w.maxBytes}
		}
	case n.isLink():
		if n.Target, err = dir.Readlink(base); err != nil {
			return err
		}
	}
	if err := w.visit(dir, base, n); err != nil {
		return err
	}
	if !n.Mode.IsDir() {
		return nil
	}
	inner, err := openDir(dir, base)
	if err != nil {
		return fmt.Errorf("open %s: %w", display.Name(name), err)
	}
	defer inner.Close()
	return w.directory(inner, name, depth+1)
}

// unlock calls open. If that is not permitted, it gives the owner of the file or directory access
// and calls open again.
func unlock[T any](dir *os.Root, base string, mode fs.FileMode, open func() (T, error)) (T, error) {
	opened, err := open()
	if errors.Is(err, fs.ErrPermission) {
		if err := dir.Chmod(base, mode); err != nil {
			return opened, err
		}
		return open()
	}
	return opened, err
}

// openDir opens a directory below a root.
func openDir(dir *os.Root, base string) (*os.Root, error) {
	return unlock(dir, base, 0o700, func() (*os.Root, error) { return dir.OpenRoot(base) })
}

func readNames(dir *os.Root) ([]string, error) {
	opened, err := unlock(dir, ".", 0o700, func() (*os.File, error) { return dir.Open(".") })
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	names, err := opened.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// openFile opens a regular file below a root for reading; a fifo in its place does not block, and
// is refused.
func openFile(dir *os.Root, base string) (*os.File, error) {
	file, err := unlock(dir, base, 0o600, func() (*os.File, error) {
		return dir.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	})
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, errors.Join(err, fmt.Errorf("%s is no longer a regular file", display.Name(base)))
	}
	return file, nil
}

// copyFile copies a regular file between two roots and returns the hash of what it wrote.
func copyFile(from *os.Root, base string, to *os.Root, name string, mode fs.FileMode, limit int64) (string, int64,
	error,
) {
	source, err := openFile(from, base)
	if err != nil {
		return "", 0, err
	}
	defer source.Close()
	dest, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", 0, err
	}
	defer dest.Close()
	sum := sha256.New()
	n, err := copyLimited(io.MultiWriter(dest, sum), source, limit)
	if err == nil {
		err = dest.Chmod(mode.Perm())
	}
	return hex.EncodeToString(sum.Sum(nil)), n, err
}

// buffers are lent to pump: a tree has many small files, and a buffer for each would keep the
// collector busy.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// copyLimited copies up to a number of bytes; more is a *LimitError.
func copyLimited(to io.Writer, from io.Reader, limit int64) (int64, error) {
	buffer := buffers.Get().(*[64 << 10]byte) //nolint:forcetypeassert // nothing else is in the pool
	defer buffers.Put(buffer)
	n, err := io.CopyBuffer(to, io.LimitReader(from, limit+1), buffer[:])
	if err == nil && n > limit {
		err = &LimitError{What: "bytes", Limit: limit}
	}
	return n, err
}

// hashFile returns the hash of a regular file below a root.
func hashFile(dir *os.Root, base string, limit int64) (string, error) {
	file, err := openFile(dir, base)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	_, err = copyLimited(sum, file, limit)
	return hex.EncodeToString(sum.Sum(nil)), err
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
