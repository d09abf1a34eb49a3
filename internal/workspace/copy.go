package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/scratch"
)

// systemPaths are what every sandbox shows read-only. Links to them are kept: an environment that
// an agent has made for its tests is full of them.
var systemPaths = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store"}

// Copy copies the workspace for graders, without what the arm brought. No link is followed; special
// files, and links that lead outside, are left out.
func (w *Workspace) Copy(ctx context.Context, cfg CopyConfig) (*Copy, error) {
	patterns, err := compileGlobs(cfg.Restore)
	if err != nil {
		return nil, err
	}
	c := &Copy{root: filepath.Join(w.Root, "copies", strconv.FormatInt(w.copies.Add(1), 10))}
	c.Dir, c.Home, c.TmpDir = filepath.Join(c.root, "work"), filepath.Join(c.root, "home"), filepath.Join(c.root, "tmp")
	if cfg.Dest != "" {
		if c.Dir, err = filepath.Abs(cfg.Dest); err != nil {
			return nil, err
		}
	}
	err = w.fillCopy(ctx, cfg, c, patterns)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("copy of workspace %s: %w", w.cfg.Name, err), c.Remove())
	}
	return c, nil
}

func (w *Workspace) fillCopy(ctx context.Context, cfg CopyConfig, c *Copy, patterns []glob.Pattern) error {
	if err := makeEmpty(c.Dir); err != nil {
		return err
	}
	if err := os.Chmod(c.Dir, 0o755); err != nil {
		return err
	}
	if cfg.Dest == "" { // otherwise it is kept, and no program works in it
		if err := errors.Join(os.Mkdir(c.Home, 0o700), os.Mkdir(c.TmpDir, 0o700)); err != nil {
			return err
		}
		if err := w.prepareCaches(c.Home); err != nil {
			return err
		}
	}
	if w.containers != nil {
		c.end = func() error { return w.closeContainers("", c.Dir) }
	}
	if cfg.FromBase {
		c.Files = len(w.base.order)
		return w.base.copyTo(ctx, c.Dir, nil)
	}
	if err := w.Withdraw(); err != nil {
		return err
	}
	if err := w.copyTree(ctx, cfg, c); err != nil {
		return err
	}
	return w.restore(c, patterns)
}

// Restore puts the repository and some files of a copy back as they were in the base, and removes
// what was not there.
func (w *Workspace) Restore(c *Copy, names []string) error {
	return w.restoreMatching(c, func(name string) bool { return isGitPath(name) || slices.Contains(names, name) })
}

// Remove deletes the copy.
func (c *Copy) Remove() error {
	var err error
	if c.end != nil {
		err = c.end()
	}
	err = errors.Join(err, scratch.RemoveAll(c.root))
	if !within(c.root, c.Dir) {
		err = errors.Join(err, scratch.RemoveAll(c.Dir))
	}
	return err
}

// copier copies one hostile tree.
type copier struct {
	ctx   context.Context
	to    *os.Root
	out   *Copy
	nodes map[string]node // directories and links, to find out where links lead
	limit int64
}

func (w *Workspace) copyTree(ctx context.Context, cfg CopyConfig, c *Copy) error {
	from, err := os.OpenRoot(w.Dir)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(c.Dir)
	if err != nil {
		return err
	}
	defer to.Close()
	walk := walker{
		maxFiles: cmp.Or(cfg.MaxFiles, defaultMaxFiles),
		maxBytes: cmp.Or(cfg.MaxBytes, defaultMaxBytes),
	}
	if w.worktree != nil || w.cfg.Task.Settings.Workspace == "worktree" {
		walk.skip = isGitPath // it only points to the shared repository
	}
	cp := &copier{
		ctx:   ctx,
		to:    to,
		out:   c,
		nodes: map[string]node{},
		limit: walk.maxBytes,
	}
	walk.visit = cp.visit
	if err := walk.walk(from); err != nil {
		return err
	}
	outside := append(slices.Clone(systemPaths), w.cfg.ReadOnly...)
	if w.containers != nil && cfg.Dest == "" { // graders see it in a container
		outside = []string{"/"}
	}
	return cp.links(w.Dir, outside)
}

func (cp *copier) visit(dir *os.Root, base string, n node) error {
	if err := cp.ctx.Err(); err != nil {
		return err
	}
	switch {
	case n.Mode.IsDir():
		cp.nodes[n.Path] = n
		return cp.to.Mkdir(n.Path, 0o755)
	case n.isLink():
		cp.nodes[n.Path] = n
		return nil
	case n.isSpecial():
		cp.drop(n.Path, "neither a regular file, a directory nor a link")
		return nil
	}
	_, size, err := copyFile(dir, base, cp.to, n.Path, n.Mode.Perm()|0o600, cp.limit)
	cp.nodes[n.Path] = node{Path: n.Path}
	cp.out.Files++
	cp.out.Bytes += size
	return err
}

func (cp *copier) drop(name, why string) {
	cp.out.Dropped = append(cp.out.Dropped, display.Name(name)+": "+why)
}

// links creates the links of the tree, once their targets are known.
func (cp *copier) links(source string, outside []string) error {
	for name, n := range cp.nodes {
		if rel, ok := strings.CutPrefix(n.Target, source+"/"); ok && n.isLink() { // an absolute link to the tree itself
			back := strings.Repeat("../", strings.Count(name, "/"))
			n.Target = path.Join(back, rel)
			cp.nodes[name] = n
		}
	}
	for name, n := range cp.nodes {
		if !n.isLink() {
			continue
		}
		if cp.escapes(name, outside) {
			cp.drop(name, "a link that leads out of the directory, to "+display.Name(n.Target))
			continue
		}
		if err := cp.to.Symlink(n.Target, name); err != nil {
			return err
		}
		cp.out.Files++
	}
	slices.Sort(cp.out.Dropped)
	return nil
}

// escapes resolves a link the way the kernel would. A dangling link, or one to the system, is not
// an escape.
func (cp *copier) escapes(link string, outside []string) bool {
	pending := strings.Split(link, "/")
	var at []string
	for hops := 0; len(pending) > 0; {
		step := pending[0]
		pending = pending[1:]
		if step == "" || step == "." {
			continue
		}
		if step == ".." {
			if len(at) == 0 {
				return true
			}
			at = at[:len(at)-1]
			continue
		}
		next := strings.Join(append(slices.Clone(at), step), "/")
		n, ok := cp.nodes[next]
		if !ok || !n.isLink() {
			at = append(at, step) // what is not there may be made later, at this very place
			continue
		}
		if path.IsAbs(n.Target) {
			final := path.Join(n.Target, path.Join(pending...))
			return !slices.ContainsFunc(outside, func(dir string) bool { return within(filepath.Clean(dir), final) })
		}
		if hops++; hops > 40 {
			return false // a circle leads nowhere
		}
		pending = append(strings.Split(n.Target, "/"), pending...)
	}
	return false
}

func compileGlobs(sources []string) ([]glob.Pattern, error) {
	var patterns []glob.Pattern
	for _, source := range sources {
		pattern, err := glob.Compile(source)
		if err == nil && !strings.Contains(source, "/") {
			pattern, err = glob.Compile("**/" + source)
		}
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, pattern)
	}
	return patterns, nil
}

// restore puts the files that match back as they were in the base, and removes those that were not
// there.
func (w *Workspace) restore(c *Copy, patterns []glob.Pattern) error {
	if len(patterns) == 0 {
		return nil
	}
	return w.restoreMatching(c, func(name string) bool {
		return slices.ContainsFunc(patterns, func(p glob.Pattern) bool { return p.Match(name) })
	})
}

func (w *Workspace) restoreMatching(c *Copy, matches func(name string) bool) error {
	to, err := os.OpenRoot(c.Dir)
	if err != nil {
		return err
	}
	defer to.Close()
	from, err := os.OpenRoot(w.base.Dir)
	if err != nil {
		return err
	}
	defer from.Close()
	var extra []string
	found := walker{visit: func(_ *os.Root, _ string, n node) error {
		if matches(n.Path) && !n.Mode.IsDir() {
			extra = append(extra, n.Path)
		}
		return nil
	}}
	if err := found.walk(to); err != nil {
		return err
	}
	for _, name := range extra {
		if err := to.Remove(name); err != nil {
			return err
		}
	}
	c.Restored = extra
	for _, name := range w.base.order {
		if n := w.base.nodes[name]; !n.Mode.IsDir() && matches(name) {
			if err := w.base.putBack(from, to, n); err != nil {
				return fmt.Errorf("restore %s: %w", display.Name(name), err)
			}
			c.Restored = append(c.Restored, name)
		}
	}
	slices.Sort(c.Restored)
	c.Restored = slices.Compact(c.Restored)
	return nil
}

// putBack writes one file of the base, replacing anything in its way.
func (b *Base) putBack(from, to *os.Root, n node) error {
	if err := ClearWay(to, path.Dir(n.Path)); err != nil {
		return err
	}
	if err := to.RemoveAll(n.Path); err != nil {
		return err
	}
	return b.copyNode(from, to, n)
}

// ClearWay makes every part of dir a real directory below a root, replacing anything in the way. No
// link is followed.
func ClearWay(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	at := ""
	for part := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, part)
		info, err := root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case info.IsDir():
			if info.Mode().Perm()&0o700 != 0o700 {
				if err := root.Chmod(at, info.Mode().Perm()|0o700); err != nil {
					return err
				}
			}
			continue
		default:
			if err := root.Remove(at); err != nil {
				return err
			}
		}
		if err := root.Mkdir(at, 0o755); err != nil {
			return err
		}
	}
	return nil
}
