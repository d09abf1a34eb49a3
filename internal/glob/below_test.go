package glob

import (
	"os"
	"path/filepath"
	"testing"
)

func TestADirectoryMeansItself(t *testing.T) {
	dir := filepath.Join(t.TempDir(), `a[b]*?\c`)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "x.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found := Below(dir, "*.json"); len(found) != 1 || found[0] != file {
		t.Errorf("found %q", found)
	}
}
