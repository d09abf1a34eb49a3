package tree

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// LinkError says that a symlink leads out of the directory that it may not leave.
type LinkError struct {
	Link, Target string
	Root         string // the directory
}

func (e *LinkError) Error() string {
	return fmt.Sprintf("the link %s leads out of %s, to %s", e.Link, e.Root, e.Target)
}

// Beneath resolves a path of a directory with all symlinks on the way, and returns it relative to
// the directory, without any. What leads out of the directory is a *LinkError.
func Beneath(root *os.Root, name string) (string, error) {
	var last LinkError
	target := func(at string) (string, error) {
		to, err := root.Readlink(filepath.FromSlash(at))
		switch {
		case errors.Is(err, syscall.EINVAL): // not a link
			return "", nil
		case err != nil:
			return "", err
		}
		last = LinkError{Link: at, Target: to, Root: root.Name()}
		return filepath.ToSlash(to), nil
	}
	for range 40 {
		end, err := Follow(name, target)
		switch {
		case errors.Is(err, ErrOutside) && last.Link != "":
			return "", &last
		case err != nil || !path.IsAbs(end):
			return end, err
		}
		// An absolute link may lead to the directory itself.
		if name, err = filepath.Rel(root.Name(), end); err != nil || !filepath.IsLocal(name) {
			return "", &last
		}
	}
	return "", ErrCircle
}
