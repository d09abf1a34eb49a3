package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/jsonlines"
)

// lockDirectory locks a run directory. The kernel releases the lock when the process ends, however
// it ends.
func lockDirectory(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock run directory: %w", err)
	}
	if err = jsonlines.Lock(file); errors.Is(err, jsonlines.ErrLocked) {
		err = ErrBusy
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, err), file.Close())
	}
	return file, nil
}
