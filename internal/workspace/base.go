package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/memo"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/tree"
)

// Base is the content that an agent starts from: a tree on disk that no agent sees, and the hash of
// every file in it, which is kept in memory.
type Base struct {
	// Hash identifies the whole content, modes included: "sha256:…".
	Hash string
	// Dir is the directory of the tree. It must not be changed.
	Dir   string
	nodes map[string]tree.Entry
	order []string // paths, sorted so that directories come before what is in them
	// checkedOut says that git checks out exactly these files from the commit, which is faster than
	// copying them.
	checkedOut bool
}

// Bases keeps the snapshots that workspaces start from: built once for all attempts at the same
// task, and once for all attempts of the same arm.
type Bases struct {
	dir  string
	all  memo.Table[*Base]
	mu   sync.Mutex
	dirs []string // of the snapshots
}

// NewBases keeps snapshots below a private directory, which is made when it is needed.
func NewBases(dir string) *Bases { return &Bases{dir: dir} }

// Close deletes the snapshots, when no workspace is made from them any more.
func (b *Bases) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, dir := range b.dirs {
		errs = append(errs, scratch.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

// get builds the base of a configuration, or waits for a build that is running.
func (b *Bases) get(ctx context.Context, cfg Config) (*Base, error) {
	return b.build(ctx, baseKey(cfg), func(ctx context.Context, dir string) (*Base, error) {
		return buildBase(ctx, cfg, dir)
	})
}

// build makes a snapshot in a new directory, once for each key.
func (b *Bases) build(ctx context.Context, key string, make func(context.Context, string) (*Base, error),
) (*Base, error) {
	return b.all.Get(ctx, key, func() (*Base, error) {
		if err := os.MkdirAll(b.dir, 0o700); err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp(b.dir, "base-")
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		b.dirs = append(b.dirs, dir)
		b.mu.Unlock()
		// Others wait for it: the first caller must not take it from them by giving up.
		return make(context.WithoutCancel(ctx), dir)
	})
}

// baseKey names what a base is made from.
func baseKey(cfg Config) string {
	content := cfg.Task.Digest.Visible
	if cfg.Task.Sample != nil { // samples that differ only in what they ask share one
		content = "sample " + cfg.Task.Files.Visible
	}
	return strings.Join([]string{
		cfg.Task.Dir, content, cfg.skills(), cfg.skillsDir(), cfg.NodeModules, cfg.Task.Settings.Workspace,
		cfg.Task.Settings.Repo, cfg.Task.Settings.Ref, imageKey(cfg),
	}, "\x00")
}

// imageKey names the image whose files a base has.
func imageKey(cfg Config) string {
	if !inContainer(cfg.Isolation, cfg.Task) {
		return ""
	}
	env := cfg.Task.Settings.Environment
	return strings.Join([]string{env.Image, env.Content, env.Workdir, env.Skills}, " ")
}

// buildBase lays all overlays over each other in the tree of a new directory. On an error the
// directory is removed.
func buildBase(ctx context.Context, cfg Config, dir string) (base *Base, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, scratch.RemoveAll(dir))
		}
	}()
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return nil, err
	}
	if err := cfg.imageTree(ctx, tree); err != nil {
		return nil, err
	}
	if cfg.Task.Instance != nil {
		if err := writeInstance(ctx, cfg, tree); err != nil {
			return nil, err
		}
	}
	var committed *Base // git's checkout of the commit that agents see
	if cfg.Task.Settings.Repo != "" {
		if err := exportRepository(ctx, cfg.Task.Settings, tree); err != nil {
			return nil, err
		}
		if committed, err = takeSnapshot(tree); err != nil {
			return nil, err
		}
	}
	for _, overlay := range cfg.overlays() {
		if err := overlayTree(ctx, overlay.Overlay, tree, overlay.skip); err != nil {
			return nil, fmt.Errorf("overlay %s: %w", overlay.From, err)
		}
	}
	if err := writeSample(cfg.Task.Sample, tree); err != nil {
		return nil, err
	}
	if err := renderEnv(cfg.Task.Env, tree); err != nil {
		return nil, err
	}
	exported := cfg.Task.Settings.Repo != "" && cfg.Task.Settings.Workspace != "worktree"
	if exported {
		if err := stageAll(ctx, tree, filepath.Join(dir, "template")); err != nil {
			return nil, err
		}
	}
	if cfg.Task.Spec != nil && cfg.Task.Spec.SetupCommand != "" {
		if err := runSetup(ctx, cfg, tree, filepath.Join(dir, "setup")); err != nil {
			return nil, err
		}
	}
	if exported {
		if err := commitAll(ctx, tree); err != nil {
			return nil, err
		}
		if committed, err = checkOut(ctx, tree, filepath.Join(dir, "checkout")); err != nil {
			return nil, err
		}
	}
	if base, err = takeSnapshot(tree); err != nil {
		return nil, err
	}
	base.checkedOut = committed != nil && committed.Hash == base.Hash
	if inContainer(cfg.Isolation, cfg.Task) {
		return base, nil // links lead where they lead in the container
	}
	return base, base.checkLinks()
}

// checkLinks refuses links that lead outside over other links. Dangling links are allowed here:
// packages are full of them.
func (b *Base) checkLinks() error {
	root, err := os.OpenRoot(b.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range b.order {
		if n := b.nodes[name]; n.IsLink() {
			if _, err := root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("the link %s to %s: %w", display.Name(name), display.Name(n.Target), err)
			}
		}
	}
	return nil
}

// takeSnapshot hashes a tree.
func takeSnapshot(dir string) (*Base, error) {
	entries, err := tree.Walk{}.Hash(dir)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	b := &Base{Dir: dir, nodes: map[string]tree.Entry{}}
	sum := sha256.New()
	for _, e := range entries {
		b.nodes[e.Path] = e
		b.order = append(b.order, e.Path)
		if !isGitPath(e.Path) { // an index holds times; what the repository contains is in the files
			fmt.Fprintf(sum, "%q %o %s %q\n", e.Path, e.Mode.Perm()|e.Mode.Type(), e.Sum, e.Target)
		}
	}
	b.Hash = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return b, nil
}

func isGitPath(name string) bool { return name == ".git" || strings.HasPrefix(name, ".git/") }

// copyTo copies the base into a directory that is empty. Every file is checked on the way: a
// changed base is useless.
func (b *Base) copyTo(ctx context.Context, dest string, skip func(name string) bool) error {
	missing := len(b.order)
	if skip != nil {
		missing -= len(slices.DeleteFunc(slices.Clone(b.order), func(name string) bool { return !skip(name) }))
	}
	err := tree.Copy{Walk: tree.Walk{Skip: skip}, Copied: func(e tree.Entry) error {
		missing--
		return b.check(e)
	}}.Dir(ctx, b.Dir, dest)
	if err == nil && missing != 0 {
		err = errBaseChanged
	}
	return err
}

// check compares what was copied with what the base had.
func (b *Base) check(e tree.Entry) error {
	if known := b.nodes[e.Path]; known.Mode != e.Mode || known.Sum != e.Sum || known.Target != e.Target {
		return errBaseChanged
	}
	return nil
}

// put copies one file or symlink of the base to a place below a root, instead of whatever is there.
func (b *Base) put(name string, to *os.Root, place string) error {
	from, err := os.OpenRoot(b.Dir)
	if err != nil {
		return err
	}
	defer from.Close()
	n := b.nodes[name]
	sum, err := tree.Put(from, n, to, place)
	if err == nil && sum != n.Sum {
		err = errBaseChanged
	}
	return err
}

var errBaseChanged = errors.New("the base snapshot has been changed")
