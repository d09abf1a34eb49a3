package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/testenv"
)

// systemVariable names directories that root has made for another user in system directories.
const systemVariable = "FIT_TEST_SYSTEM_DIRECTORIES"

// systemDirectories returns directories of this user's that lie where the sandbox shows everything
// else.
func systemDirectories(t *testing.T) []string {
	t.Helper()
	if made := os.Getenv(systemVariable); made != "" {
		return filepath.SplitList(made)
	}
	if os.Getuid() != 0 {
		testenv.Missing(t, "only root can put a family into a system directory")
	}
	var dirs []string
	for _, system := range []string{"/usr/src", "/opt"} {
		dir, err := os.MkdirTemp(system, "fit-workspace-test-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// A family, its repository, its history and the run directory lie where the sandbox shows
// everything else.
func TestNothingHiddenIsVisibleWhereverItLies(t *testing.T) {
	needBwrap(t)
	for _, repository := range systemDirectories(t) {
		t.Run(filepath.Base(filepath.Dir(repository)), func(t *testing.T) {
			history, familyDir := filepath.Join(repository, "history"), filepath.Join(repository, "app", "family")
			write(t, repository, map[string]string{
				"results/results.jsonl":                    "SECRET of a sibling\n",
				"cache/build":                              "SECRET of the cache\n",
				"app/README":                               "SECRET of the repository\n",
				"app/family/tasks/one/agent.task.md":       "Do it.\n",
				"app/family/tasks/one/hooks/invariants.sh": "#!/bin/sh\ncat \"$TASK_DIR/hidden/test\"\n",
				"app/family/tasks/one/hidden/test":         "hidden test\n",
				"app/family/tasks/one/solution/answer":     "SECRET of the solution\n",
			})
			for _, args := range [][]string{
				{"init", "-q", "--separate-git-dir", history},
				{"add", "-A"},
				{"commit", "-q", "-m", "all"},
			} {
				in := filepath.Join(repository, "app")
				if err := git.Run(t.Context(), git.Command{Dir: in, Args: args}); err != nil {
					t.Fatal(err)
				}
			}
			// Git does not answer about a repository of somebody else.
			if os.Getuid() == 0 && filepath.Dir(repository) == "/opt" {
				if err := os.Lchown(filepath.Join(repository, "app"), 12345, 12345); err != nil {
					t.Fatal(err)
				}
			}
			loaded, err := task.Load(t.Context(), familyDir, task.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w := prepare(t, Config{
				Family: loaded, Task: &loaded.Tasks[0], Isolation: sandbox.IsolationBwrap,
				Root:   filepath.Join(repository, "work"),
				Hidden: []string{filepath.Join(repository, "results"), filepath.Join(repository, "cache")},
			})
			c, err := w.Copy(t.Context(), CopyConfig{})
			if err != nil {
				t.Fatal(err)
			}
			look := "cat " + repository + "/*/* " + familyDir + "/tasks/one/*/* 2>/dev/null; git --git-dir=" + history +
				" show HEAD:family/tasks/one/solution/answer 2>/dev/null; find " + repository + " -type f; true"
			for name, place := range map[string]Place{"agent": w.Agent(), "grader": w.Grader(c)} {
				if _, out := run(t, place, "sh", "-c", look); out != "" && !onlyIn(out, place) {
					t.Errorf("the %s sees %s", name, out)
				}
			}
			hook := w.Hook(c.Dir)
			if _, out := run(t, hook, loaded.Tasks[0].Hooks.Invariants); out != "hidden test\n" {
				t.Errorf("the hook sees %q", out)
			}
			if _, out := run(t, hook, "sh", "-c", look); strings.Contains(out, "SECRET") {
				t.Errorf("the hook sees %s", out)
			}
		})
	}
}

// onlyIn reports whether all that was found are files of the place itself.
func onlyIn(out string, place Place) bool {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if !within(place.Dir, line) && !within(place.Home, line) && !within(place.TmpDir, line) {
			return false
		}
	}
	return true
}

// Whatever holds a copy of a family's history is known: the repository, the directory that it is a
// linked worktree of, the other worktrees, repositories around it, and those it borrows objects
// from.
func TestEveryPlaceOfAHistoryIsKnown(t *testing.T) {
	base := filepath.Join(t.TempDir(), "a[b]*") // a pattern that does not match itself
	if err := os.Mkdir(base, 0o755); err != nil {
		t.Fatal(err)
	}
	at := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	for _, c := range []git.Command{
		{Dir: base, Args: []string{"init", "-q", "lender"}},
		{Dir: at("lender"), Args: []string{"commit", "-q", "--allow-empty", "-m", "first"}},
		{Dir: base, Args: []string{"clone", "-q", "--shared", "lender", "main"}},
		{Dir: at("main"), Args: []string{"worktree", "add", "-q", "--detach", at("around", "linked")}},
		{Dir: at("main"), Args: []string{"worktree", "add", "-q", "--detach", at("other")}},
		{Dir: base, Args: []string{"init", "-q", "around"}},
	} {
		if err := git.Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	write(t, at("around", "linked"), map[string]string{"family/family.yaml": "{}\n"})
	found := repositoriesOf(at("around", "linked", "family"))
	for _, want := range []string{
		at("around"), at("around", ".git"), at("around", "linked"), at("main"), at("main", ".git"),
		at("main", ".git", "worktrees", "linked"), at("other"), at("lender", ".git", "objects"),
	} {
		if !slices.Contains(found, want) {
			t.Errorf("%s is not among %q", want, found)
		}
	}
	if found := repositoriesOf(at("lender", "..")); len(found) > 0 {
		t.Errorf("outside any repository: %q", found)
	}
}
