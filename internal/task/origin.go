package task

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/jsonlines"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// Origin says where a family comes from: a directory, or a subdirectory of a git repository at a
// reference.
type Origin struct {
	Path   string // a local directory; empty for a repository
	URL    string
	Subdir string
	Ref    string
}

var gitURL = lazyregexp.New(`^(git@|https?://|ssh://|git://|file://)`)

// ParseOrigin reads a path or url//subdir@ref.
func ParseOrigin(text string) (Origin, error) {
	if text == "" {
		return Origin{}, errors.New("no family: name a directory or a git URL")
	}
	if !gitURL.MatchString(text) {
		return Origin{Path: text}, nil
	}
	host := 0 // where the part begins in which // and @ have their meaning
	if i := strings.Index(text, "://"); i >= 0 {
		host = i + len("://")
		if slash := strings.IndexByte(text[host:], '/'); slash >= 0 {
			host += slash
		} else {
			host = len(text)
		}
	} else if colon := strings.IndexByte(text, ':'); colon >= 0 {
		host = colon
	}
	o := Origin{}
	rest := text[host:]
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest, o.Ref = rest[:at], rest[at+1:]
		if o.Ref == "" || strings.HasPrefix(o.Ref, "-") {
			return Origin{}, fmt.Errorf("family %s: no reference after @", text)
		}
	}
	if strings.HasPrefix(rest, "//") { // file:////… and the like: the path itself begins with two slashes
		rest = rest[1:]
	}
	if cut := strings.Index(rest, "//"); cut >= 0 {
		rest, o.Subdir = rest[:cut], strings.Trim(rest[cut+2:], "/")
		if !filepath.IsLocal(o.Subdir) {
			return Origin{}, fmt.Errorf("family %s: %q is not a directory of the repository", text, o.Subdir)
		}
	}
	o.URL = text[:host] + rest
	return o, nil
}

// fetch fetches a repository at a reference into the cache and returns its directory and commit.
// Every commit has its own directory, which is made once and never changed, so several runs can use
// it at the same time.
func fetch(ctx context.Context, o Origin, cache string) (dir, sha string, err error) {
	key := sha256.Sum256([]byte(o.URL + "\x00" + o.Ref))
	home := filepath.Join(cache, hex.EncodeToString(key[:8]))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", "", err
	}
	unlock, err := jsonlines.LockFile(ctx, filepath.Join(home, "lock"))
	if err != nil {
		return "", "", fmt.Errorf("cache of families: %w", err)
	}
	defer unlock()
	if commitName.MatchString(o.Ref) { // it cannot have changed
		if dir := filepath.Join(home, o.Ref); isDir(dir) {
			return dir, o.Ref, nil
		}
	}
	store := filepath.Join(home, "store.git")
	if !isDir(store) {
		if err := git.Run(ctx, git.Command{Args: []string{"init", "--quiet", "--bare", store}}); err != nil {
			return "", "", err
		}
	}
	ref := cmp.Or(o.Ref, "HEAD")
	fetching := git.Command{
		Dir:  store,
		Args: []string{"fetch", "--quiet", "--depth", "1", "--no-tags", "--", o.URL, ref}, UserConfig: true,
	}
	if err := git.Run(ctx, fetching); err != nil {
		return "", "", fmt.Errorf("fetch family %s: %w; check the address and your access to it, or clone it and "+
			"use the directory", o.URL, err)
	}
	if sha, err = git.Resolve(ctx, store, "FETCH_HEAD"); err != nil {
		return "", "", err
	}
	dir = filepath.Join(home, sha)
	if isDir(dir) {
		return dir, sha, nil
	}
	return dir, sha, checkOut(ctx, store, sha, dir)
}

// checkOut writes the files of a commit into a new directory, atomically.
func checkOut(ctx context.Context, store, sha, dir string) error {
	partial, err := os.MkdirTemp(filepath.Dir(dir), "partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(partial, "index")}
	if err := git.Run(ctx, git.Command{Dir: store, Args: []string{"read-tree", sha}, Env: index}); err != nil {
		return err
	}
	tree := filepath.Join(partial, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return err
	}
	args := []string{"--work-tree=" + tree, "checkout-index", "--all", "--quiet", "--prefix=" + tree + "/"}
	if err := git.Run(ctx, git.Command{Dir: store, Args: args, Env: append(index, "GIT_DIR="+store)}); err != nil {
		return err
	}
	return os.Rename(tree, dir)
}

var commitName = lazyregexp.New(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
