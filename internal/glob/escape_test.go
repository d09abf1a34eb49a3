package glob

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAnEscapedPathMeansItself(t *testing.T) {
	dir := filepath.Join(t.TempDir(), `a[b]*?\c`)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "x.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(Escape(dir), "*.json"))
	if err != nil || len(found) != 1 || found[0] != file {
		t.Errorf("found %q, %v", found, err)
	}
}
