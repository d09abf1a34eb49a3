package fit

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestWorkThatHoldsItsOwnCopy copies work into a directory inside it, which is where the copy lies
// if the temporary directory is part of the work.
func TestWorkThatHoldsItsOwnCopy(t *testing.T) {
	work := t.TempDir()
	room := filepath.Join(work, "tmp", "fit-judge-1")
	if err := os.MkdirAll(room, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.txt", "tmp/b.txt"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	through := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(work, "tmp"), through); err != nil {
		t.Fatal(err)
	}
	exhibit := filepath.Join(through, "fit-judge-1", exhibitName)
	if err := copyWork(t.Context(), work, exhibit); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := fs.WalkDir(os.DirFS(room), exhibitName, func(path string, _ fs.DirEntry, err error) error {
		got = append(got, path)
		return err
	})
	want := []string{"work", "work/a.txt", "work/tmp", "work/tmp/b.txt"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the copy is %q, %v", got, err)
	}
}
