package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAWorkspaceDoesNotLieInARepository(t *testing.T) {
	for name, test := range map[string]struct {
		make func(dir string) error
		ok   bool
	}{
		"nothing":    {func(string) error { return nil }, true},
		"empty .git": {func(dir string) error { return os.Mkdir(filepath.Join(dir, ".git"), 0o755) }, true},
		"repository": {func(dir string) error {
			if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o644)
		}, false},
		"worktree": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: /elsewhere\n"), 0o644)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			if err := test.make(top); err != nil {
				t.Fatal(err)
			}
			_, err := ownDirectory(filepath.Join(top, "below"), "w")
			if (err == nil) != test.ok || err != nil && !strings.Contains(err.Error(), "lies in the repository") {
				t.Error(err)
			}
		})
	}
}
