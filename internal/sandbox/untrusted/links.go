//go:build unix

package untrusted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/tree"
)

// link is a symlink and where it leads.
type link struct{ path, target string }

// leadingOut returns the symlinks of the work that lead to what the program did not see. It can
// make them, and whoever follows one afterwards would read something else than the program's work:
// for example what its answer is compared with.
func (f Files) leadingOut(unlock bool) []link {
	var found []link
	for _, dir := range f.Work {
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		var visit fs.WalkDirFunc
		visit = func(path string, entry fs.DirEntry, err error) error {
			switch {
			case unlock && errors.Is(err, fs.ErrPermission) && os.Chmod(path, 0o700) == nil:
				unlock = false // once
				_ = filepath.WalkDir(path, visit)
				unlock = true
			case err == nil && entry.Type()&fs.ModeSymlink != 0 && f.hides(dir, path):
				target, _ := os.Readlink(path) // it was there just now
				found = append(found, link{path, target})
			}
			return nil // what cannot be read, nobody follows
		}
		_ = filepath.WalkDir(dir, visit)
	}
	return found
}

// removeLinks removes what the program has made of these.
func (f Files) removeLinks(before []link) error {
	var failed []error
	for _, l := range f.leadingOut(true) {
		if slices.Contains(before, l) {
			continue
		}
		err := os.Remove(l.path)
		if errors.Is(err, fs.ErrPermission) && os.Chmod(filepath.Dir(l.path), 0o700) == nil {
			err = os.Remove(l.path)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// hides reports whether a symlink below a directory leads to what the program does not see. What is
// not there may be made later.
func (f Files) hides(dir, path string) bool {
	name, err := filepath.Rel(dir, path)
	for range 40 {
		if err != nil || !filepath.IsLocal(name) {
			break
		}
		name, err = tree.Follow(name, func(name string) (string, error) {
			target, _ := os.Readlink(filepath.Join(dir, name)) // nothing is no link either
			return target, nil
		})
		switch {
		case errors.Is(err, tree.ErrCircle):
			return false
		case err != nil:
			return true
		case !filepath.IsAbs(name):
			return false
		}
		path = name
		name, err = filepath.Rel(dir, path)
	}
	// Whoever follows a link to /proc or /dev is led to something of its own.
	if path == os.DevNull {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	for _, at := range []string{path, real} {
		if err != nil || within("/proc", at) || within("/dev", at) {
			return true
		}
	}
	if root, err := os.Stat(Root); err == nil && root.IsDir() {
		there, err := os.Stat(real)
		seen, missing := os.Stat(Root + real)
		return err != nil || missing != nil || !os.SameFile(there, seen)
	}
	inside := func(dir string) bool { return within(dir, real) }
	return slices.ContainsFunc(f.Hidden, inside) && !slices.ContainsFunc(f.Shown, inside)
}

func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
