package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxProjectFile is more than a file of settings has.
const maxProjectFile = 1 << 20

// ReadProject reads a file of a working directory, in which anything may lie: no link is followed
// out of it, and only a regular file of at most 1 MiB is read. A file that is not there is nil.
func ReadProject(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer root.Close()
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would wait
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxProjectFile {
		return nil, fmt.Errorf("read %s: it is not a file of at most 1 MiB", name)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxProjectFile))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}

// ManagedFiles lists the files and directories by which an administrator configures the agent for
// everybody on this machine, of those that are there. No setting of fit's wins over them; a program
// in bubblewrap or in a container does not see them.
func (i Info) ManagedFiles() []string {
	var found []string
	for _, path := range i.Managed {
		if _, err := os.Stat(path); err == nil {
			found = append(found, path)
		}
	}
	return found
}
