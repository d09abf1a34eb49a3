package workspace

import (
	"context"
	"errors"
)

// Prepare makes a workspace: base, overlays in order, skills, environment files, home, temporary directory, port. On an error nothing is left behind.
func Prepare(ctx context.Context, cfg Config) (*Workspace, error) { return nil, errors.ErrUnsupported }

// Adopt makes a workspace around an existing final directory, so that a stored run can be graded again. Nothing in dir is changed.
func Adopt(ctx context.Context, cfg Config, dir string) (*Workspace, error) {
	return nil, errors.ErrUnsupported
}

// Agent is the place of the agent: only its own directories are writable, hidden material, siblings and the real home are not visible.
func (w *Workspace) Agent() Place { return Place{} }

// Hook is the place of a family's hook that works on dir (the workspace's Dir or a Copy's): the hook variables are in its environment, and hidden
// material is readable.
func (w *Workspace) Hook(dir string) Place { return Place{} }

// Grader is the place of hidden tests and of agent code under test: no hook variables, no hidden paths, no network unless the task allows it.
func (w *Workspace) Grader(c *Copy) Place { return Place{} }

// Preflight runs the task's preflight hook in dir (empty: Dir) and leaves the services that it started alive.
func (w *Workspace) Preflight(ctx context.Context, dir string) (PreflightResult, error) {
	return PreflightResult{}, errors.ErrUnsupported
}

// StopServices kills everything that Preflight started.
func (w *Workspace) StopServices(ctx context.Context) Teardown { return Teardown{} }

// Seal kills every process of the attempt but the services, and makes sure that they are gone. From then on nobody writes to Dir.
func (w *Workspace) Seal(ctx context.Context) (Sealed, error) { return Sealed{}, errors.ErrUnsupported }

// Base is the snapshot that the agent started from.
func (w *Workspace) Base() *Base { return w.base }

// Diff compares the base with what is in Dir now. It trusts nothing in Dir, neither links nor a .git.
func (w *Workspace) Diff(ctx context.Context) (*Diff, error) { return nil, errors.ErrUnsupported }

// Copy copies the workspace for graders. No link is followed, special files are left out.
func (w *Workspace) Copy(ctx context.Context, cfg CopyConfig) (*Copy, error) {
	return nil, errors.ErrUnsupported
}

// Remove deletes the workspace with everything in it, read-only directories included, stops its services and gives its port back.
func (w *Workspace) Remove(ctx context.Context) error { return errors.ErrUnsupported }

type (
	services struct{}
	worktree struct{}
)

// Bases keeps the snapshots that workspaces start from: built once for all attempts at the same task with the same skills.
type Bases struct{}

// NewBases keeps snapshots below a private directory.
func NewBases(dir string) *Bases { return nil }

// Close deletes the snapshots.
func (b *Bases) Close() error { return errors.ErrUnsupported }

// Base is the content that an agent starts from: a tree on disk that no agent sees, and the hash of every file in it.
type Base struct {
	// Hash identifies the whole content, modes included: "sha256:…".
	Hash string
}

// Caches keeps warmed build caches, outside all workspaces, mounted read-only.
type Caches struct{}

// NewCaches keeps caches below a directory, which may be used again by later runs.
func NewCaches(dir string) *Caches { return nil }

// Warm fills the cache of a kind (go, npm) for a task, once; it must be called before Prepare for tasks that name caches.
func (c *Caches) Warm(ctx context.Context, kind string, cfg Config) error {
	return errors.ErrUnsupported
}

// Cache is one warmed cache.
type Cache struct{}

// Error implements error.
func (e *LimitError) Error() string { return e.What }

// Remove deletes the copy.
func (c *Copy) Remove() error { return errors.ErrUnsupported }
