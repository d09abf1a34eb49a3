package workspace

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/git"
)

// hideFromGit keeps what was brought out of the agent's changes: git status is clean with it and,
// after Withdraw, without it. New files become part of the commit that the agent starts from, as
// they would be on its user's desk: tools that skip ignored files must find them. Git is told not
// to look at any of the files again.
func (w *Workspace) hideFromGit(ctx context.Context) error {
	_, hasGit := w.base.nodes[".git"]
	if !hasGit && w.worktree == nil {
		return nil
	}
	if _, err := git.Output(ctx, w.Dir, "rev-parse", "--verify", "--quiet", "HEAD"); err != nil {
		return nil //nolint:nilerr // a repository without a commit has no changes either
	}
	known, err := w.tracked(ctx)
	if err != nil {
		return err
	}
	var added, hidden []string
	for _, name := range slices.Concat(w.brought.files, w.brought.displaced) {
		hidden = append(hidden, name)
		if !known[name] && slices.Contains(w.brought.files, name) {
			added = append(added, name)
			known[name] = true
		}
	}
	hidden = slices.DeleteFunc(hidden, func(name string) bool { return !known[name] })
	if len(added) > 0 {
		if err := w.amend(ctx, added); err != nil {
			return err
		}
	}
	return w.updateIndex(ctx, hidden, "--skip-worktree")
}

// tracked returns the files that git knows.
func (w *Workspace) tracked(ctx context.Context) (map[string]bool, error) {
	var listed bytes.Buffer
	if err := git.Run(ctx, git.Command{Dir: w.Dir, Args: []string{"ls-files", "-z"}, Stdout: &listed}); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for name := range strings.SplitSeq(listed.String(), "\x00") {
		known[name] = true
	}
	return known, nil
}

// amend adds files to the last commit, which otherwise stays as it is.
func (w *Workspace) amend(ctx context.Context, added []string) error {
	if err := w.updateIndex(ctx, added, "--add"); err != nil {
		return err
	}
	made, err := git.Output(ctx, w.Dir, "log", "-1", "--format=%cn%n%ce%n%cI")
	if err != nil {
		return err
	}
	lines := strings.Split(made, "\n")
	if len(lines) != 3 {
		return errors.New("the last commit does not say who made it")
	}
	err = git.Run(ctx, git.Command{
		Dir: w.Dir,
		Args: []string{
			"-c", "core.logAllRefUpdates=false", "commit", "--amend", "--quiet", "--no-edit", "--no-verify",
			"--no-gpg-sign", "--allow-empty", "--allow-empty-message", "--cleanup=verbatim",
		},
		Env: []string{"GIT_COMMITTER_NAME=" + lines[0], "GIT_COMMITTER_EMAIL=" + lines[1], "GIT_COMMITTER_DATE=" +
			lines[2]},
	})
	if err != nil || w.worktree != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(w.Dir, ".git", "COMMIT_EDITMSG"))
}

func (w *Workspace) updateIndex(ctx context.Context, names []string, how string) error {
	if len(names) == 0 {
		return nil
	}
	return git.Run(ctx, git.Command{
		Dir:   w.Dir,
		Args:  []string{"update-index", how, "-z", "--stdin"},
		Stdin: strings.NewReader(strings.Join(names, "\x00") + "\x00"),
	})
}
