// Package scratch makes temporary directories that do not outlive their process for long. A process
// that is killed cannot remove what it made; the next one that makes a directory of the same kind
// does it.
package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// settling is how old a directory must be before it counts as abandoned: its maker locks it right
// after making it.
const settling = time.Minute

// Dir is a temporary directory that is locked while its process lives.
type Dir struct {
	Path string
	lock *os.File
}

// Make makes a directory whose name begins with prefix, in parent, or in the default directory for
// temporary files where parent is empty. It removes those that killed processes of this user have
// left there under the same prefix.
func Make(parent, prefix string) (*Dir, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	sweep(parent, prefix)
	path, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	lock, held := tryLock(path)
	if !held {
		return nil, errors.Join(fmt.Errorf("lock %s: another process has it open", path), os.Remove(path))
	}
	return &Dir{Path: path, lock: lock}, nil
}

// Remove removes the directory and everything in it.
func (d *Dir) Remove() error {
	return errors.Join(RemoveAll(d.Path), d.lock.Close())
}

// sweep removes directories that no process holds. Those that cannot be removed are left to the
// next process.
func sweep(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, entry := range entries {
		rest, ours := strings.CutPrefix(entry.Name(), prefix)
		if !ours || strings.Trim(rest, "0123456789") != "" || !entry.IsDir() {
			continue
		}
		path := filepath.Join(parent, entry.Name())
		if info, err := os.Lstat(path); err != nil || time.Since(info.ModTime()) < settling || !isOwn(info) {
			continue
		}
		if lock, free := tryLock(path); free {
			_ = RemoveAll(path)
			_ = lock.Close()
		}
	}
}

func isOwn(info os.FileInfo) bool {
	status, known := info.Sys().(*syscall.Stat_t)
	return known && int(status.Uid) == os.Geteuid()
}

// tryLock locks a directory, without following a link that somebody may have put in its place.
func tryLock(path string) (*os.File, bool) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, false
	}
	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		_ = file.Close()
		return nil, false
	}
	return file, true
}

// owner is the file that a process holds while it uses a directory whose name it does not choose.
const owner = ".owner"

// Own marks a directory as in use until the file is closed. Sweep removes it after that.
func Own(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, owner), os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
	}
	return file, nil
}

// Sweep removes the directories of a prefix that killed processes of this user have owned.
func Sweep(parent, prefix string) {
	found, _ := filepath.Glob(filepath.Join(parent, prefix+"*", owner)) // a bad pattern finds nothing
	for _, mark := range found {
		dir := filepath.Dir(mark)
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !isOwn(info) {
			continue
		}
		file, err := os.OpenFile(mark, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		info, err := file.Stat()
		if err == nil && time.Since(info.ModTime()) >= settling &&
			unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = RemoveAll(dir)
		}
		_ = file.Close()
	}
}
