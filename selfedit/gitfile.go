package selfedit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/fit-eval/fit/internal/display"
	"golang.org/x/sys/unix"
)

// The largest files that are read whole. Real ones are far smaller; larger ones are somebody's
// attempt to exhaust us.
const (
	maxGitFile      = 1 << 20
	maxPackedRefs   = 256 << 20
	maxSettingsFile = 4 << 20
)

// errLink says that a symbolic link stands where none may.
var errLink = errors.New("is a symbolic link")

// readRegular reads a file of limited size that must be a regular file and not a link. It never
// blocks on a pipe or a device.
func readRegular(path string, limit int64) ([]byte, error) {
	return readOpened(path, limit, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW)
}

// readThroughLinks is readRegular for files that people keep elsewhere and link to, such as their
// git configuration.
func readThroughLinks(path string, limit int64) ([]byte, error) {
	return readOpened(path, limit, os.O_RDONLY|unix.O_NONBLOCK)
}

func readOpened(path string, limit int64, flags int) ([]byte, error) {
	file, err := os.OpenFile(path, flags, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s: %w", display.Name(path), errLink)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readLimited(file, path, limit)
}

func readLimited(file *os.File, path string, limit int64) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", display.Name(path))
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", display.Name(path), limit)
	}
	return data, nil
}

// isAbsent reports whether an error means that there is no such file, also because something above
// it is no directory.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}
