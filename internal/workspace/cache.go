package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/tree"
)

// The kinds of build caches.
const (
	cacheGo  = "go"
	cacheNPM = "npm"
)

// warmTimeout bounds the warming of one cache: it may have to fetch packages.
const warmTimeout = 10 * time.Minute

// Caches keeps warmed build caches outside all workspaces. They are filled from the author's files
// only, and only with packages that the tests depend on: neither code of an agent nor hidden tests
// ever get into them. In a sandbox they are mounted read-only, and a cell's own builds are kept in
// its home, so that one agent cannot leave anything for a grader or for another agent. A nil
// *Caches has none.
type Caches struct {
	dir string
	mu  sync.Mutex // one warming at a time
}

// NewCaches keeps caches below a directory, which later runs may reuse.
func NewCaches(dir string) *Caches { return &Caches{dir: dir} }

// cacheDir is one warmed cache.
type cacheDir struct {
	kind   string
	dir    string
	server string // our own binary, which serves the Go cache
	link   string // under which it does
}

// Warm fills the caches that a task names, once. It must be called before Prepare for such a task,
// with the same Config; Root is used for scratch.
func (c *Caches) Warm(ctx context.Context, cfg Config) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	cfg.Brings = nil // arms share the cache
	for _, kind := range cfg.Task.Settings.Cache {
		if err := c.warm(ctx, kind, cfg); err != nil {
			return fmt.Errorf("warm the %s cache for task %s: %w", kind, cfg.Task.ID, err)
		}
	}
	return nil
}

func (c *Caches) warm(ctx context.Context, kind string, cfg Config) error {
	cache := &cacheDir{kind: kind, dir: filepath.Join(c.dir, kind)}
	mark := cache.mark(cfg)
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(cache.dir, "warmed"), 0o755); err != nil {
		return err
	}
	cfg.Task = withoutCaches(cfg.Task)
	cfg.Name, cfg.Ports, cfg.Caches = "warm-"+kind+"-"+filepath.Base(mark)[:12], nil, nil
	w, err := Prepare(ctx, cfg)
	if err != nil {
		return err
	}
	if kind == cacheGo {
		err = w.warmGo(ctx, cache)
	} else {
		err = w.warmNPM(ctx, cache)
	}
	if err := errors.Join(err, w.Remove(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o600)
}

func withoutCaches(t *task.Task) *task.Task {
	plain := *t
	plain.Settings.Cache = nil
	return &plain
}

// mark returns the file that says that a cache is warm for a task.
func (c *cacheDir) mark(cfg Config) string {
	sum := sha256.Sum256([]byte(cfg.Task.Digest.Visible + "\x00" + cfg.Task.Digest.Hidden + "\x00" + cfg.NodeModules))
	return filepath.Join(c.dir, "warmed", hex.EncodeToString(sum[:]))
}

// named returns the caches that a task names; they must be warm.
func (c *Caches) named(cfg Config) ([]*cacheDir, error) {
	var caches []*cacheDir
	for _, kind := range cfg.Task.Settings.Cache {
		if c == nil {
			return nil, fmt.Errorf("the task names the %s cache, but there are no caches", kind)
		}
		cache := &cacheDir{kind: kind, dir: filepath.Join(c.dir, kind)}
		if _, err := os.Stat(cache.mark(cfg)); err != nil {
			return nil, fmt.Errorf("the %s cache is cold: %w", kind, err)
		}
		if kind == cacheGo {
			if strings.ContainsAny(cache.dir+cfg.Root, " \t'\"") {
				return nil, fmt.Errorf("the go cache needs paths without blanks and quotes: %s, %s", cache.dir,
					cfg.Root)
			}
			if err := cache.linkServer(); err != nil {
				return nil, err
			}
		}
		caches = append(caches, cache)
	}
	return caches, nil
}

// linkServer makes the name under which our own binary serves the cache. Other binaries that share
// the cache have other links.
func (c *cacheDir) linkServer() (err error) {
	if c.server, err = ownProgram(); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(c.server))
	c.link = filepath.Join(c.dir, "server", hex.EncodeToString(sum[:8]), goCacheName)
	if err := os.MkdirAll(filepath.Dir(c.link), 0o755); err != nil {
		return err
	}
	if err := os.Symlink(c.server, c.link); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// environment returns the variables that point the tools of a language to the cache.
func (c *cacheDir) environment(home string) map[string]string {
	if c.kind == cacheGo {
		build, own := filepath.Join(c.dir, "build"), filepath.Join(home, ".cache", "fit-go-build")
		return map[string]string{
			"GOCACHE": build, "GOCACHEPROG": strings.Join([]string{c.link, build, own}, " "),
			"GOMODCACHE": filepath.Join(c.dir, "mod"),
			"GOPROXY":    "off", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOENV": "off",
		}
	}
	return map[string]string{
		"npm_config_cache": filepath.Join(home, ".npm"), "npm_config_logs_dir": filepath.Join(home, ".npm-logs"),
		"npm_config_prefer_offline": "true", "npm_config_update_notifier": "false",
	}
}

// readable returns the paths that processes must see to use the cache.
func (c *cacheDir) readable() []string {
	if c.server == "" {
		return []string{c.dir}
	}
	return []string{c.dir, c.server}
}

// prepare gives a home its own writable part of a cache. That of npm has few files, so writable
// directories with links to the warm files are cheap.
func (c *cacheDir) prepare(home string) error {
	if c.kind == cacheGo {
		return nil
	}
	return linkFarm(filepath.Join(c.dir, "cache"), filepath.Join(home, ".npm"))
}

// npmContent is where npm keeps what it has fetched, in files that never change. It appends to
// everything else, above all the index, even when it only reads.
const npmContent = "_cacache/content-v2/"

// linkFarm copies a tree for writing, with symlinks to the content in it.
func linkFarm(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	return tree.Copy{Accept: func(e *tree.Entry) (bool, error) {
		if e.IsRegular() && strings.HasPrefix(e.Path, npmContent) {
			e.Mode, e.Target = fs.ModeSymlink, filepath.Join(from, filepath.FromSlash(e.Path))
		}
		e.Mode |= 0o700 // the warm files are not writable
		return !e.IsSpecial(), nil
	}}.Dir(context.Background(), from, to)
}

// warmGo compiles the packages that the task's code and its hidden tests import from elsewhere. The
// tests themselves are read, in a directory that no agent sees, but not compiled.
func (w *Workspace) warmGo(ctx context.Context, cache *cacheDir) error {
	build, mod := filepath.Join(cache.dir, "build"), filepath.Join(cache.dir, "mod")
	for _, dir := range []string{build, mod} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if version, err := w.tool(ctx, cache, map[string]string{"GOTOOLCHAIN": "local"}, "go", "env",
		"GOVERSION"); err != nil || !servesCache(version) {
		return errors.Join(fmt.Errorf("the go cache needs Go 1.24 or later, not %s", strings.TrimSpace(version)), err)
	}
	extra := map[string]string{
		"GOCACHE": build, "GOMODCACHE": mod, "GOTOOLCHAIN": "local", "GOENV": "off",
		"GOFLAGS": "-modcacherw",
	}
	hidden := []string{w.cfg.Task.Solution}
	if suite := w.cfg.Task.Suite; suite != nil {
		hidden = []string{suite.Dir, w.cfg.Task.Solution}
	}
	for _, dir := range hidden {
		if dir != "" {
			if err := overlayTree(ctx, task.Overlay{From: dir}, w.Dir, nil); err != nil {
				return err
			}
		}
	}
	const foreign = `{{if or .Standard (and .Module (not .Module.Main))}}{{if not .ForTest}}{{.ImportPath}}{{end}}{{end}}`
	listed, err := w.tool(ctx, cache, extra, "go", "list", "-e", "-deps", "-test", "-f", foreign, "./...")
	if err != nil {
		return err
	}
	packages := slices.DeleteFunc(strings.Fields(listed),
		func(name string) bool { return name == "unsafe" || name == "C" })
	if len(packages) == 0 {
		return nil
	}
	_, err = w.tool(ctx, cache, extra, append([]string{"go", "build"}, packages...)...)
	return err
}

// servesCache reports whether a version of Go asks another program for its cache.
func servesCache(version string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(strings.TrimSpace(version), "go%d.%d", &major, &minor); n < 2 {
		return true // a development version
	}
	return major > 1 || minor >= 24
}

// warmNPM fetches the packages of the lock file.
func (w *Workspace) warmNPM(ctx context.Context, cache *cacheDir) error {
	dir := filepath.Join(cache.dir, "cache")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	_, err := w.tool(ctx, cache, map[string]string{"npm_config_cache": dir}, "npm", "ci", "--ignore-scripts",
		"--no-audit", "--no-fund")
	return err
}

// tool runs a program of the language on the author's files, with the cache writable and the
// network on.
func (w *Workspace) tool(
	ctx context.Context,
	cache *cacheDir,
	extra map[string]string,
	argv ...string,
) (string, error) {
	place := w.Agent()
	place.Isolation.Network = true
	place.Isolation.Writable = append(place.Isolation.Writable, cache.dir)
	maps.Copy(place.Env, extra)
	place.Env.Allow(w.cfg.Environ, "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "npm_config_registry")
	var stdout, stderr strings.Builder
	spec := sandbox.SpawnSpec{
		Argv:      argv,
		Dir:       place.Dir,
		Env:       place.Env.List(),
		Isolation: place.Isolation,
		Timeout:   warmTimeout,
		MaxOutput: 16 << 20,
	}
	result, err := cmp.Or(w.cfg.Spawner, sandbox.NewSpawner()).Spawn(ctx, spec, &stdout, &stderr)
	if err != nil {
		return "", err
	}
	if result.ExitCode != 0 || result.TimedOut || result.Cancelled {
		printed := strings.TrimSpace(stderr.String())
		return "", fmt.Errorf("%s %s: exit %d: %s", argv[0], argv[1], result.ExitCode,
			printed[max(0, len(printed)-messageLimit):])
	}
	return stdout.String(), nil
}
