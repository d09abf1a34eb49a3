package task

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/tree"
)

// repository finds the commit that agents start from.
func (l *specLoader) repository(t *Task) {
	if l.file.Repo.Path == "" {
		return // the schema has said so
	}
	if err := linkOutOf(t.Dir, l.file.Repo.Path); err != nil {
		l.wrong([]string{"repo", "path"}, "%v", err)
		return
	}
	real, err := filepath.EvalSymlinks(resolvePath(t, l.file.Repo.Path))
	if err != nil || !isDir(real) {
		l.wrong([]string{"repo", "path"}, "there is no directory %s", l.file.Repo.Path)
		return
	}
	top, err := git.Output(l.ctx, real, "rev-parse", "--show-toplevel")
	own := err == nil && top == real
	bare := err != nil && exists(filepath.Join(real, "HEAD")) && isDir(filepath.Join(real, "objects"))
	switch {
	case own || bare:
		l.commit(t, real)
	case l.file.Repo.Ref != "":
		l.wrong([]string{"repo", "ref"}, "%s is not the top of a repository, so it has no commits", l.file.Repo.Path)
	default:
		l.plain(t, real)
	}
}

func (l *specLoader) commit(t *Task, repository string) {
	sha, err := git.Resolve(l.ctx, repository, l.file.Repo.Ref)
	switch {
	case err != nil && l.ctx.Err() != nil:
		l.errs = append(l.errs, l.ctx.Err())
		return
	case err != nil:
		path := []string{"repo", "ref"}
		if l.file.Repo.Ref == "" {
			path = []string{"repo", "path"}
		}
		l.wrong(path, "%s has no commit %q", l.file.Repo.Path, cmp.Or(l.file.Repo.Ref, "HEAD"))
		return
	}
	t.Settings.Repo, t.Settings.Ref = repository, sha
	if url, err := git.Output(l.ctx, repository, "config", "--get", "remote.origin.url"); err == nil {
		t.Spec.Origin = url
	}
}

// plain makes a repository of a directory, with one commit that depends only on its files.
func (l *specLoader) plain(t *Task, dir string) {
	repository, sha, err := repositoryOf(l.ctx, dir, l.opts.CacheDir)
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("%s: make a repository of %s: %w", l.name, l.file.Repo.Path, err))
		return
	}
	t.Settings.Repo, t.Settings.Ref = repository, sha
}

// linkOutOf refuses a path in the directory of a task file from which a link leads out of it. A
// path that says itself that it is elsewhere is what its author wrote for all to see.
func linkOutOf(dir, name string) error {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err = tree.Beneath(root, name); errors.As(err, new(*tree.LinkError)) {
		return err
	}
	return nil
}

// resolvePath resolves a path that a task file names, relative to its directory.
func resolvePath(t *Task, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(t.Dir, filepath.FromSlash(path))
}

// reference reads the reference solution.
func (l *specLoader) reference(t *Task) {
	r := l.file.Ref
	if r == (specRef{}) {
		return
	}
	t.Spec.Reference = &Reference{MaxLines: r.MaxLines, MaxFiles: r.MaxFiles}
	if r.Patch == "" {
		return
	}
	if err := linkOutOf(t.Dir, r.Patch); err != nil {
		l.wrong([]string{"reference", "patch"}, "%v", err)
		return
	}
	path := resolvePath(t, r.Patch)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > textLimit {
		l.wrong([]string{"reference", "patch"}, "%s is not a patch file of at most %d bytes", r.Patch, textLimit)
		return
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		t.Spec.Reference.Patch, err = os.ReadFile(real)
	}
	if err != nil {
		l.wrong([]string{"reference", "patch"}, "%v", err)
		return
	}
	t.Spec.Reference.File = real
	if l.tracked(t, real) {
		l.wrong([]string{"reference", "patch"}, "%s is a file of the repository, where agents would read it", r.Patch)
	}
}

// tracked reports whether a file is part of the commit that agents start from.
func (l *specLoader) tracked(t *Task, file string) bool {
	root := t.Settings.Repo
	if root == "" || l.file.Repo.Path == "" {
		return false
	}
	source := resolvePath(t, l.file.Repo.Path)
	if real, err := filepath.EvalSymlinks(source); err == nil {
		source = real
	}
	rel, err := filepath.Rel(source, file)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	_, err = git.Output(l.ctx, root, "cat-file", "-e", t.Settings.Ref+":"+filepath.ToSlash(rel))
	return err == nil
}
