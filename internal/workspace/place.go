package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/memo"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/sandbox/untrusted"
	"github.com/fit-eval/fit/internal/task"
)

// machine remembers what this machine can do: the answer is the same as long as the process runs.
// Where an accident or the end of the context left no answer, the next caller tries again.
type machine struct {
	table memo.Table[sandbox.Capabilities]
}

var thisMachine machine

// bwrap tries once whether programs can be isolated here.
func (m *machine) bwrap(ctx context.Context) (sandbox.Capabilities, error) {
	return m.table.Get(ctx, "bwrap", func() (sandbox.Capabilities, error) {
		found := sandbox.DetectBwrap(ctx)
		return found, found.Unknown
	})
}

// network tries once whether services and graders can share a private network here: PrivateNetwork.
func (m *machine) network(ctx context.Context) (sandbox.Capability, error) {
	found, err := m.table.Get(ctx, "network", func() (found sandbox.Capabilities, untested error) {
		err := sandbox.PrivateNetworkWorks(ctx)
		if errors.Is(err, sandbox.ErrUntested) || ctx.Err() != nil {
			return found, err
		}
		found.PrivateNetwork.OK = err == nil
		if err != nil {
			found.PrivateNetwork.Detail = err.Error()
		}
		return found, nil
	})
	return found.PrivateNetwork, err
}

// bwrapWorks returns nil if programs can be isolated here, or why not; an untestedError where that
// could not be found out.
func bwrapWorks(ctx context.Context) error {
	c, err := thisMachine.bwrap(ctx)
	if err != nil {
		return &untestedError{err}
	}
	for _, capability := range []sandbox.Capability{c.Bwrap, c.BwrapNetwork} {
		if !capability.OK {
			return fmt.Errorf("isolation bwrap does not work here: %s (%s), or set isolation: none", capability.Detail,
				capability.Fix)
		}
	}
	return nil
}

// untestedError says that an accident, or the end of the context, left open whether programs can be
// isolated: the attempt fails, and does not go on without.
type untestedError struct{ err error }

func (e *untestedError) Error() string {
	return "isolation could not be tried: " + e.err.Error() + "; try again, or set isolation: none"
}
func (e *untestedError) Unwrap() error { return e.err }

// LeftOpen returns what the sandbox of attempts at a task leaves open on this machine; it is empty
// for attempts without one.
func LeftOpen(ctx context.Context, asked string, t *task.Task) string {
	if why, err := NotIsolated(ctx, asked, t); inContainer(asked, t) || why != "" || err != nil {
		return ""
	}
	c, err := thisMachine.bwrap(ctx)
	bestEffort(err) // then nothing runs in the sandbox either
	return c.LeftOpen
}

// Agent returns the place of the agent: only its own directories are writable, hidden material,
// siblings and the real home are not visible. An agent without the host's network has none until
// the caller opens one for it, with ServiceDoor.
func (w *Workspace) Agent() Place {
	env := w.environment(w.Home, w.TmpDir, w.RunID)
	for _, v := range w.cfg.Task.Env {
		env[v.Name] = v.Value
	}
	maps.Copy(env, w.cfg.Env)
	w.addPort(env)
	writable := []string{w.Dir, w.Home, w.TmpDir}
	if w.worktree != nil {
		writable = append(writable, w.worktree.common)
	}
	isolation := sandbox.Isolation{Network: w.agentOnHost(), Writable: writable, Shown: w.shownAt(w.Dir)}
	if w.containers != nil {
		isolation.Container, isolation.ReadOnly = w.agentContainer(), w.cfg.ReadOnly
	}
	return w.place(w.Dir, w.Home, w.TmpDir, env, isolation)
}

// shownAt also shows a directory at the path of the image's working directory, for a task that runs
// without its image.
func (w *Workspace) shownAt(dir string) map[string]string {
	env, workdir := w.cfg.Task.Settings.Environment, ""
	switch {
	case w.Isolation != sandbox.IsolationBwrap:
	case env != nil:
		workdir = env.Workdir
	case w.cfg.Task.Instance != nil:
		workdir = task.Testbed
	}
	if workdir == "" {
		return nil
	}
	return map[string]string{workdir: dir}
}

// Hook returns the place of a family's hook that works on dir (the workspace's Dir or a Copy's):
// the hook variables are in its environment, and hidden material is readable, except the reference
// solution, from which a program of the agent that the hook starts could copy. Its home is not the
// agent's, where the agent could have left settings.
func (w *Workspace) Hook(dir string) Place {
	own, err := w.hookDir()
	bestEffort(err) // starting a program there reports what is missing
	home, tmp := filepath.Join(own, "home"), filepath.Join(own, "tmp")
	env := w.environment(home, tmp, w.hookRunID())
	for _, v := range w.cfg.Task.Env {
		env[v.Name] = v.Value
	}
	familyDir := ""
	if w.cfg.Family != nil {
		familyDir = w.cfg.Family.Dir
	}
	passed := append(slices.Collect(maps.Keys(env)), PortVariable)
	for name, value := range map[string]string{
		"AGENT_CWD": dir, "TASK_ID": w.cfg.Task.ID, "TASK_DIR": w.cfg.Task.Dir, "HOOKS_DIR": w.cfg.Task.Hooks.Dir,
		"FAMILY_DIR": familyDir,
		PortVariable: strconv.Itoa(w.Port),
	} {
		env[name] = value
	}
	if sample := w.cfg.Task.Sample; sample != nil {
		env["SAMPLE"] = sample.JSON()
	}
	readable, hidden := []string{w.cfg.Task.Dir}, []string(nil)
	if familyDir != "" {
		readable, hidden = append(readable, familyDir), append(hidden, filepath.Join(familyDir, "tasks"))
	}
	isolation := sandbox.Isolation{
		Network:   w.opensNetwork(),
		Join:      w.private,
		Writable:  []string{dir, home, tmp},
		Hidden:    hidden,
		Untrusted: w.untrusted(env, passed, dir),
	}
	for _, v := range w.cfg.Task.Env {
		delete(isolation.Untrusted.Env, v.Name)
	}
	isolation.Writable = append(isolation.Writable, isolation.Untrusted.Writable...)
	isolation.ReadOnly = slices.Concat(readable, isolation.Untrusted.ReadOnly)
	if w.containers != nil {
		isolation.Container = w.graderContainer("hook", dir)
	}
	return w.place(dir, home, tmp, env, isolation)
}

// Grader returns the place of hidden tests and of agent code under test: no hook variables, no
// hidden paths, no network unless the task allows it.
func (w *Workspace) Grader(c *Copy) Place {
	env := w.environment(c.Home, c.TmpDir, w.hookRunID())
	w.addPort(env)
	isolation := sandbox.Isolation{
		Network:   w.opensNetwork(),
		Join:      w.private,
		Writable:  []string{c.Dir, c.Home, c.TmpDir},
		Untrusted: w.untrusted(env, slices.Collect(maps.Keys(env)), c.Dir),
	}
	isolation.Writable = append(isolation.Writable, isolation.Untrusted.Writable...)
	isolation.ReadOnly = isolation.Untrusted.ReadOnly
	if w.cfg.Task.Instance != nil { // its scripts use the image's path
		isolation.Shown = w.shownAt(c.Dir)
	}
	if w.containers != nil {
		isolation.Container = w.graderContainer("grader", c.Dir)
	}
	return w.place(c.Dir, c.Home, c.TmpDir, env, isolation)
}

// untrusted lets a place find the commands, and returns what a program sees and gets that is
// started by one of them: the work, the programs of the machine, these variables, and a home of its
// own. In that of its starter it could leave settings for the programs that run there next.
func (w *Workspace) untrusted(env sandbox.Environment, passed []string, dir string) *sandbox.UntrustedView {
	slices.Sort(passed)
	home, err := w.programHome(filepath.Base(filepath.Dir(dir)))
	bestEffort(err) // starting a program there reports what is missing
	view := &sandbox.UntrustedView{
		Writable: []string{dir, home},
		ReadOnly: w.addCommands(env),
		Env:      sandbox.Environment{"HOME": home},
	}
	for _, cache := range w.caches {
		maps.Copy(view.Env, cache.environment(home))
	}
	env[untrusted.Passes] = strings.Join(passed, ",")
	return view
}

// hookRunID marks the processes of hooks and graders, which survive when the agent's are killed.
func (w *Workspace) hookRunID() string { return w.RunID + ".hooks" }

// environment returns the common part: allow-listed variables of the harness, and the build caches.
func (w *Workspace) environment(home, tmp, runID string) sandbox.Environment {
	env := sandbox.NewEnvironment(sandbox.EnvironmentConfig{
		Parent: w.cfg.Environ,
		Home:   home,
		TmpDir: tmp,
		RunID:  runID,
	})
	if w.Isolation == sandbox.IsolationBwrap {
		env["PATH"] = w.visiblePath(env["PATH"])
	}
	for _, cache := range w.caches {
		maps.Copy(env, cache.environment(home))
	}
	return env
}

// visiblePath keeps the directories of a search path that exist in the sandbox, so that only
// programs that can be run are found.
func (w *Workspace) visiblePath(searchPath string) string {
	visible := append([]string{"/usr", "/bin", "/sbin", "/opt", "/nix/store"}, w.cfg.ReadOnly...)
	var kept []string
	for _, entry := range filepath.SplitList(searchPath) {
		if slices.ContainsFunc(visible,
			func(dir string) bool { return within(filepath.Clean(dir), filepath.Clean(entry)) }) {
			kept = append(kept, entry)
		}
	}
	if len(kept) == 0 {
		return "/usr/local/bin:/usr/bin:/bin"
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

// PortVariable is the environment variable that names the port of an attempt.
const PortVariable = "PORT"

func (w *Workspace) addPort(env sandbox.Environment) {
	if w.Port != 0 {
		env[PortVariable] = strconv.Itoa(w.Port)
	}
}

// place completes an isolation with what holds for all phases.
func (w *Workspace) place(dir, home, tmp string, env sandbox.Environment, isolation sandbox.Isolation) Place {
	isolation.Kind = w.Isolation
	if w.containers == nil { // programs of the machine are useless to graders in a container
		isolation.ReadOnly = append(isolation.ReadOnly, w.cfg.ReadOnly...)
	}
	for _, cache := range w.caches {
		isolation.ReadOnly = append(isolation.ReadOnly, cache.readable()...)
	}
	if view := isolation.Untrusted; view != nil {
		view.ReadOnly = append(view.ReadOnly, w.cfg.ReadOnly...)
		for _, cache := range w.caches {
			view.ReadOnly = append(view.ReadOnly, cache.readable()...)
		}
	}
	slices.Sort(isolation.ReadOnly)
	isolation.ReadOnly = slices.Compact(isolation.ReadOnly)
	isolation = w.Conceal(isolation)
	return Place{
		Dir:       dir,
		Home:      home,
		TmpDir:    tmp,
		Env:       env,
		Isolation: isolation,
		Limits:    w.limits(),
	}
}

// limits returns the task's limits, and the defaults where it sets none.
func (w *Workspace) limits() sandbox.Limits {
	limits, set := sandbox.DefaultLimits(w.Isolation), w.cfg.Task.Settings.Limits
	if w.containers == nil { // a container limits all of its processes together
		limits.MemoryBytes = uint64(set.MemoryMB) << 20
	}
	if set.DiskMB > 0 {
		limits.DiskBytes = uint64(set.DiskMB) << 20
	}
	if set.Processes > 0 && w.containers == nil {
		limits.Processes = uint64(set.Processes)
	}
	if set.FileMB > 0 {
		limits.FileBytes = uint64(set.FileMB) << 20
	}
	return limits
}

// Conceal returns an isolation that hides what no process of an attempt may see, unless the
// isolation names it: the workspaces of others, the family with its repository, that of the task,
// and what the harness keeps. The sandbox hides the user's home and our temporary directory by
// itself.
func (w *Workspace) Conceal(isolation sandbox.Isolation) sandbox.Isolation {
	if !isolation.Isolates() {
		return isolation
	}
	asked := map[string]bool{}
	for _, path := range slices.Concat(isolation.Writable, isolation.ReadOnly, isolation.Hidden) {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			asked[resolved] = true
		}
	}
	for _, path := range w.concealed() {
		resolved, err := filepath.EvalSymlinks(path)
		if err == nil && resolved != "/" && !asked[resolved] {
			asked[resolved] = true
			isolation.Hidden = append(isolation.Hidden, resolved)
		}
	}
	return isolation
}

func (w *Workspace) concealed() []string {
	paths := append([]string{w.cfg.Root, w.cfg.Task.Dir}, w.cfg.Hidden...)
	if w.cfg.Family != nil {
		paths = append(paths, w.cfg.Family.Dir)
		paths = append(paths, repositoriesOf(w.cfg.Family.Dir)...)
	}
	if w.cfg.Task.Solution != "" {
		paths = append(paths, w.cfg.Task.Solution)
	}
	if spec := w.cfg.Task.Spec; spec != nil {
		paths = append(paths, spec.File)
		if spec.Reference != nil && spec.Reference.File != "" {
			paths = append(paths, spec.Reference.File)
		}
	}
	repos := []string{w.cfg.Task.Settings.Repo}
	if w.cfg.Task.Instance != nil {
		repos = append(repos, w.cfg.Task.Instance.Repository)
	}
	for _, repo := range repos {
		if repo != "" {
			paths = append(paths, repo)
			paths = append(paths, repositoriesOf(repo)...)
		}
	}
	if w.base != nil {
		paths = append(paths, filepath.Dir(w.base.Dir))
	}
	for _, variable := range w.cfg.Environ {
		if home, ok := strings.CutPrefix(variable, "HOME="); ok && filepath.IsAbs(home) {
			paths = append(paths, home)
		}
	}
	return paths
}

// prepareCaches gives a home its own, writable part of every build cache.
func (w *Workspace) prepareCaches(home string) error {
	var errs []error
	for _, cache := range w.caches {
		errs = append(errs, cache.prepare(home))
	}
	return errors.Join(errs...)
}

// bestEffort drops an error that leaves nothing to do.
func bestEffort(error) {}

func closeQuietly(files ...*os.File) {
	for _, file := range files {
		bestEffort(file.Close())
	}
}
