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

// What a killed process has owned is removed; what is owned, was never owned or is new stays.
func TestSweepRemovesWhatKilledProcessesOwned(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	stays := map[string]bool{
		"work-left": false, "work-owned": true, "work-new": true, "work-kept": true, "other-left": true,
	}
	for name := range stays {
		dir := filepath.Join(parent, name)
		if err := os.MkdirAll(filepath.Join(dir, "inside"), 0o700); err != nil {
			t.Fatal(err)
		}
		if name == "work-kept" {
			continue
		}
		mark, err := Own(dir)
		if err != nil {
			t.Fatal(err)
		}
		if name == "work-owned" {
			t.Cleanup(func() { _ = mark.Close() })
		} else if err := mark.Close(); err != nil {
			t.Fatal(err)
		}
		if old := time.Now().Add(-time.Hour); name != "work-new" {
			if err := os.Chtimes(mark.Name(), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	Sweep(parent, "work-")
	for name, want := range stays {
		if _, err := os.Lstat(filepath.Join(parent, name)); (err == nil) != want {
			t.Errorf("%s: there is %t, want %t", name, err == nil, want)
		}
	}
}
