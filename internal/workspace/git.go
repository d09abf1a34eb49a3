package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/task"
)

// exportRepository writes the files of a repository's commit into a directory: no history, no
// attributes that leave files out. The repository is not changed.
func exportRepository(ctx context.Context, s task.Settings, tree string) error {
	sha, err := git.Resolve(ctx, s.Repo, s.Ref)
	if err != nil {
		return fmt.Errorf("repository %s: %w", s.Repo, err)
	}
	scratch, err := os.MkdirTemp(filepath.Dir(tree), "index-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(scratch, "index")}
	if err := git.Run(ctx, git.Command{Dir: s.Repo, Args: []string{"read-tree", sha}, Env: index}); err != nil {
		return err
	}
	gitDir, err := git.Output(ctx, s.Repo, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return err
	}
	args := []string{
		"--git-dir=" + gitDir, "--work-tree=" + tree, "checkout-index", "--all", "--quiet",
		"--prefix=" + tree + "/",
	}
	return git.Run(ctx, git.Command{Dir: tree, Args: args, Env: index})
}

// stageAll makes a directory a repository and stages all its files, ignored ones too: the author
// wants them there.
func stageAll(ctx context.Context, tree, template string) error {
	return gitAll(ctx, tree,
		[]string{"init", "--quiet", "--initial-branch=main", "--template=" + template},
		[]string{"add", "--all", "--force", "."})
}

// commitAll makes the one commit of a repository, which never changes: no remote, no other branch,
// nothing of the history. Objects are packed, because every attempt copies them.
func commitAll(ctx context.Context, tree string) error {
	err := gitAll(ctx, tree,
		[]string{"add", "--all", "."},
		[]string{"commit", "--quiet", "--allow-empty", "--no-gpg-sign", "--message=base"},
		[]string{"repack", "-a", "-d", "-q", "--window=0"},
		[]string{"prune-packed", "--quiet"})
	return errors.Join(err, os.RemoveAll(filepath.Join(tree, ".git", "logs")))
}

// checkOut checks out the commit of a repository into its own directory. Attributes may make git
// write other files than those that were committed.
func checkOut(ctx context.Context, tree, dir string) (*Base, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	err := git.Run(ctx, git.Command{
		Dir:  tree,
		Args: []string{"checkout-index", "--all", "--quiet", "--prefix=" + dir + "/"},
	})
	if err != nil {
		return nil, err
	}
	made, err := takeSnapshot(dir)
	return made, errors.Join(err, scratch.RemoveAll(dir))
}

func gitAll(ctx context.Context, tree string, calls ...[]string) error {
	env := []string{"GIT_AUTHOR_DATE=2000-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2000-01-01T00:00:00Z"}
	for _, args := range calls {
		if err := git.Run(ctx, git.Command{Dir: tree, Args: args, Env: env}); err != nil {
			return err
		}
	}
	return nil
}

// worktree is a linked working directory of a repository.
type worktree struct {
	repository string
	common     string // the repository's own directory, which every worktree writes to
	dir        string // its name for git
}

// worktreeLock lets one worktree be made at a time: git's own locks make the others fail, not wait.
// Other processes are kept out by a lock on the repository's directory, which leaves nothing
// behind.
var worktreeLock sync.Mutex

// addWorktree makes dir a detached worktree of the repository, with the files of the commit or
// without.
func addWorktree(ctx context.Context, s task.Settings, dir string, files bool) (*worktree, error) {
	sha, err := git.Resolve(ctx, s.Repo, s.Ref)
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", s.Repo, err)
	}
	common, err := git.Output(ctx, s.Repo, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	w := &worktree{
		repository: s.Repo,
		common:     common,
		dir:        dir,
	}
	args := []string{"worktree", "add", "--quiet", "--detach"}
	if !files {
		args = append(args, "--no-checkout")
	}
	return w, w.locked(ctx, func() error {
		return git.Run(ctx, git.Command{Dir: s.Repo, Args: append(args, dir, sha)})
	})
}

// remove forgets only this worktree: a user's own worktree may be on a disk that is not mounted.
// Forced twice, because an agent may have locked it.
func (w *worktree) remove(ctx context.Context) error {
	return w.locked(ctx, func() error {
		return git.Run(ctx, git.Command{
			Dir:  w.repository,
			Args: []string{"worktree", "remove", "--force", "--force", w.dir},
		})
	})
}

// ForgetWorktrees forgets the worktrees of a repository that are below one of our directories:
// those that a killed process could not remove. Others are left alone.
func ForgetWorktrees(ctx context.Context, repository, below string) error {
	listed, err := git.Output(ctx, repository, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(below); err == nil {
		below = real
	}
	common, err := git.Output(ctx, repository, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return err
	}
	var errs []error
	for field := range strings.SplitSeq(listed, "\x00") {
		dir, found := strings.CutPrefix(field, "worktree ")
		if found && dir != below && within(below, dir) {
			w := &worktree{repository: repository, common: common, dir: dir}
			errs = append(errs, w.remove(ctx))
		}
	}
	return errors.Join(errs...)
}

// locked runs do while no other workspace changes the worktrees of the repository.
func (w *worktree) locked(ctx context.Context, do func() error) error {
	worktreeLock.Lock()
	defer worktreeLock.Unlock()
	common, err := os.Open(w.common)
	if err != nil {
		return err
	}
	defer common.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := unix.Flock(int(common.Fd()), unix.LOCK_EX)
		if err == nil {
			return do()
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for the repository: %w", err)
		}
	}
}
