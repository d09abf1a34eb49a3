package selfedit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/git"
)

// repository holds the paths of git's data for one working tree.
type repository struct {
	// top is the directory that holds .git.
	top string
	// gitDir is the working tree's own git directory: HEAD is in it. commonDir is shared by all
	// linked worktrees: branches and configuration are in it.
	gitDir, commonDir string
}

// ask runs git in a directory and returns what it printed. Only commands that read are run, whoever
// owns the repository, and none of them fetches.
func ask(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	program, err := systemGit()
	if err != nil {
		return "", err
	}
	silent := errors.New("git does not answer: is one of its files a pipe?")
	ctx, cancel := context.WithTimeoutCause(ctx, gitWait, silent)
	defer cancel()
	var out bytes.Buffer
	err = git.Run(ctx, git.Command{
		Program:    program,
		Dir:        dir,
		Args:       append([]string{"-c", "safe.directory=*"}, args...),
		Env:        append([]string{"PATH=/usr/bin:/bin", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none"}, env...),
		UserConfig: env != nil,
		Stdout:     &out,
	})
	if failed, ok := errors.AsType[*git.Error](err); ok && failed.Stderr != "" {
		// Git's own message is enough; the user need not see how it was called.
		err = errors.New(display.Line(failed.Stderr))
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return strings.TrimSuffix(out.String(), "\n"), err
}

// gitWait bounds a question to git.
const gitWait = time.Minute

// gitPlaces are the usual paths of git. PATH is not used: the caller sets it, and could name a
// program that lies about the branch.
var gitPlaces = []string{
	"/usr/bin/git", "/bin/git", "/usr/local/bin/git", "/opt/homebrew/bin/git",
	"/run/current-system/sw/bin/git", "/nix/var/nix/profiles/default/bin/git",
}

func systemGit() (string, error) {
	for _, path := range gitPlaces {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("git is in none of %s", strings.Join(gitPlaces, ", "))
}

// findRepository returns the repository that holds dir, which must be a path without links. Git
// passes over a .git that it cannot make sense of; that is refused here, because it could lead to
// another repository than the one people mean.
func findRepository(ctx context.Context, dir string) (repository, error) {
	top, err := nearestDotGit(dir)
	if err == nil {
		err = checkNoPipes(filepath.Join(top, ".git"))
	}
	if err != nil {
		return repository{}, err
	}
	said, err := ask(ctx, top, nil, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir",
		"--git-common-dir")
	if err != nil {
		return repository{}, err
	}
	lines := strings.Split(said, "\n")
	if len(lines) != 3 {
		return repository{}, fmt.Errorf("the repository %s has a line break in its path", display.Name(top))
	}
	if !sameFile(lines[0], top) {
		return repository{}, fmt.Errorf("%s has a .git, but its working tree is %s", display.Name(top),
			display.Name(lines[0]))
	}
	repo := repository{top: top, gitDir: lines[1], commonDir: lines[2]}
	for _, dir := range []*string{&repo.gitDir, &repo.commonDir} {
		if *dir, err = filepath.EvalSymlinks(*dir); err != nil {
			return repository{}, err
		}
	}
	return repo, repo.checkWorktree(ctx)
}

// checkNoPipes refuses a git directory in which something other than a file is in the place of one:
// git would wait forever for what comes out of a pipe.
func checkNoPipes(gitDir string) error {
	for _, name := range []string{"HEAD", "config", "config.worktree", "index", "packed-refs", "commondir", "gitdir"} {
		file := filepath.Join(gitDir, name)
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", display.Name(file))
		}
	}
	return nil
}

// nearestDotGit returns the directory nearest upward from dir that has a .git of any kind.
func nearestDotGit(dir string) (string, error) {
	for current := dir; ; current = filepath.Dir(current) {
		info, err := os.Lstat(filepath.Join(current, ".git"))
		switch {
		case err == nil && !info.IsDir() && !info.Mode().IsRegular():
			return "", fmt.Errorf("%s is neither a directory nor a file", display.Name(filepath.Join(current, ".git")))
		case err == nil:
			return current, nil
		case !isAbsent(err):
			return "", err
		case current == filepath.Dir(current):
			return "", fmt.Errorf("%s is in no git repository", display.Name(dir))
		}
	}
}

// checkWorktree makes sure that a linked worktree is the one its repository knows: otherwise a
// stray .git file could borrow the branch of another worktree.
func (r *repository) checkWorktree(ctx context.Context) error {
	if r.gitDir == r.commonDir {
		return nil
	}
	said, err := ask(ctx, r.top, nil, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(said, "\x00") {
		if path, ok := strings.CutPrefix(entry, "worktree "); ok && sameFile(path, r.top) {
			return nil
		}
	}
	return fmt.Errorf("the worktree %s belongs to another directory (git worktree repair fixes that)",
		display.Name(r.gitDir))
}

// head is the content of HEAD.
type head struct {
	// branch is the short name of the branch that a commit would land on; commit is where it is.
	branch, commit string
	// through are the branches that lead to it, which are names for it.
	through []string
}

var (
	errUnborn   = errors.New("it has no commit yet")
	errDetached = errors.New("HEAD is detached")
)

// readHead asks git for the branch and its commit.
func (r *repository) readHead(ctx context.Context) (head, error) {
	if err := r.checkLinks("HEAD", r.gitDir); err != nil {
		return head{}, err
	}
	ref, through, err := r.follow(ctx, "HEAD")
	if err != nil {
		if _, err := ask(ctx, r.top, nil, "rev-parse", "--verify", "HEAD"); err != nil {
			return head{}, err
		}
		return head{}, errDetached
	}
	branch, isBranch := strings.CutPrefix(ref, "refs/heads/")
	if !isBranch {
		return head{}, fmt.Errorf("HEAD of %s leads to %s, which is not a branch", display.Name(r.gitDir),
			display.Name(ref))
	}
	if err := r.checkLinks(ref, r.commonDir); err != nil {
		return head{}, err
	}
	commit, err := ask(ctx, r.top, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", ref)
	if err != nil {
		err = errUnborn
	}
	return head{branch: branch, commit: commit, through: through}, err
}

// maxSymbolic is how many references git follows, one to the other.
const maxSymbolic = 5

// follow returns the reference that a symbolic one ends at, and the branches on the way.
func (r *repository) follow(ctx context.Context, symbolic string) (ref string, through []string, err error) {
	ref = symbolic
	for range maxSymbolic {
		next, err := ask(ctx, r.top, nil, "symbolic-ref", "--quiet", "--no-recurse", ref)
		if err != nil && ref == symbolic { // detached, or a git before 2.39, which names the last one only
			ref, err = ask(ctx, r.top, nil, "symbolic-ref", "--quiet", symbolic)
			return ref, nil, err
		}
		if err != nil { // it is not a symbolic one
			return ref, through, nil
		}
		if branch, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
			if err := r.checkLinks(ref, r.commonDir); err != nil {
				return "", nil, err
			}
			through = append(through, branch)
		}
		ref = next
	}
	return "", nil, fmt.Errorf("%s leads through more than %d references", display.Name(symbolic), maxSymbolic)
}

// checkLinks refuses symbolic links on the way from a git directory to a reference: git follows
// them without saying so, and the name would hide the branch that a commit lands on.
func (r *repository) checkLinks(name, dir string) error {
	for part := range strings.SplitSeq(name, "/") {
		dir = filepath.Join(dir, part)
		if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("the reference %s %w", display.Name(name), errLink)
		}
	}
	return nil
}

// remoteDefaults returns the branches that refs/remotes/*/HEAD name.
func (r *repository) remoteDefaults(ctx context.Context, config []configEntry) ([]string, error) {
	said, err := ask(ctx, r.top, nil, "for-each-ref", "--format=%(refname) %(symref)", "refs/remotes/**/HEAD")
	if err != nil {
		return nil, err
	}
	heads := map[string]string{}
	for line := range strings.SplitSeq(said, "\n") {
		if ref, target, ok := strings.Cut(line, " "); ok && target != "" {
			heads[ref] = target
		}
	}
	for _, entry := range config { // git does not list a HEAD whose branch was never fetched
		name, isURL := strings.CutSuffix(entry.key, ".url")
		if name, ok := strings.CutPrefix(name, "remote."); ok && isURL {
			ref := "refs/remotes/" + name + "/HEAD"
			if target, err := ask(ctx, r.top, nil, "symbolic-ref", "--quiet", ref); err == nil {
				heads[ref] = target
			}
		}
	}
	var branches []string
	for ref, target := range heads {
		branches = append(branches, branchOfRemoteHead(strings.TrimSuffix(ref, "/HEAD"), target)...)
	}
	return branches, nil
}

// branchOfRemoteHead returns what the HEAD in a directory such as refs/remotes/origin can mean.
func branchOfRemoteHead(remote, target string) []string {
	if branch, ok := strings.CutPrefix(target, remote+"/"); ok {
		return []string{branch}
	}
	for _, prefix := range []string{"refs/heads/", "refs/remotes/"} {
		if branch, ok := strings.CutPrefix(target, prefix); ok {
			_, afterRemote, _ := strings.Cut(branch, "/")
			return []string{branch, afterRemote}
		}
	}
	return nil
}

// tracksBelow reports whether the repository's index holds files in a directory. A submodule's
// entry is not one.
func (r *repository) tracksBelow(ctx context.Context, rel string) (bool, error) {
	said, err := ask(ctx, r.top, nil, "--literal-pathspecs", "ls-files", "-z", "--", rel)
	if err != nil {
		return false, err
	}
	for name := range strings.SplitSeq(said, "\x00") {
		if strings.HasPrefix(name, rel+"/") {
			return true, nil
		}
	}
	return false, nil
}

func resolveFrom(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
