package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/tree"
)

// Bring is something that an arm brings into the working directory of its agent. It is no part of
// the task: Withdraw takes it away again before anybody compares, copies or grades.
type Bring struct {
	// Name is what messages call it, such as "skill csv-tools".
	Name string
	// Source is a file or a directory of this machine.
	Source string
	// To is the place in the working directory, with slashes: of the file, or of what is in the
	// directory. Empty is the working directory itself.
	To string
	// Alone are the places of which none may exist before; everything that appears at To later is a
	// part of it.
	Alone []string
	// Replaces are paths that are removed first, such as the instruction files of other agents.
	Replaces []string
}

// brought is what was laid over the task's own files.
type brought struct {
	layer *Base
	// files are the paths that were written, and alone the directories that belong to a Bring.
	files, alone []string
	// displaced are the files and links of the base that were replaced or removed.
	displaced []string
	laid      bool // it is there now
	hidden    bool // git does not look at it
}

// getLayer returns the snapshot of what is brought; nil if nothing is.
func (cfg Config) getLayer(ctx context.Context, own string) (*Base, error) {
	if len(cfg.Brings) == 0 {
		return nil, nil //nolint:nilnil // there is none, which is not an error
	}
	if cfg.Bases != nil {
		return cfg.Bases.build(ctx, layerKey(cfg.Brings), func(ctx context.Context, dir string) (*Base, error) {
			return buildLayer(ctx, cfg.Brings, dir)
		})
	}
	if err := os.Mkdir(own, 0o700); err != nil {
		return nil, err
	}
	return buildLayer(ctx, cfg.Brings, own)
}

func layerKey(brings []Bring) string {
	var key strings.Builder
	key.WriteString("brought")
	for _, b := range brings {
		fmt.Fprintf(&key, "\x00%q %q %q", b.Source, b.To, b.Replaces)
	}
	return key.String()
}

// buildLayer copies everything that is brought to its place in the tree of a new directory. Every
// workspace is made from this copy, so that all attempts of an arm get the same.
func buildLayer(ctx context.Context, brings []Bring, dir string) (layer *Base, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, scratch.RemoveAll(dir))
		}
	}()
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return nil, err
	}
	for _, b := range brings {
		if err := b.copyTo(ctx, tree); err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name, err)
		}
	}
	if layer, err = takeSnapshot(tree); err != nil {
		return nil, err
	}
	return layer, layer.checkLinks()
}

func (b Bring) copyTo(ctx context.Context, dir string) error {
	for _, name := range b.Replaces {
		if err := scratch.RemoveAll(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	info, err := os.Stat(b.Source)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		// the history of a skill's own repository is of no use to the agent
		return overlayTree(ctx, task.Overlay{From: b.Source, To: b.To}, dir, isGitPath)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a directory", b.Source)
	}
	real, err := filepath.EvalSymlinks(b.Source)
	if err != nil {
		return err
	}
	from, err := os.OpenRoot(filepath.Dir(real))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer to.Close()
	_, err = tree.Put(from, tree.EntryOf(filepath.Base(real), info), to, b.To)
	return err
}

// lay puts what is brought over the files of the task.
func (w *Workspace) lay(ctx context.Context) error {
	if w.brought.layer == nil || w.brought.laid {
		return nil
	}
	to, err := os.OpenRoot(w.Dir)
	if err != nil {
		return err
	}
	defer to.Close()
	if w.brought.files, w.brought.alone, err = w.layerPlaces(); err != nil {
		return err
	}
	w.brought.displaced = w.displacedFiles()
	w.brought.laid = true
	for _, b := range w.cfg.Brings {
		for _, name := range b.Replaces {
			if err := to.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	at := 0
	for _, name := range w.brought.layer.order {
		if w.brought.layer.nodes[name].IsDir() {
			continue
		}
		place := w.brought.files[at]
		at++
		if err := w.layOne(to, name, place); err != nil {
			return fmt.Errorf("%s: %w", display.Name(place), err)
		}
	}
	if w.brought.hidden { // the repository is the agent's by now
		return nil
	}
	w.brought.hidden = true
	return w.hideFromGit(ctx)
}

func (w *Workspace) layOne(to *os.Root, name, place string) error {
	if before, err := to.Lstat(place); err == nil && before.IsDir() {
		return errors.New("the task has a directory of this name")
	}
	return w.brought.layer.put(name, to, place)
}

// layerPlaces returns where the files of the layer go, in its order, and the directories that
// belong to one Bring alone. Links of the task to other directories of it are followed.
func (w *Workspace) layerPlaces() (files, alone []string, err error) {
	for _, b := range w.cfg.Brings {
		for _, name := range b.Alone {
			dir, err := w.base.resolve(path.Dir(name))
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", b.Name, err)
			}
			place := path.Join(dir, path.Base(name))
			if _, taken := w.base.nodes[place]; taken {
				return nil, nil, &TakenError{Name: b.Name, Path: name, Task: w.cfg.Task.ID}
			}
			if name == b.To {
				alone = append(alone, place)
			}
		}
	}
	for _, name := range w.brought.layer.order {
		if w.brought.layer.nodes[name].IsDir() {
			continue
		}
		dir, err := w.base.resolve(path.Dir(name))
		if err != nil {
			return nil, nil, err
		}
		files = append(files, path.Join(dir, path.Base(name)))
	}
	return files, alone, nil
}

// TakenError says that a task already has what an arm brings.
type TakenError struct {
	Name string // what the arm brings
	Path string // where the task has it
	Task string
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("the arm brings the %s, and task %s has %s already; rename one of them", e.Name, e.Task, e.Path)
}

// resolve follows the links of the base in a directory's path. What leads out of the base, or round
// in circles, is an error.
func (b *Base) resolve(dir string) (string, error) {
	end, err := tree.Follow(dir, func(name string) (string, error) { return b.nodes[name].Target, nil })
	if err == nil && path.IsAbs(end) {
		err = tree.ErrOutside
	}
	if err != nil {
		return "", fmt.Errorf("the link %s %w", display.Name(dir), err)
	}
	return end, nil
}

// displacedFiles returns the files and links of the base that the layer replaces or removes.
func (w *Workspace) displacedFiles() []string {
	gone := map[string]bool{}
	for _, name := range w.brought.files {
		gone[name] = true
	}
	var replaced []string
	for _, b := range w.cfg.Brings {
		replaced = append(replaced, b.Replaces...)
	}
	var displaced []string
	for _, name := range w.base.order {
		if !w.base.nodes[name].IsDir() && (gone[name] ||
			slices.ContainsFunc(replaced, func(dir string) bool { return within(dir, name) })) {
			displaced = append(displaced, name)
		}
	}
	return displaced
}

// Withdraw takes away what was brought, together with everything that the agent did to it, and puts
// the task's own files back. It does so once; the next step of a task brings it again.
func (w *Workspace) Withdraw() error {
	if !w.brought.laid {
		return nil
	}
	w.brought.laid = false
	if err := w.withdraw(); err != nil {
		return fmt.Errorf("workspace %s: take back what the arm brought: %w", w.cfg.Name, err)
	}
	return nil
}

func (w *Workspace) withdraw() error {
	if err := w.restoreDir(); err != nil {
		return err
	}
	root, err := os.OpenRoot(w.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range slices.Concat(w.brought.alone, w.brought.files) {
		if err := w.takeAway(root, name, slices.Contains(w.brought.alone, name)); err != nil {
			return err
		}
	}
	for _, name := range w.brought.displaced {
		if err := w.base.put(name, root, name); err != nil {
			return fmt.Errorf("%s: %w", display.Name(name), err)
		}
	}
	return nil
}

// takeAway removes one path, and the directories above it that only what was brought needed. A path
// that the agent has led elsewhere by a link is no longer ours.
func (w *Workspace) takeAway(root *os.Root, name string, whole bool) error {
	parents := parentsOf(name)
	for _, dir := range parents {
		if info, err := root.Lstat(dir); err != nil || !info.IsDir() {
			return nil
		}
	}
	info, err := root.Lstat(name)
	if err == nil && (whole || !info.IsDir()) {
		// no program of the agent is left that could exchange a directory for a link
		err = tree.Remove(root, name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, dir := range slices.Backward(parents) {
		if _, own := w.base.nodes[dir]; own || root.Remove(dir) != nil { // one with something in it stays
			break
		}
	}
	return nil
}

// parentsOf returns the directories above a path, from the top.
func parentsOf(name string) []string {
	var parents []string
	for at, c := range name {
		if c == '/' {
			parents = append(parents, name[:at])
		}
	}
	return parents
}

// StartHash identifies everything that the agent finds in its working directory: the base, and what
// the arm brings.
func (w *Workspace) StartHash() string {
	if w.brought.layer == nil {
		return w.base.Hash
	}
	sum := sha256.Sum256([]byte(w.base.Hash + " " + w.brought.layer.Hash + " " + layerPlacesText(w.cfg.Brings)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// layerPlacesText writes what is replaced; where the files came from makes no difference.
func layerPlacesText(brings []Bring) string {
	var text strings.Builder
	for _, b := range brings {
		fmt.Fprintf(&text, "%q", b.Replaces)
	}
	return text.String()
}

// ReadStart reads a file as the agent found it.
func (w *Workspace) ReadStart(name string) ([]byte, error) {
	for _, tree := range []*Base{w.brought.layer, w.base} {
		if tree == nil {
			continue
		}
		root, err := os.OpenRoot(tree.Dir)
		if err != nil {
			return nil, err
		}
		content, err := root.ReadFile(filepath.FromSlash(name))
		_ = root.Close() // it was only read
		if !errors.Is(err, fs.ErrNotExist) {
			return content, err
		}
	}
	return nil, &fs.PathError{Op: "open", Path: cmp.Or(name, "."), Err: fs.ErrNotExist}
}
