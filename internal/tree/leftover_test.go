package tree

import (
	"os"
	"strings"
	"testing"
)

func TestLeftover(t *testing.T) {
	for name, want := range map[string]string{
		"a/__pycache__/b.cpython-312.pyc":  "a/__pycache__",
		".pytest_cache/v/cache/lastfailed": ".pytest_cache",
		"web/node_modules/x/index.js":      "web/node_modules",
		"old.pyc":                          "old.pyc",
		"crate/target/debug/deps/a.d":      "crate/target/debug",
		"target/shape.py":                  "",
		"src/node_modules.go":              "",
		"main.go":                          "",
	} {
		t.Run(name, func(t *testing.T) {
			if got := Leftover(name); got != want {
				t.Errorf("Leftover(%q) = %q, not %q", name, got, want)
			}
		})
	}
}

// TestLeftoversAreInTheGuide: a reader finds what does not count as an agent's work.
func TestLeftoversAreInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/agent-evaluations.md")
	if err != nil {
		t.Fatal(err)
	}
	for language, names := range leftovers {
		if row := "| " + language + " | `" + strings.Join(names, "`, `") + "`"; !strings.Contains(string(guide), row) {
			t.Errorf("the guide has no row %q", row)
		}
	}
}
