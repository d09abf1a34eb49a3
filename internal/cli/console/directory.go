package console

import (
	"errors"
	"io/fs"
	"os"
)

// NewDirectory is the path of a directory that is to be made. One that is there must be empty.
func (c *Console) NewDirectory(name string) (string, error) {
	dir := c.Path(name)
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return "", Usagef("%s is not empty; name a new directory", name)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", Exit(ExitUsage, err)
	}
	return dir, nil
}
