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
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) // the second try reports what cannot be changed
		}
		return nil
	})
	return os.RemoveAll(dir)
}
