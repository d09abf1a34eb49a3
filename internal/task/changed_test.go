package task

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestATaskThatChangesAfterLoadingIsNoticed(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"tasks/a/agent.task.md":       "Do it.",
		"tasks/a/workdir/file.txt":    "old",
		"tasks/a/hooks/invariants.sh": "#!/bin/sh\nexit 0\n",
	}
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		write(name, content)
	}
	family, err := Load(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := family.CheckUnchanged(&family.Tasks[0]); err != nil {
		t.Fatalf("an untouched task: %v", err)
	}
	for name, want := range map[string]string{
		"tasks/a/workdir/file.txt":    "what the agent sees",
		"tasks/a/workdir/new.txt":     "what the agent sees",
		"tasks/a/hooks/invariants.sh": "hidden part",
		"tasks/a/tests/extra.sh":      "hidden part",
	} {
		t.Run(name, func(t *testing.T) {
			write(name, "changed")
			if err := family.CheckUnchanged(&family.Tasks[0]); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
			if content, known := files[name]; known {
				write(name, content)
			} else if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		})
	}
}
