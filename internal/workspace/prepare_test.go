package workspace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/testenv"
)

// processorTime is what this process and the children it has waited for have used.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return sum
}

// TestPrepareBesideGit: preparing a workspace of 20,000 files takes at most 1.5 times the processor
// time of git worktree add, whichever kind it is.
func TestPrepareBesideGit(t *testing.T) {
	testenv.Measurement(t, "bench")
	repo := filepath.Join(t.TempDir(), "repo")
	for i := range 20_000 {
		name := filepath.Join(repo, fmt.Sprintf("d%03d", i/100), fmt.Sprintf("f%05d.go", i))
		if i%100 == 0 {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		content := fmt.Appendf(nil, "package d%d\n\n// F%d is one of many.\nfunc F%d() int { return %d }\n", i/100,
			i, i, i)
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command(t, repo, "git", "init", "-q", "-b", "main")
	command(t, repo, "git", "add", ".")
	command(t, repo, "git", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "base")
	bases := NewBases(filepath.Join(t.TempDir(), "bases"))
	took := map[string][]time.Duration{}
	measure := func(kind string, do func(name string)) {
		before := processorTime(t)
		do(fmt.Sprintf("%s%d", kind, len(took[kind])))
		took[kind] = append(took[kind], processorTime(t)-before)
	}
	root := t.TempDir()
	prepare := func(kind string) func(string) {
		cfg := Config{
			Root:    root,
			Environ: os.Environ(),
			Bases:   bases,
			Task: &task.Task{
				ID:       kind,
				Dir:      t.TempDir(),
				Settings: task.Settings{Repo: repo, Ref: "main", Workspace: kind, Isolation: "none"},
			},
		}
		if _, err := bases.get(t.Context(), cfg); err != nil { // built once for all attempts
			t.Fatal(err)
		}
		return func(name string) {
			cfg.Name = name
			w, err := Prepare(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = w.Remove(context.Background()) })
		}
	}
	export, worktree := prepare("export"), prepare("worktree")
	for range 3 {
		measure("git", func(name string) {
			command(t, repo, "git", "worktree", "add", "-q", "--detach", filepath.Join(root, name))
		})
		measure("export", export)
		measure("worktree", worktree)
	}
	beside := slices.Min(took["git"])
	for _, kind := range []string{"export", "worktree"} {
		least := slices.Min(took[kind])
		ratio := least.Seconds() / beside.Seconds()
		t.Logf("%s %s · git worktree add %s · ratio %.2f", kind, least, beside, ratio)
		if ratio > 1.5 {
			t.Errorf("%s takes %.2f times as long as git worktree add; the limit is 1.5", kind, ratio)
		}
	}
}

func command(t testing.TB, dir string, argv ...string) {
	t.Helper()
	git := exec.Command(argv[0], argv[1:]...)
	git.Dir = dir
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}
