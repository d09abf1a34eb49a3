package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveAll deletes a directory with everything in it, also where somebody took the right to write
// away from it. Links are deleted, not followed.
func RemoveAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) // what cannot be changed is reported by the second try
		}
		return nil
	})
	return os.RemoveAll(dir)
}
