package task

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/git"
)

// repositoryOf makes a repository with one commit that holds the files of a directory. Author and
// time are fixed, so that the same files are the same commit on every machine. It is kept by
// content.
func repositoryOf(ctx context.Context, dir, cache string) (repository, sha string, err error) {
	cache, err = Options{CacheDir: cache}.cacheDir()
	if err != nil {
		return "", "", err
	}
	entries, err := walkTree(dir, isGenerated)
	if err != nil {
		return "", "", err
	}
	content := newDigester()
	if err := content.addTree("", entries); err != nil {
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
	if err := fillRepository(ctx, dir, scratch, entries); err != nil {
		return "", "", err
	}
	// Another process may have been faster; the result is the same.
	if err := os.Rename(scratch, repository); err != nil && !isDir(repository) {
		return "", "", err
	}
	sha, err = git.Resolve(ctx, repository, "")
	return repository, sha, err
}

func fillRepository(ctx context.Context, dir, into string, entries []entry) error {
	for _, e := range entries {
		to := filepath.Join(into, filepath.FromSlash(e.path))
		var err error
		switch {
		case e.mode.IsDir():
			err = os.MkdirAll(to, 0o755)
		case e.target != "":
			err = os.Symlink(e.target, to)
		case e.mode.IsRegular():
			var data []byte
			if data, err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(e.path))); err == nil {
				err = os.WriteFile(to, data, e.mode.Perm()|0o600)
			}
		default:
			err = errors.New(e.path + " is neither a regular file, a directory nor a link")
		}
		if err != nil {
			return err
		}
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
