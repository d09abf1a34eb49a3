package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/task"
)

// Prepare makes a workspace: base, overlays in order, the family's skills, environment files, home,
// temporary directory, port, and what the arm brings. On an error nothing is left behind.
func Prepare(ctx context.Context, cfg Config) (*Workspace, error) {
	w, err := create(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", cfg.Name, err)
	}
	for _, step := range []func(context.Context) error{w.fill, w.bring, w.openAgent} {
		if err = step(ctx); err != nil {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("workspace %s: %w", cfg.Name, err), w.Remove(context.WithoutCancel(ctx)))
	}
	return w, nil
}

// Adopt makes a workspace around an existing final directory, so that a stored run can be graded
// again. Nothing in dir is changed, and Remove leaves it.
func Adopt(ctx context.Context, cfg Config, dir string) (*Workspace, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, errors.Join(fmt.Errorf("stored run %s: not a directory", dir), err)
	}
	w, err := create(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", cfg.Name, err)
	}
	w.Dir, w.adopted = dir, true
	if err := errors.Join(w.takeBase(ctx), w.startBeside(ctx)); err != nil {
		return nil, errors.Join(fmt.Errorf("workspace %s: %w", cfg.Name, err), w.Remove(context.WithoutCancel(ctx)))
	}
	return w, nil
}

// create makes the directories around the working directory, reserves the port and decides on the
// isolation.
func create(ctx context.Context, cfg Config) (w *Workspace, err error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	root, err := ownDirectory(cfg.Root, cfg.Name)
	if err != nil {
		return nil, err
	}
	w = &Workspace{
		Root:   root,
		Dir:    filepath.Join(root, "work"),
		Home:   filepath.Join(root, "home"),
		TmpDir: filepath.Join(root, "tmp"),
		RunID:  cfg.RunID,
		cfg:    cfg,
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Remove(context.WithoutCancel(ctx)))
			w = nil
		}
	}()
	if w.RunID == "" {
		w.RunID = rand.Text()
	}
	for _, dir := range []string{w.Home, w.TmpDir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return w, err
		}
	}
	if w.containers, err = cfg.openContainers(ctx); err != nil {
		return w, err
	}
	if w.containers != nil {
		w.Isolation = w.containers.engine.Kind
	} else if w.Isolation, err = chooseIsolation(ctx, cmp.Or(cfg.Isolation, cfg.Task.Settings.Isolation)); err != nil {
		return w, err
	}
	if w.Label = w.Isolation; w.Isolation == sandbox.IsolationBwrap {
		found, err := thisMachine.bwrap(ctx)
		if err != nil {
			return w, err
		}
		w.Label = sandbox.WithLeftOpen(w.Isolation, found.LeftOpen)
	}
	if err := w.findNetwork(ctx); err != nil {
		return w, err
	}
	if env := cfg.Task.Settings.Environment; env != nil && w.containers == nil {
		w.Label += " (without its image " + env.Name() + ")"
	}
	if cfg.Task.Settings.Workspace == "worktree" {
		w.Label += ", worktree (leaky)"
	}
	if cfg.Ports != nil {
		if w.Port, err = cfg.Ports.reserve(ctx); err != nil {
			return w, err
		}
		if err := os.WriteFile(filepath.Join(w.Home, ".fit-port"), []byte(strconv.Itoa(w.Port)+"\n"),
			0o600); err != nil {
			return w, err
		}
	}
	if w.caches, err = cfg.Caches.named(cfg); err != nil {
		return w, err
	}
	return w, w.prepareCaches(w.Home)
}

func (cfg Config) check() error {
	switch {
	case cfg.Task == nil:
		return errors.New("no task")
	case !filepath.IsAbs(cfg.Root):
		return fmt.Errorf("root %q is not absolute", cfg.Root)
	case !filepath.IsLocal(cfg.Name) || cfg.Name == ".":
		return fmt.Errorf("%q is not a valid directory name", cfg.Name)
	}
	return nil
}

// ownDirectory makes the directory of a workspace. An existing one must be empty: an agent must not
// find what another left. Nor may it be in a repository: git, and agents that look for instructions
// in the directories above, would take it for a part of that.
func ownDirectory(root, name string) (string, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", err
	}
	for dir := root; ; dir = filepath.Dir(dir) {
		if isRepository(dir) {
			return "", fmt.Errorf("%s lies in the repository %s: choose a directory outside it", root, dir)
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	dir := filepath.Join(root, name)
	if err := makeEmpty(dir); err != nil {
		return "", err
	}
	return dir, nil
}

// isRepository reports whether a directory is the top of a repository or of a worktree. An empty
// .git does not count: some sandboxes leave one in directories they have shown.
func isRepository(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, ".git"))
	if err != nil || !info.IsDir() {
		return err == nil
	}
	_, err = os.Stat(filepath.Join(dir, ".git", "HEAD"))
	return err == nil
}

// makeEmpty makes a directory, or makes sure that it is there and empty.
func makeEmpty(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o700)
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s exists and is not a directory", dir)
	}
	names, err := os.ReadDir(dir)
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("%s is not empty: every attempt starts in a fresh directory", dir)
	}
	return err
}

// NotIsolated returns why attempts at a task will not be isolated on this machine, and how to
// change that; it is empty if they will be. The error says that this could not be found out.
func NotIsolated(ctx context.Context, asked string, t *task.Task) (why string, err error) {
	if inContainer(asked, t) {
		return "", nil
	}
	switch cmp.Or(asked, t.Settings.Isolation) {
	case sandbox.IsolationNone:
		return "isolation none is set", nil
	case "":
		err := bwrapWorks(ctx)
		if errors.As(err, new(*untestedError)) {
			return "", err
		}
		if err != nil {
			return err.Error(), nil
		}
	}
	return "", nil
}

// chooseIsolation returns the requested isolation, or the best that works here.
func chooseIsolation(ctx context.Context, asked string) (string, error) {
	switch asked {
	case sandbox.IsolationNone:
		return asked, nil
	case "", sandbox.IsolationBwrap:
		works := bwrapWorks(ctx)
		if works == nil {
			return sandbox.IsolationBwrap, nil
		}
		if asked == "" && !errors.As(works, new(*untestedError)) {
			return sandbox.IsolationNone, nil
		}
		return "", works
	case sandbox.IsolationPodman, sandbox.IsolationDocker:
		return "", fmt.Errorf("isolation %s: the task names neither an image nor a Dockerfile", asked)
	default:
		return "", fmt.Errorf("unknown isolation %q", asked)
	}
}

// fill puts the base into the working directory.
func (w *Workspace) fill(ctx context.Context) error {
	if err := w.takeBase(ctx); err != nil {
		return err
	}
	if w.cfg.Task.Settings.Workspace != "worktree" {
		if err := os.Mkdir(w.Dir, 0o755); err != nil {
			return err
		}
		if !w.base.checkedOut {
			return w.base.copyTo(ctx, w.Dir, nil)
		}
		// The repository is copied, and checked on the way; its commit has the files.
		if err := w.base.copyTo(ctx, w.Dir, func(name string) bool { return !isGitPath(name) }); err != nil {
			return err
		}
		return git.Run(ctx, git.Command{Dir: w.Dir, Args: []string{"checkout-index", "--all", "--quiet", "--index"}})
	}
	tree, err := addWorktree(ctx, w.cfg.Task.Settings, w.Dir, w.base.checkedOut)
	if err != nil {
		return err
	}
	w.worktree = tree
	if w.base.checkedOut {
		return nil
	}
	if err := w.base.copyTo(ctx, w.Dir, isGitPath); err != nil {
		return err
	}
	// the files of the commit are there, which git does not know yet
	return git.Run(ctx, git.Command{Dir: tree.dir, Args: []string{"reset", "--quiet", "--mixed", "HEAD"}})
}

// bring lays what the arm brings over the files of the task.
func (w *Workspace) bring(ctx context.Context) (err error) {
	if w.brought.layer, err = w.cfg.getLayer(ctx, filepath.Join(w.Root, "brought")); err != nil {
		return err
	}
	return w.lay(ctx)
}

// takeBase gets the base from the store, or makes its own.
func (w *Workspace) takeBase(ctx context.Context) (err error) {
	if w.cfg.Bases != nil {
		w.base, err = w.cfg.Bases.get(ctx, w.cfg)
		return err
	}
	dir := filepath.Join(w.Root, "base")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	w.base, err = buildBase(ctx, w.cfg, dir)
	return err
}

// Remove deletes the workspace with everything in it, read-only directories included, stops its
// services and gives its port back.
func (w *Workspace) Remove(ctx context.Context) error {
	w.StopServices()
	w.stopBeside()
	err := w.closeContainers("", "")
	err = errors.Join(err, scratch.RemoveAll(w.Root))
	if w.worktree != nil {
		err = errors.Join(err, w.worktree.remove(ctx))
		w.worktree = nil
	}
	if w.Port != 0 {
		w.cfg.Ports.release(w.Port)
		w.Port = 0
	}
	if err != nil {
		return fmt.Errorf("remove workspace %s: %w", w.cfg.Name, err)
	}
	return nil
}

func within(dir, name string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}
