package grade_test

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/ledger"
)

// A linter sees the changed files only, at the base and as the agent left them, whatever they are
// called; one that cannot be run measures nothing.
func TestLint(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{
		"workdir/a.txt":         "bad\n",
		"workdir/untouched.txt": "bad\nbad\n",
		"hooks/invariants.sh":   "#!/bin/sh\n",
	})
	b.agent(files{"a.txt": "bad\nbad\ngood\n", "it's new; exit 1": "bad\n", "-rf": "bad\n"})
	if _, err := b.ws.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	diff, err := b.ws.Diff(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lint := func(command string) ledger.Lint {
		t.Helper()
		result, err := grade.Lint(t.Context(), b.config, grade.Linter{Command: command}, diff.Files)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}

	want := ledger.Lint{ExitCode: 3, Before: 1, After: 4}
	if got := lint("grep -h bad {files}; exit 3"); got != want {
		t.Errorf("lint: %+v, want %+v", got, want)
	}
	if missing := lint("no-such-linter {files}"); !strings.Contains(missing.Error, "127") {
		t.Errorf("a linter that is missing: %+v", missing)
	}
	if killed := lint("kill -9 $$"); killed.Error == "" {
		t.Errorf("a linter that is killed: %+v", killed)
	}
}
