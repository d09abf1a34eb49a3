package agent

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/sandbox"
)

// A process that is killed cannot remove the copies of logins that it made for its sessions. So
// each copy is noted in the user's cache directory, with the process that made it, before it is
// made: the next start removes the copies whose process is gone.

// loginCopy is the note about a copy.
type loginCopy struct {
	Path    string `json:"path"`
	PID     int    `json:"pid"`
	Started string `json:"started"` // when the process started, as the system says it; distinguishes a reused number
}

// copiesDir returns the directory of the notes; empty if the environment has none.
func copiesDir(environ []string) string {
	if dir := Getenv(environ, "XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fit", "logins")
	}
	if home := Getenv(environ, "HOME"); home != "" {
		return filepath.Join(home, ".cache", "fit", "logins")
	}
	return ""
}

// noteCopy notes a copy before it is made.
func noteCopy(environ []string, path string) error {
	dir := copiesDir(environ)
	if dir == "" {
		return nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	note, err := json.Marshal(loginCopy{Path: path, PID: os.Getpid(), Started: sandbox.StartTime(os.Getpid())})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, rand.Text()+".json"), note, 0o600)
}

// RemoveLoginCopies removes the copies of logins that were left by processes that were killed.
func RemoveLoginCopies(environ []string) error {
	return eachCopy(environ, func(note string, c loginCopy) error {
		if sandbox.StartTime(c.PID) == c.Started && alive(c.PID) {
			return nil
		}
		if err := os.Remove(c.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the copy of a login: %w", err)
		}
		return os.Remove(note)
	})
}

// KeepLoginCopies records that this process ends normally: its sessions may be resumed with the
// copies that they still have.
func KeepLoginCopies(environ []string) error {
	return eachCopy(environ, func(note string, c loginCopy) error {
		if c.PID != os.Getpid() {
			return nil
		}
		return os.Remove(note)
	})
}

func eachCopy(environ []string, do func(note string, c loginCopy) error) error {
	dir := copiesDir(environ)
	if dir == "" {
		return nil
	}
	var failed []error
	for _, note := range glob.Below(dir, "*.json") {
		data, err := os.ReadFile(note)
		var c loginCopy
		if err != nil || json.Unmarshal(data, &c) != nil || !filepath.IsAbs(c.Path) {
			continue // being written, or not ours
		}
		if err := do(note, c); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
