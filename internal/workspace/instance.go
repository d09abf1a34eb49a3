package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/scratch"
)

// writeInstance makes the repository of a SWE-bench task in the tree of a base: the one that its
// image has, or one on this machine. Only the commit that agents start from, and what came before
// it, is in it: later commits have the solution, and neither a reference nor an object of them is
// left.
func writeInstance(ctx context.Context, cfg Config, tree string) error {
	instance := cfg.Task.Instance
	source := instance.Repository
	inside := inContainer(cfg.Isolation, cfg.Task)
	switch {
	case inside:
		source = tree
		if info, err := os.Stat(filepath.Join(tree, ".git")); err != nil || !info.IsDir() {
			return fmt.Errorf("the image %s has no git repository at %s", cfg.Task.Settings.Environment.Name(),
				cfg.Task.Settings.Environment.Workdir)
		}
	case source == "":
		return errors.New("the repository of the task is in its image: run it in a container, or name a directory of " +
			"repositories in family.yaml (repositories:)")
	}
	head, err := git.Resolve(ctx, source, instance.BaseCommit)
	if inside {
		if head, err = imageHead(ctx, tree, head, err == nil); err != nil {
			return fmt.Errorf("the repository of the image %s: %w", cfg.Task.Settings.Environment.Name(), err)
		}
	}
	if err != nil {
		return fmt.Errorf("the repository %s has no commit %s", source, instance.BaseCommit)
	}
	if err := sealHistory(ctx, source, head, tree); err != nil {
		return fmt.Errorf("history of %s: %w", instance.Repo, err)
	}
	if inside {
		return removeNested(tree)
	}
	return git.Run(ctx, git.Command{Dir: tree, Args: []string{"checkout-index", "--all", "--quiet"}})
}

// imageHead returns the commit of the files of an image: the base, or the one commit that SWE-bench
// makes of what was installed. A repository that lacks the base has been sealed before.
func imageHead(ctx context.Context, tree, base string, hasBase bool) (string, error) {
	head, err := git.Resolve(ctx, tree, "HEAD")
	if err != nil || !hasBase || head == base {
		return head, err
	}
	if parents, err := git.Output(ctx, tree, "rev-list", "--parents", "-n", "1", head); err != nil ||
		parents != head+" "+base {
		return "", fmt.Errorf("its HEAD is %.12s, which is neither the base commit %.12s nor made directly from it",
			head, base)
	}
	return head, nil
}

// sealHistory replaces the repository of a tree with one that has only a commit of the source and
// its ancestors.
func sealHistory(ctx context.Context, source, head, tree string) error {
	fresh, err := os.MkdirTemp(filepath.Dir(tree), "history-")
	if err != nil {
		return err
	}
	defer func() { _ = scratch.RemoveAll(fresh) }()
	template := filepath.Join(fresh, "template") // an empty one: no hooks, no examples
	at := filepath.Join(fresh, ".git")
	calls := []git.Command{
		{Dir: fresh, Args: []string{"init", "--quiet", "--initial-branch=main", "--template=" + template}},
		{
			Dir: source,
			Args: []string{
				"pack-objects", "--revs", "--quiet", "--delta-base-offset", "--threads=2",
				filepath.Join(at, "objects", "pack", "pack"),
			},
			Stdin: strings.NewReader(head + "\n"),
		},
	}
	for _, call := range calls {
		if err := git.Run(ctx, call); err != nil {
			return err
		}
	}
	if err := keepShallow(ctx, source, fresh); err != nil {
		return err
	}
	for _, args := range [][]string{{"update-ref", "refs/heads/main", head}, {"read-tree", head}} {
		if err := git.Run(ctx, git.Command{Dir: fresh, Args: args}); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(at, "logs")); err != nil {
		return err
	}
	if err := scratch.RemoveAll(filepath.Join(tree, ".git")); err != nil {
		return err
	}
	return os.Rename(at, filepath.Join(tree, ".git"))
}

// keepShallow marks the commits of the new repository whose parents are missing.
func keepShallow(ctx context.Context, source, fresh string) error {
	from, err := git.Output(ctx, source, "rev-parse", "--path-format=absolute", "--git-path", "shallow")
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept bytes.Buffer
	for line := range strings.Lines(string(content)) {
		sha := strings.TrimSpace(line)
		if _, err := git.Output(ctx, fresh, "cat-file", "-e", sha); err == nil {
			kept.WriteString(sha + "\n")
		}
	}
	if kept.Len() == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(fresh, ".git", "shallow"), kept.Bytes(), 0o600)
}

// removeNested removes the repositories of submodules, whose history is not sealed. Their files
// stay.
func removeNested(tree string) error {
	var found []string
	err := filepath.WalkDir(tree, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != ".git" {
			return err
		}
		if filepath.Dir(name) != tree {
			found = append(found, name)
		}
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	for _, name := range found {
		err = errors.Join(err, scratch.RemoveAll(name))
	}
	return err
}
