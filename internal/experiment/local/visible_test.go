package local

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
)

// TestRunDirectoriesBesideThisOneAreHidden keeps the results of other experiments, which may hold
// the same hidden tests, from the processes of an attempt. What is no run directory is not hidden.
func TestRunDirectoriesBesideThisOneAreHidden(t *testing.T) {
	parent := t.TempDir()
	for _, name := range []string{"this/" + experiment.PlanFile, "sibling/" + experiment.PlanFile, "toolchain/go"} {
		path := filepath.Join(parent, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	executor := &Executor{
		work:      filepath.Join(parent, "work"),
		artefacts: &experiment.Directory{Path: filepath.Join(parent, "this")},
		machine:   &Machine{Host: agent.Host{CacheDir: filepath.Join(parent, "cache")}},
	}
	hidden := executor.hidden()
	for name, want := range map[string]bool{
		"this": true, "sibling": true, "work": true, "cache": true, "toolchain": false,
	} {
		t.Run(name, func(t *testing.T) {
			if got := slices.Contains(hidden, filepath.Join(parent, name)); got != want {
				t.Errorf("%s is hidden: %t", name, got)
			}
		})
	}
}
