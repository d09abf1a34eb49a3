package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

// What an agent closes in its home must not keep the home from being removed.
func TestClosedDirectoriesAreRemoved(t *testing.T) {
	t.Parallel()
	made, err := Make(t.TempDir(), "kind-")
	if err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(made.Path, "closed")
	err = errors.Join(os.MkdirAll(filepath.Join(closed, "inside"), 0o700), os.Chmod(closed, 0), os.Chmod(made.Path, 0))
	if err := errors.Join(err, made.Remove()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(made.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestClosedDirectoriesOfAnOrdinaryUserAreRemoved(t *testing.T) {
	t.Parallel()
	testenv.AsOrdinaryUser(t, []string{"TestClosedDirectoriesAreRemoved"})
}
