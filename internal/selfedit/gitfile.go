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

// The largest files that are read whole. Real ones are far smaller; larger ones are attempts to
// exhaust memory.
const (
	maxGitFile      = 1 << 20
	maxSettingsFile = 4 << 20
)

// errLink says that there is a symbolic link where none may be.
var errLink = errors.New("is a symbolic link")

// readThroughLinks reads a file of limited size, which may be a link, because people keep settings
// elsewhere and link to them. It never blocks on a pipe or a device.
func readThroughLinks(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
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
// it is not a directory.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}
