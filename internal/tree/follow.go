package tree

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// The ways in which a symlink leads to nothing in its tree.
var (
	ErrOutside = errors.New("leads out of the working directory")
	ErrCircle  = errors.New("leads in a circle")
)

// Follow resolves a path of a tree as the kernel would, with all symlinks on the way. target
// returns where the symlink of a path leads; empty: there is none at this path. The result is an
// absolute path where an absolute symlink leads there; that has no "..", because what is above an
// absolute path depends on symlinks that are not in the tree.
func Follow(name string, target func(path string) (string, error)) (string, error) {
	pending := strings.Split(name, "/")
	at := "."
	for hops := 0; len(pending) > 0; {
		step := pending[0]
		pending = pending[1:]
		next := path.Join(at, step)
		if next == ".." {
			return "", ErrOutside
		}
		to := ""
		if step != "" && step != "." && step != ".." {
			var err error
			if to, err = target(next); err != nil {
				return "", err
			}
		}
		switch {
		case to == "":
			at = next
			continue
		case path.IsAbs(to):
			to += "/" + strings.Join(pending, "/")
			if slices.Contains(strings.Split(to, "/"), "..") {
				return "", ErrOutside
			}
			return path.Clean(to), nil
		}
		if hops++; hops > 40 {
			return "", ErrCircle
		}
		pending = append(strings.Split(to, "/"), pending...)
	}
	return at, nil
}
