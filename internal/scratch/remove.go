package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveAll deletes a directory with everything in it, even if it is not writable. Links are
// deleted, not followed.
func RemoveAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if parent, err := os.OpenRoot(filepath.Dir(dir)); err == nil {
		unlock(parent, filepath.Base(dir))
		_ = parent.Close()
	}
	return os.RemoveAll(dir) // it reports what could not be unlocked
}

// RemoveBelow is RemoveAll of something in a directory that is open.
func RemoveBelow(parent *os.Root, base string) error {
	err := parent.RemoveAll(base)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	unlock(parent, base)
	return parent.RemoveAll(base)
}

// unlock makes a directory and those below it writable, if it can. It goes down one name at a time,
// because a path to the bottom may be longer than the system allows.
func unlock(parent *os.Root, base string) {
	if info, err := parent.Lstat(base); err != nil || !info.IsDir() {
		return
	}
	_ = parent.Chmod(base, 0o700)
	dir, err := parent.OpenRoot(base)
	if err != nil {
		return
	}
	defer dir.Close()
	list, err := dir.Open(".")
	if err != nil {
		return
	}
	names, _ := list.Readdirnames(-1)
	_ = list.Close()
	for _, name := range names {
		unlock(dir, name)
	}
}
