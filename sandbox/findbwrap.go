package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// errNoBwrap is returned when isolation is asked for and bubblewrap is not installed.
var errNoBwrap = errors.New("bubblewrap (bwrap) is not installed")

func findBwrap() (string, error) {
	if path, err := exec.LookPath("bwrap"); err == nil && filepath.IsAbs(path) {
		return path, nil
	}
	if info, err := os.Stat("/usr/bin/bwrap"); err == nil && info.Mode()&0o111 != 0 {
		return "/usr/bin/bwrap", nil
	}
	return "", errNoBwrap
}
