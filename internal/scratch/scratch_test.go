package scratch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What a killed process has left is removed by the next one that makes a directory of the kind;
// what is in use, new, of another kind or not a directory stays.
func TestMakeRemovesWhatKilledProcessesLeft(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	held, err := Make(parent, "kind-")
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{"kind-1", "kind-new-2", "other-3", "kind-4"} {
		if err := os.MkdirAll(filepath.Join(parent, dir, "inside"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(parent, "kind-5")); err != nil {
		t.Fatal(err)
	}
	left, named := filepath.Join(parent, "kind-1"), filepath.Join(parent, "kind-new-2")
	for _, path := range []string{left, named, held.Path, outside} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}

	made, err := Make(parent, "kind-")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		left:                             false,
		named:                            true,
		filepath.Join(parent, "other-3"): true,
		filepath.Join(parent, "kind-4"):  true,
		filepath.Join(parent, "kind-5"):  true,
		outside:                          true,
		held.Path:                        true,
		made.Path:                        true,
	}
	for path, stays := range want {
		t.Run(path, func(t *testing.T) {
			if _, err := os.Lstat(path); (err == nil) != stays {
				t.Errorf("%s: there is %t, want %t", path, err == nil, stays)
			}
		})
	}

	if err := held.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(held.Path); err == nil {
		t.Errorf("%s is still there", held.Path)
	}
}
