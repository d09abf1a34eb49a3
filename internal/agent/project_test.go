package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestReadProject: a hostile directory neither leads out of itself nor makes us wait.
func TestReadProject(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	write := func(path, content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(outside, "secret")
	write(filepath.Join(dir, "plain"), "text")
	write(filepath.Join(dir, "large"), strings.Repeat("x", maxProjectFile+1))
	for name, target := range map[string]string{"inside": "plain", "out": outside} {
		t.Run(name, func(t *testing.T) {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		})
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		want  string
		fails bool
	}{
		"plain": {"text", false}, "inside": {"text", false}, "missing": {"", false}, "plain/below": {"", false},
		"out": {"", true}, "large": {"", true}, "pipe": {"", true}, ".": {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := ReadProject(dir, name)
			if string(data) != test.want || (err != nil) != test.fails {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		})
	}
}

func TestManagedFilesAreThoseThatExist(t *testing.T) {
	there := filepath.Join(t.TempDir(), "managed.json")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	info := Info{Managed: []string{there, there + ".d"}}
	if got := info.ManagedFiles(); !slices.Equal(got, []string{there}) {
		t.Errorf("managed files: %q", got)
	}
}
