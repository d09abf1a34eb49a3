package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
)

// A task may depend on files that are not writable, on their times and on hard links. Agent, hook
// and whoever grades the stored run again find them as the author made them.
func TestAReadOnlyTaskPasses(t *testing.T) {
	family := oneTask(t, map[string]string{
		"tasks/answer/workdir/data/table.csv": "1,2\n",
		"tasks/answer/hooks/invariants.sh": `#!/bin/sh
cd "$AGENT_CWD" || exit 1
check() { if [ "$2" = "$3" ]; then p=true; else p=false; fi
	echo "{\"test\":\"$1\",\"pass\":$p,\"message\":\"$2\"}" >&3; }
check "the file" "$(stat -c '%a %Y %h' data/table.csv)" "444 981173106 2"
check "the directory" "$(stat -c '%a' data)" 555
check "what the agent found" "$(cat found.txt)" "444 555 981173106 2"
check "the symlink" "$(readlink link)" data/table.csv
`,
	})
	dir := filepath.Join(family.Dir, "tasks/answer/workdir")
	data, table := filepath.Join(dir, "data"), filepath.Join(dir, "data", "table.csv")
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, err := range []error{
		os.Symlink("data/table.csv", filepath.Join(dir, "link")),
		os.Link(table, filepath.Join(dir, "same")),
		os.Chmod(table, 0o444), os.Chtimes(table, old, old), os.Chmod(data, 0o555),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(data, 0o755) }) // else only root can remove it
	family, err := task.Load(t.Context(), family.Dir, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	look := `{"turns":[{"calls":[{"bash":"stat -c %a data/table.csv data > f; stat -c '%Y %h' data/table.csv >> f; ` +
		`echo $(cat f) > found.txt; rm f"}]},{"text":"done"}]}`
	r, path := attemptOf(t, family, look, experiment.Setup{})
	if r.Verdict != ledger.Pass {
		t.Errorf("%s %s %+v", r.Verdict, r.ErrorMessage, r.Grade)
	}
	final := filepath.Join(path, filepath.FromSlash(r.RunDir), FinalDir)
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(final, "data"), 0o755) })
	for name, want := range map[string]os.FileMode{"data": 0o555, "data/table.csv": 0o444} {
		t.Run(name, func(t *testing.T) {
			info, err := os.Stat(filepath.Join(final, name))
			if err != nil || info.Mode().Perm() != want || name != "data" && !info.ModTime().Equal(old) {
				t.Errorf("what is kept: %v %v", info, err)
			}
		})
	}
}
