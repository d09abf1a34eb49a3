package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// A closed directory may be deeper than any path can name.
func TestDeepClosedDirectoriesAreRemoved(t *testing.T) {
	t.Parallel()
	const depth = 60
	top := filepath.Join(t.TempDir(), "top")
	err := os.Mkdir(top, 0o700)
	root, openErr := os.OpenRoot(filepath.Dir(top))
	if err := errors.Join(err, openErr); err != nil {
		t.Fatal(err)
	}
	name := "top"
	for range depth {
		next, err := root.OpenRoot(name)
		if err := errors.Join(err, root.Close()); err != nil {
			t.Fatal(err)
		}
		root, name = next, strings.Repeat("d", 200)
		if err := root.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(root.Mkdir(filepath.Join(name, "inside"), 0o700), root.Chmod(name, 0), root.Close())
	if err := errors.Join(err, RemoveAll(top)); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(top); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestClosedDirectoriesOfAnOrdinaryUserAreRemoved(t *testing.T) {
	t.Parallel()
	testenv.AsOrdinaryUser(t, []string{"TestClosedDirectoriesAreRemoved", "TestDeepClosedDirectoriesAreRemoved"})
}
