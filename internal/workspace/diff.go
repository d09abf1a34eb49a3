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

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/tree"
)

const (
	// maxPatch bounds a whole patch, maxPatchFile the files that are compared line by line.
	maxPatch     = 8 << 20
	maxPatchFile = 1 << 20
)

// CutNote is in a comment at the end of a patch that was cut.
const CutNote = "the patch is cut here: it is too large"

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
		Skip:     func(name string) bool { return isGitPath(name) || ctx.Err() != nil },
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
	names := maps.Clone(after)
	for name, n := range w.base.nodes {
		if !n.IsDir() && !isGitPath(name) {
			names[name] = n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, hadOld := w.base.nodes[name]
		new, hasNew := after[name]
		if err := c.compare(name, old, hadOld && !old.Mode.IsDir(), new, hasNew); err != nil {
			return nil, fmt.Errorf("%s: %w", display.Name(name), err)
		}
	}
	return c.out, nil
}

// comparison collects the difference of two trees.
type comparison struct {
	before, now *os.Root
	out         *Diff
}

func (c *comparison) compare(name string, old tree.Entry, hadOld bool, new tree.Entry, hasNew bool) error {
	same := hadOld && hasNew && old.IsLink() == new.IsLink() && old.Sum == new.Sum && old.Target == new.Target
	executable := func(n tree.Entry) bool { return n.Mode&0o100 != 0 && !n.IsLink() }
	if same && executable(old) == executable(new) {
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
	case same:
		change.Status = "mode"
	}
	side := func(root *os.Root, n tree.Entry, there bool) (patchSide, error) {
		s := patchSide{exists: there, mode: gitMode(n)}
		if !there || same {
			return s, nil
		}
		var err error
		s.content, s.binary, err = readForPatch(root, name, n)
		return s, err
	}
	a, err := side(c.before, old, hadOld)
	if err != nil {
		return err
	}
	if hadOld && !same && !old.IsLink() && !a.binary &&
		fmt.Sprintf("%x", sha256.Sum256(a.content)) != old.Sum {
		return errBaseChanged
	}
	b, err := side(c.now, new, hasNew)
	if err != nil {
		return err
	}
	change.Binary = a.binary || b.binary
	c.out.Files = append(c.out.Files, change)
	c.append(name, a, b, change)
	return nil
}

// append adds the patch of one file, as long as there is room.
func (c *comparison) append(name string, a, b patchSide, change FileChange) {
	var text []byte
	if change.Binary {
		text = fmt.Appendf(nil, "# binary file %s: %s\n", change.Status, quotePath("", name))
	} else {
		text = filePatch(name, a, b)
	}
	if c.out.Truncated {
		return
	}
	if len(c.out.Patch)+len(text) > maxPatch {
		c.out.Truncated = true
		text = []byte("# " + CutNote + "\n")
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

// readForPatch reads what a patch shows of an entry: a file's content or a link's target. What is
// too large to compare counts as binary.
func readForPatch(root *os.Root, name string, n tree.Entry) (content []byte, binary bool, err error) {
	if n.IsLink() {
		return []byte(n.Target), false, nil
	}
	if n.Size > maxPatchFile {
		return nil, true, nil
	}
	file, err := tree.Walk{Unlock: true}.Open(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, errors.New("it has disappeared")
	}
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	content, err = io.ReadAll(io.LimitReader(file, maxPatchFile+1))
	if err != nil {
		return nil, false, err
	}
	return content, len(content) > maxPatchFile || bytes.IndexByte(content, 0) >= 0, nil
}
