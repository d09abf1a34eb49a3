package benchmarkcli

import (
	"context"
	"path/filepath"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
)

// bench is where tasks are graded without an experiment: a scratch directory, and what workspaces
// share.
type bench struct {
	con       *console.Console
	family    *task.Family
	isolation string
	work      string
	ports     *workspace.Ports
	caches    *workspace.Caches // nil where there is no place for them
	engines   *workspace.Engines
}

// openBench makes a bench, and returns how to clear it away.
func openBench(con *console.Console, family *task.Family, isolation *experimentcli.Isolation, prefix string,
) (*bench, func(), error) {
	room, err := scratch.Make("", prefix)
	if err != nil {
		return nil, nil, err
	}
	b := &bench{
		con:       con,
		family:    family,
		isolation: isolation.Kind(),
		work:      room.Path,
		ports:     &workspace.Ports{},
		engines:   isolation.Engines(con.Stderr),
	}
	if cache := experimentcli.CacheDir(); cache != "" {
		b.caches = workspace.NewCaches(filepath.Join(cache, "build"))
	}
	return b, func() { _ = room.Remove() }, nil
}

// space is the config of a workspace of a task.
func (b *bench) space(name string, t *task.Task) workspace.Config {
	return workspace.Config{
		Root:      b.work,
		Name:      name,
		Family:    b.family,
		Task:      t,
		Environ:   b.con.Environ,
		Isolation: b.isolation,
		Engines:   b.engines,
		Ports:     b.ports,
		Caches:    b.caches,
		Commands:  experimentcli.HookCommands(),
	}
}

// warm fills the caches of the task of a workspace.
func (b *bench) warm(ctx context.Context, cfg workspace.Config) error {
	if len(cfg.Task.Settings.Cache) == 0 || b.caches == nil {
		return nil
	}
	cfg.Name = "warm-" + cfg.Name
	return b.caches.Warm(ctx, cfg)
}
