package task

import (
	"context"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/tree"
)

// repositoryOf makes a repository with one commit that holds the files of a directory. Author and
// time are fixed, so that the same files are the same commit on every machine. It is kept by
// content.
func repositoryOf(ctx context.Context, dir, cache string) (repository, sha string, err error) {
	cache, err = Options{CacheDir: cache}.cacheDir()
	if err != nil {
		return "", "", err
	}
	content := newDigester()
	if err := content.addDir("", dir, isGenerated); err != nil {
		return "", "", err
	}
	repository = filepath.Join(cache, "plain", content.String()[len("sha256:"):][:32])
	if sha, err := git.Resolve(ctx, repository, ""); err == nil {
		return repository, sha, nil
	}
	if err := os.MkdirAll(filepath.Dir(repository), 0o700); err != nil {
		return "", "", err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(repository), "new-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(scratch)
	if err := fillRepository(ctx, dir, scratch); err != nil {
		return "", "", err
	}
	// Another process may have been faster; the result is the same.
	if err := os.Rename(scratch, repository); err != nil && !isDir(repository) {
		return "", "", err
	}
	sha, err = git.Resolve(ctx, repository, "")
	return repository, sha, err
}

func fillRepository(ctx context.Context, dir, into string) error {
	if err := (tree.Copy{Walk: tree.Walk{Skip: isGenerated}}).Dir(ctx, dir, into); err != nil {
		return err
	}
	env := []string{"GIT_AUTHOR_DATE=2000-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2000-01-01T00:00:00Z"}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main", "--template="},
		{"add", "--all", "--force", "."},
		{"commit", "--quiet", "--allow-empty", "--no-gpg-sign", "--message=base"},
	} {
		if err := git.Run(ctx, git.Command{Dir: into, Args: args, Env: env}); err != nil {
			return err
		}
	}
	return nil
}
