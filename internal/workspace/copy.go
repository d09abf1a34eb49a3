package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/tree"
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

// copyTree copies what the agent left.
func (w *Workspace) copyTree(ctx context.Context, cfg CopyConfig, c *Copy) error {
	walk := tree.Walk{
		MaxFiles: maxFiles,
		MaxBytes: maxBytes,
		Unlock:   true,
	}
	if w.worktree != nil || w.cfg.Task.Settings.Workspace == "worktree" {
		walk.Skip = isGitPath // it only points to the shared repository
	}
	all, err := walk.List(w.Dir)
	if err != nil {
		return err
	}
	links := map[string]string{}
	for _, e := range all {
		if e.IsLink() {
			links[e.Path] = fromInside(w.Dir, e)
		}
	}
	outside, hidden := append(slices.Clone(systemPaths), w.cfg.ReadOnly...), w.hidden()
	if w.containers != nil && cfg.Dest == "" { // graders see it in a container
		outside = []string{"/"}
	}
	drop := func(e *tree.Entry, why string) { c.Dropped = append(c.Dropped, display.Name(e.Path)+": "+why) }
	defer func() { slices.Sort(c.Dropped) }()
	return tree.Copy{Walk: walk, Accept: func(e *tree.Entry) (bool, error) {
		switch {
		case e.IsSpecial():
			drop(e, "neither a regular file, a directory nor a link")
			return false, nil
		case e.IsLink():
			if e.Target = links[e.Path]; escapes(links, e.Path, outside, hidden) {
				drop(e, "a link that leads out of the directory, to "+display.Name(e.Target))
				return false, nil
			}
		}
		return true, nil
	}}.Dir(ctx, w.Dir, c.Dir)
}

// fromInside returns where a symlink leads, relative to the symlink if that is its own tree.
func fromInside(dir string, e tree.Entry) string {
	if rel, ok := strings.CutPrefix(e.Target, dir+"/"); ok {
		return path.Join(strings.Repeat("../", strings.Count(e.Path, "/")), rel)
	}
	return e.Target
}

// hidden are the directories that no link of a copy may lead to: graders see their task and family,
// and in /proc and /dev something of their own.
func (w *Workspace) hidden() []string {
	dirs := []string{"/proc", "/dev"}
	if w.cfg.Task.Dir != "" {
		dirs = append(dirs, w.cfg.Task.Dir)
	}
	if w.cfg.Family != nil {
		dirs = append(dirs, w.cfg.Family.Dir)
	}
	return dirs
}

// escapes reports whether a symlink leads out of its tree. A dangling one, or one to the system, is
// not an escape: what is not there may be made later, at this very place.
func escapes(links map[string]string, name string, outside, hidden []string) bool {
	end, err := tree.Follow(name, func(name string) (string, error) { return links[name], nil })
	switch {
	case err != nil:
		return !errors.Is(err, tree.ErrCircle) // a circle leads nowhere
	case path.IsAbs(end):
		inside := func(dir string) bool { return within(filepath.Clean(dir), end) }
		return !slices.ContainsFunc(outside, inside) || end != os.DevNull && slices.ContainsFunc(hidden, inside)
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
	all, err := tree.Walk{Unlock: true}.List(c.Dir)
	if err != nil {
		return err
	}
	var extra []string
	for _, e := range all {
		if matches(e.Path) && !e.IsDir() {
			extra = append(extra, e.Path)
		}
	}
	for _, name := range extra {
		if err := tree.Remove(to, name); err != nil {
			return err
		}
	}
	c.Restored = extra
	for _, name := range w.base.order {
		if !w.base.nodes[name].IsDir() && matches(name) {
			if err := w.base.put(name, to, name); err != nil {
				return fmt.Errorf("restore %s: %w", display.Name(name), err)
			}
			c.Restored = append(c.Restored, name)
		}
	}
	slices.Sort(c.Restored)
	c.Restored = slices.Compact(c.Restored)
	return nil
}
