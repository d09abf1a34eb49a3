// Package atomicfile replaces files atomically: readers, and a process restarted after a crash, see
// either the old or the new content, never a mix.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write makes the parts, one after the other, the content of a file. Several processes may write
// the same file; the last one wins.
func Write(path string, mode fs.FileMode, parts ...[]byte) error {
	return write(path, mode, false, parts)
}

// WriteSynced is Write for what a crash of the machine must not lose: the content is on the disk
// before the file gets its name.
func WriteSynced(path string, mode fs.FileMode, parts ...[]byte) error {
	return write(path, mode, true, parts)
}

func write(path string, mode fs.FileMode, synced bool, parts [][]byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.new")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	for _, part := range parts {
		if _, err := file.Write(part); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	err = file.Chmod(mode)
	if synced {
		err = errors.Join(err, file.Sync())
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
