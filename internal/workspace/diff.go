package workspace

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/patch"
	"github.com/fit-eval/fit/internal/tree"
)

const (
	// maxPatch bounds a whole patch, maxPatchLines the lines of a file that it shows.
	maxPatch      = 8 << 20
	maxPatchLines = 1 << 20
)

// ofGit reports whether a file belongs to git, in the workspace or in a repository inside it.
func ofGit(name string) bool { return strings.Contains("/"+name+"/", "/.git/") }

// Diff compares the base with what is in Dir now, without what the arm brought. It trusts nothing
// in Dir, neither links nor a .git.
func (w *Workspace) Diff(ctx context.Context) (*Diff, error) {
	if err := w.Withdraw(); err != nil {
		return nil, err
	}
	d, err := w.diff(ctx)
	if err != nil {
		return nil, fmt.Errorf("diff of workspace %s: %w", w.cfg.Name, err)
	}
	return d, nil
}

func (w *Workspace) diff(ctx context.Context) (*Diff, error) {
	now, err := os.OpenRoot(w.Dir)
	if err != nil {
		return nil, err
	}
	defer now.Close()
	before, err := os.OpenRoot(w.base.Dir)
	if err != nil {
		return nil, err
	}
	defer before.Close()
	c := &comparison{before: before, now: now, out: &Diff{}}
	walk := tree.Walk{
		MaxFiles: maxFiles,
		MaxBytes: maxBytes,
		Unlock:   true,
		Skip:     func(name string) bool { return ofGit(name) || ctx.Err() != nil },
	}
	left, err := walk.Hash(w.Dir)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, err
	}
	after := map[string]tree.Entry{}
	for _, e := range left {
		if !e.IsDir() && !e.IsSpecial() {
			after[e.Path] = e
		}
	}
	earlier := map[string]tree.Entry{}
	for name, n := range w.base.nodes {
		if !n.IsDir() && !ofGit(name) {
			earlier[name] = n
		}
	}
	moved, err := c.renames(earlier, after)
	if err != nil {
		return nil, err
	}
	names := maps.Clone(earlier)
	maps.Copy(names, after)
	for _, from := range moved {
		delete(names, from)
	}
	for _, name := range leftoversLast(names) {
		from := cmp.Or(moved[name], name)
		old, hadOld := earlier[from]
		new, hasNew := after[name]
		if err := c.compare(name, from, old, hadOld, new, hasNew); err != nil {
			return nil, fmt.Errorf("%s: %w", display.Name(name), err)
		}
	}
	if c.out.Truncated {
		c.out.Patch = append(c.out.Patch, "# "+patch.CutNote+"\n"...)
	}
	return c.out, nil
}

// leftoversLast sorts names so that what tools leave does not take the room of what was written.
func leftoversLast(files map[string]tree.Entry) []string {
	var written, left []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if tree.Leftover(name) == "" {
			written = append(written, name)
		} else {
			left = append(left, name)
		}
	}
	return append(written, left...)
}

// comparison collects the difference of two trees.
type comparison struct {
	before, now *os.Root
	out         *Diff
}

func (c *comparison) compare(name, from string, old tree.Entry, hadOld bool, new tree.Entry, hasNew bool) error {
	same := hadOld && hasNew && old.IsLink() == new.IsLink() && old.Sum == new.Sum && old.Target == new.Target
	executable := func(n tree.Entry) bool { return n.Mode&0o100 != 0 && !n.IsLink() }
	if same && name == from && executable(old) == executable(new) {
		return nil
	}
	change := FileChange{
		Path:   name,
		Status: "modified",
		Before: named(old.Sum, hadOld),
		After:  named(new.Sum, hasNew),
		Size:   new.Size,
	}
	switch {
	case !hadOld:
		change.Status = "added"
	case !hasNew:
		change.Status = "deleted"
	case old.IsLink() != new.IsLink():
		change.Status = "type"
	case name != from:
		change.Status = "renamed"
	case same:
		change.Status = "mode"
	}
	side := func(root *os.Root, name string, n tree.Entry, there bool) (patchSide, error) {
		s := patchSide{exists: there, mode: gitMode(n)}
		if !there || same {
			return s, nil
		}
		var err error
		s.content, s.binary, err = readForPatch(root, name, n)
		s.long = len(s.content) > maxPatch || bytes.Count(s.content, []byte("\n")) > maxPatchLines
		return s, err
	}
	a, err := side(c.before, from, old, hadOld)
	if err != nil {
		return err
	}
	if hadOld && !same && !old.IsLink() && !a.binary && !a.long &&
		fmt.Sprintf("%x", sha256.Sum256(a.content)) != old.Sum {
		return errBaseChanged
	}
	b, err := side(c.now, name, new, hasNew)
	if err != nil {
		return err
	}
	change.Binary = a.binary || b.binary
	c.out.Files = append(c.out.Files, change)
	c.append(name, from, a, b, change)
	return nil
}

// append adds the patch of one file, if there is room for it.
func (c *comparison) append(name, from string, a, b patchSide, change FileChange) {
	room := maxPatch - len(c.out.Patch) - len("# "+patch.CutNote+"\n")
	var text []byte
	switch {
	case change.Binary:
		text = fmt.Appendf(nil, "# binary file %s: %s\n", change.Status, quotePath("", name))
	case a.long || b.long:
		c.out.Truncated = true
		return
	default:
		text = filePatch(name, from, a, b)
	}
	if len(text) > room {
		c.out.Truncated = true
		return
	}
	c.out.Patch = append(c.out.Patch, text...)
}

func named(hash string, there bool) string {
	if !there || hash == "" {
		return ""
	}
	return "sha256:" + hash
}

func gitMode(n tree.Entry) string {
	switch {
	case n.IsLink():
		return "120000"
	case n.Mode&0o100 != 0:
		return "100755"
	default:
		return "100644"
	}
}

// readForPatch reads what a patch shows of an entry: a file's content, up to the bound of a patch,
// or a link's target.
func readForPatch(root *os.Root, name string, n tree.Entry) (content []byte, binary bool, err error) {
	if n.IsLink() {
		return []byte(n.Target), false, nil
	}
	file, err := tree.Walk{Unlock: true}.Open(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, errors.New("it has disappeared")
	}
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	content, err = io.ReadAll(io.LimitReader(file, maxPatch+1))
	return content, bytes.IndexByte(content, 0) >= 0, err
}
