package atomicfile_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/atomicfile"
)

// Whoever reads while others write finds the whole content of one of them.
func TestReadersNeverSeeHalfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	contents := [][]byte{bytes.Repeat([]byte("a"), 1<<16), bytes.Repeat([]byte("b"), 1<<17)}
	if err := atomicfile.Write(path, 0o600, contents[0]); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for i, content := range contents {
		writers.Go(func() {
			write := atomicfile.Write
			if i > 0 {
				write = atomicfile.WriteSynced
			}
			for range 50 {
				if err := write(path, 0o600, content[:1000], content[1000:]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, contents[0]) && !bytes.Equal(got, contents[1]) {
			t.Fatalf("a reader found %d bytes: %v", len(got), err)
		}
	}
	writers.Wait()
	wantOnly(t, filepath.Dir(path), "file")
}

func TestTheModeIsAsAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, mode := range []fs.FileMode{0o600, 0o644} {
		if err := atomicfile.Write(path, mode, nil); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("the file has %v instead of %v: %v", info.Mode(), mode, err)
		}
	}
}

// A file that cannot be replaced stays, and nothing is left beside it.
func TestFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.MkdirAll(filepath.Join(path, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, 0o600, []byte("content")); err == nil {
		t.Error("a directory was replaced")
	}
	wantOnly(t, dir, "file")
}

func wantOnly(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("%s holds %v instead of only %s: %v", dir, entries, name, err)
	}
}
