package agent_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
)

// TestWriteHome: whatever an agent has left in the place of a file, or on the way to it, nothing
// outside of its home is written, and nobody waits.
func TestWriteHome(t *testing.T) {
	outside := t.TempDir()
	victim := filepath.Join(outside, "settings.json")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		plant   func(home, path string) error
		refused bool
	}{
		"nothing":        {func(string, string) error { return nil }, false},
		"a file":         {func(_, path string) error { return os.WriteFile(path, []byte("old"), 0o400) }, false},
		"a link":         {func(_, path string) error { return os.Symlink(victim, path) }, false},
		"a dangling one": {func(_, path string) error { return os.Symlink(outside+"/new", path) }, false},
		"a second name":  {func(_, path string) error { return os.Link(victim, path) }, false},
		"a pipe":         {func(_, path string) error { return syscall.Mkfifo(path, 0o600) }, false},
		"a directory":    {func(_, path string) error { return os.MkdirAll(path+"/deep", 0o700) }, false},
		"a link on the way": {func(home, _ string) error {
			dir := filepath.Join(home, "config")
			if err := os.Remove(dir); err != nil {
				return err
			}
			return os.Symlink(outside, dir)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			path := filepath.Join(home, "config", "settings.json")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := test.plant(home, path); err != nil {
				t.Fatal(err)
			}
			err := agent.WriteHome(home, path, []byte("ours"))
			if (err != nil) != test.refused {
				t.Errorf("error %v", err)
			}
			if written, _ := os.ReadFile(path); !test.refused && string(written) != "ours" {
				t.Errorf("written %q", written)
			}
			entries, _ := os.ReadDir(outside)
			if kept, _ := os.ReadFile(victim); string(kept) != "mine" || len(entries) != 1 {
				t.Errorf("outside there is %v, with %q", entries, kept)
			}
		})
	}
}

// TestFindRecord: the directory is a name, not a pattern, and so is the conversation's id.
func TestFindRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs [1]*")
	record := filepath.Join(dir, "sessions", "2026_a-1.jsonl")
	if err := os.MkdirAll(filepath.Dir(record), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(record, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"a-1": record, "a-2": "", "": "", "*": "", "../sessions/2026_a-1": ""} {
		t.Run(id, func(t *testing.T) {
			if got := agent.FindRecord(dir, "sessions/*_%s.jsonl", id); got != want {
				t.Errorf("%q: found %q, want %q", id, got, want)
			}
		})
	}
}
