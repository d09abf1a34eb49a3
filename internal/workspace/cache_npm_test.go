package workspace

import (
	"os"
	"path/filepath"
	"testing"
)

// npm appends to its index even when it only reads, and never changes what it has fetched: the one
// is copied for every attempt, the other linked.
func TestEveryAttemptHasAnIndexOfItsOwnInTheNPMCache(t *testing.T) {
	cache := &cacheDir{kind: cacheNPM, dir: t.TempDir()}
	for name, content := range map[string]string{
		"_cacache/index-v5/aa/bb/entry":         "one\n",
		"_cacache/content-v2/sha512/cc/dd/blob": "package",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(cache.dir, "cache", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o444); err != nil {
				t.Fatal(err)
			}
		})
	}
	home := t.TempDir()
	if err := cache.prepare(home); err != nil {
		t.Fatal(err)
	}
	index := filepath.Join(home, ".npm/_cacache/index-v5/aa/bb/entry")
	file, err := os.OpenFile(index, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatalf("the index cannot be appended to: %v", err)
	}
	if _, err := file.WriteString("two\n"); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{
		index: "one\ntwo\n", filepath.Join(cache.dir, "cache/_cacache/index-v5/aa/bb/entry"): "one\n",
		filepath.Join(home, ".npm/_cacache/content-v2/sha512/cc/dd/blob"): "package",
	} {
		t.Run(path, func(t *testing.T) {
			if content, err := os.ReadFile(path); err != nil || string(content) != want {
				t.Errorf("%s: %q %v", path, content, err)
			}
		})
	}
	if info, err := os.Lstat(filepath.Join(home, ".npm/_cacache/content-v2/sha512/cc/dd/blob")); err != nil ||
		info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("what was fetched is not shared: %v %v", info, err)
	}
}
