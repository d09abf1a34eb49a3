package benchmarkcli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/task"
)

// The files that decide what is installed.
var moduleFiles = []string{"package.json", "package-lock.json", "npm-shrinkwrap.json", "bun.lock", "bun.lockb"}

// stageModules finds the packages of a family with a package.json: its own node_modules, or an
// installation in a cache that is keyed by what is to be installed.
func stageModules(ctx context.Context, con *console.Console, family *task.Family, cache string) (string, error) {
	files := map[string][]byte{}
	sum := sha256.New()
	for _, name := range moduleFiles {
		content, err := os.ReadFile(filepath.Join(family.Dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read the family's %s: %w", name, err)
		}
		files[name] = content
		fmt.Fprintf(sum, "%s\x00%d\x00%s", name, len(content), content)
	}
	if !hasPackages(files["package.json"]) {
		return "", nil
	}
	own := filepath.Join(family.Dir, "node_modules")
	if info, err := os.Stat(own); err == nil && info.IsDir() {
		return own, nil
	}
	argv := installer(con)
	if argv == nil {
		return "", console.Exitf(console.ExitIncomplete,
			"the family has a package.json with dependencies, and neither bun nor npm is installed; install one, or "+
				"put node_modules into the family")
	}
	if cache == "" {
		return "", console.Exitf(console.ExitIncomplete,
			"there is no cache directory to install packages into; set HOME or XDG_CACHE_HOME")
	}
	dir := filepath.Join(cache, "modules", hex.EncodeToString(sum.Sum(nil)[:12]))
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		if err := installModules(ctx, con, argv, files, dir); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "node_modules"), nil
}

func hasPackages(manifest []byte) bool {
	var parsed struct {
		Dependencies    map[string]any `json:"dependencies"`
		DevDependencies map[string]any `json:"devDependencies"`
	}
	return json.Unmarshal(manifest, &parsed) == nil && len(parsed.Dependencies)+len(parsed.DevDependencies) > 0
}

func installer(con *console.Console) []string {
	if bun := agent.LookPath(con.Environ, "bun"); bun != "" {
		return []string{bun, "install", "--ignore-scripts"}
	}
	if npm := agent.LookPath(con.Environ, "npm"); npm != "" {
		return []string{npm, "install", "--ignore-scripts", "--no-audit", "--no-fund"}
	}
	return nil
}

func installModules(ctx context.Context, con *console.Console, argv []string, files map[string][]byte,
	dir string,
) error {
	return installation{
		what:  "packages",
		argv:  argv,
		leave: "node_modules",
		prepare: func(room string) error {
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(room, name), content, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
	}.into(ctx, con, dir)
}

// installation is what a package manager has to install for a family.
type installation struct {
	what    string // for messages
	argv    []string
	leave   string // the directory that the program must leave
	prepare func(room string) error
	finish  func(room string) error // optional
}

// into installs into a directory beside the final one and moves it there when it is complete.
func (i installation) into(ctx context.Context, con *console.Console, dir string) error {
	wrap := func(err error) error { return fmt.Errorf("install %s: %w", i.what, err) }
	incomplete := func(format string, args ...any) error {
		return console.Exit(console.ExitIncomplete, wrap(fmt.Errorf(format, args...)))
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return wrap(err)
	}
	room, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		return wrap(err)
	}
	defer func() { _ = scratch.RemoveAll(room) }()
	if err := i.prepare(room); err != nil {
		return wrap(err)
	}
	name := filepath.Base(i.argv[0])
	fmt.Fprintf(con.Stderr, "installing the family's %s: %s install\n", i.what, name)
	var stderr bytes.Buffer
	result, err := sandbox.NewSpawner().Spawn(ctx, sandbox.SpawnSpec{
		Argv:    i.argv,
		Dir:     room,
		Env:     con.Environ,
		Timeout: installTimeout,
	}, io.Discard, &stderr)
	switch {
	case err != nil:
		return incomplete("%s: %w", name, err)
	case result.ExitCode != 0 || result.TimedOut:
		return incomplete("%s ended with exit code %d: %s", name, result.ExitCode, bytes.TrimSpace(stderr.Bytes()))
	}
	if i.finish != nil {
		if err := i.finish(room); err != nil {
			return wrap(err)
		}
	}
	if info, err := os.Stat(filepath.Join(room, i.leave)); err != nil || !info.IsDir() {
		return incomplete("%s left no %s", name, i.leave)
	}
	if err := os.Rename(room, dir); err != nil {
		if _, there := os.Stat(filepath.Join(dir, i.leave)); there != nil { // unless another process was faster
			return wrap(err)
		}
	}
	return nil
}
