package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/testenv"
)

// repository makes one with two commits, of which the second holds the solution.
func repository(t *testing.T) (dir, firstCommit string) {
	t.Helper()
	testenv.NeedTool(t, "git")
	dir = t.TempDir()
	write(t, dir, map[string]string{
		"main.txt": "broken\n", "ignored.txt": "kept\n",
		".gitattributes": "ignored.txt export-ignore\n",
	})
	do := func(args ...string) string {
		out, err := git.Output(t.Context(), dir, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	do("init", "-q", "-b", "main")
	do("add", "-A")
	do("commit", "-q", "-m", "before")
	firstCommit = do("rev-parse", "HEAD")
	write(t, dir, map[string]string{"main.txt": "the solution\n"})
	do("commit", "-q", "-a", "-m", "the fix")
	return dir, firstCommit
}

func repositoryTask(t *testing.T, mode string) (*task.Family, *task.Task, string) {
	t.Helper()
	repo, commit := repository(t)
	fam, one := family(t, map[string]string{
		"tasks/one/task.yaml":         fmt.Sprintf("workspace: %s\nrepo: %s\nref: %s\n", mode, repo, commit),
		"tasks/one/workdir/extra.txt": "overlay\n",
	})
	return fam, one, repo
}

func TestAnExportHasNoHistory(t *testing.T) {
	fam, one, _ := repositoryTask(t, "export")
	w := prepare(t, Config{Family: fam, Task: one})
	got := list(t, w.Dir)
	if got["main.txt"] != "broken\n" || got["ignored.txt"] != "kept\n" || got["extra.txt"] != "overlay\n" {
		t.Errorf("got %v", got)
	}
	for name, args := range map[string][]string{
		"1": {"rev-list", "--all", "--count"}, "": {"remote"}, "main": {"rev-parse", "--abbrev-ref", "HEAD"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := git.Output(t.Context(), w.Dir, args...); err != nil || out != name {
				t.Errorf("git %v says %q, %v", args, out, err)
			}
		})
	}
	if out, err := git.Output(t.Context(), w.Dir, "status", "--porcelain"); err != nil || out != "" {
		t.Errorf("the working directory is not clean: %q, %v", out, err)
	}
	if _, err := git.Output(t.Context(), w.Dir, "log", "-g", "-1", "--format=%H", "--exit-code"); err == nil {
		out, _ := git.Output(t.Context(), w.Dir, "reflog")
		if out != "" {
			t.Errorf("there is a reflog: %s", out)
		}
	}
	again := prepare(t, Config{Family: fam, Task: one})
	one1, _ := git.Output(t.Context(), w.Dir, "rev-parse", "HEAD")
	two, _ := git.Output(t.Context(), again.Dir, "rev-parse", "HEAD")
	if one1 != two || w.Base().Hash != again.Base().Hash {
		t.Errorf("two exports differ: %s %s", one1, two)
	}
	if strings.Contains(w.Label, "leaky") {
		t.Errorf("label %s", w.Label)
	}
}

func TestWorktreesAreMadeOneAfterTheOther(t *testing.T) {
	fam, one, repo := repositoryTask(t, "worktree")
	bases := NewBases(filepath.Join(t.TempDir(), "bases"))
	root := t.TempDir()
	all := make([]*Workspace, 12)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			w, err := Prepare(t.Context(), Config{
				Root: root, Name: fmt.Sprint(i), Family: fam, Task: one, Bases: bases,
				Environ: os.Environ(),
			})
			if err != nil {
				t.Error(err)
				return
			}
			all[i] = w
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	if out, _ := git.Output(t.Context(), repo, "worktree", "list"); strings.Count(out, "\n") != len(all) {
		t.Errorf("worktrees:\n%s", out)
	}
	w := all[0]
	if status, err := git.Output(t.Context(), w.Dir, "status", "--porcelain"); err != nil || status != "?? extra.txt" {
		t.Errorf("status %q, %v", status, err)
	}
	if !strings.Contains(w.Label, "leaky") {
		t.Errorf("label %q does not say that a worktree leaks", w.Label)
	}
	write(t, w.Dir, map[string]string{"main.txt": "mine\n"})
	if d, err := w.Diff(t.Context()); err != nil || len(d.Files) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	c, err := w.Copy(t.Context(), CopyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(c.Dir, ".git")); err == nil {
		t.Error("the copy points to the shared repository")
	}
	for _, w := range all {
		group.Go(func() {
			if err := w.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if out, _ := git.Output(t.Context(), repo, "worktree", "list"); strings.Count(out, "\n") != 0 {
		t.Errorf("worktrees are left:\n%s", out)
	}
}

// A worktree of the user's whose disk is away, as on a drive that is not plugged in, looks to git
// like one that was deleted.
func TestRemovingAWorktreeForgetsNoOther(t *testing.T) {
	fam, one, repo := repositoryTask(t, "worktree")
	away := filepath.Join(t.TempDir(), "on-a-drive")
	if err := git.Run(t.Context(), git.Command{
		Dir:  repo,
		Args: []string{"worktree", "add", "--quiet", "--detach", away},
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, away+"-unplugged"); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(filepath.Join(repo, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	w := prepare(t, Config{Family: fam, Task: one})
	if err := git.Run(t.Context(), git.Command{Dir: w.Dir, Args: []string{"worktree", "lock", w.Dir}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := git.Output(t.Context(), repo, "worktree", "list")
	if err != nil || strings.Count(out, "\n") != 1 || !strings.Contains(out, "on-a-drive") {
		t.Errorf("worktrees are now:\n%s\n%v", out, err)
	}
	after, err := os.ReadDir(filepath.Join(repo, ".git"))
	if err != nil || len(after) != len(before) {
		t.Errorf("the repository's directory has changed: %v, then %v, %v", before, after, err)
	}
}

func TestAnAgentCanWorkInItsWorktree(t *testing.T) {
	needBwrap(t)
	fam, one, _ := repositoryTask(t, "worktree")
	w := prepare(t, Config{Family: fam, Task: one})
	result, out := run(t, w.Agent(), "sh", "-c",
		"echo fixed >main.txt && git add -A && git commit -q -m done && git log --oneline | wc -l")
	if result.ExitCode != 0 || strings.TrimSpace(out) != "2" {
		t.Errorf("exit %d: %s", result.ExitCode, out)
	}
}
