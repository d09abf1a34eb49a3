//go:build unix

package untrusted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fit-eval/fit/internal/tree"
)

// link is a symlink of the work and where it leads.
type link struct{ dir, path, target string }

// leadingOut returns the symlinks of the work that lead to what the program did not see. It can
// make them, and whoever follows one afterwards would read something else than the program's work:
// for example what its answer is compared with.
func (f Files) leadingOut() map[link]bool {
	found := map[link]bool{}
	walk := tree.Walk{Ignore: func(err error) bool { return isGone(err) || errors.Is(err, fs.ErrPermission) }}
	_ = f.eachLeadingOut(walk, func(_ *os.Root, l link) error { // what cannot be read, nobody follows
		found[l] = true
		return nil
	})
	return found
}

// removeLinks removes what the program has made of these. A tree that cannot be walked is an error:
// nobody knows what is in it.
func (f Files) removeLinks(before map[link]bool) error {
	return f.eachLeadingOut(tree.Walk{Unlock: true, Ignore: isGone}, func(dir *os.Root, l link) error {
		if before[l] {
			return nil
		}
		base := filepath.Base(l.path)
		err := dir.Remove(base)
		if errors.Is(err, fs.ErrPermission) && dir.Chmod(".", 0o700) == nil {
			err = dir.Remove(base)
		}
		if isGone(err) {
			return nil
		}
		return err
	})
}

// isGone reports whether somebody, such as a server, has removed or replaced a file meanwhile.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// eachLeadingOut visits the symlinks that lead out with the directories that they are in.
func (f Files) eachLeadingOut(walk tree.Walk, visit func(dir *os.Root, l link) error) error {
	var failed []error
	for _, work := range f.Work {
		work, err := filepath.EvalSymlinks(work)
		if err != nil {
			continue
		}
		const access = 0o500
		if info, err := os.Stat(work); walk.Unlock && err == nil && info.Mode()&access != access {
			_ = os.Chmod(work, info.Mode().Perm()|access) // if not, it cannot be opened
		}
		top, err := os.OpenRoot(work)
		if err == nil {
			err = walk.Each(top, func(dir *os.Root, e tree.Entry) error {
				if !e.IsLink() || !f.hides(work, filepath.Join(work, e.Path)) {
					return nil
				}
				return visit(dir, link{work, e.Path, e.Target})
			})
			top.Close()
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// longestPath is how long a path can be in a call to the kernel. What lies deeper is reached by
// symlinks to directories only.
const longestPath = 4096

// hides reports whether a symlink below a directory leads to what the program does not see. What is
// not there may be made later.
func (f Files) hides(dir, path string) bool {
	if len(path) >= longestPath {
		return true
	}
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
