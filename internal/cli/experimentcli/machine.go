// Package experimentcli is what the commands that run experiments share, whatever format their
// tasks have: this machine, the lines on standard error, and the way from the first cell to an exit
// code.
package experimentcli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
)

// Machine is this machine as experiments use it.
func Machine(con *console.Console, registry *agent.Registry) *local.Machine {
	return &local.Machine{
		Registry: registry,
		Host:     Host(con),
		Prices:   con.Prices(),
		Redactor: Redactor(con, registry),
		Now:      con.Now,
	}
}

// Host is this machine as agents see it.
func Host(con *console.Console) agent.Host {
	return agent.Host{Environ: con.Environ, Spawner: sandbox.NewSpawner(), CacheDir: CacheDir()}
}

// CacheDir is where fit keeps what it can make again; empty where there is no such place.
func CacheDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "fit")
}

// Redactor takes the secrets of the environment and of all agents' logins out of what is written.
func Redactor(con *console.Console, registry *agent.Registry) *redact.Redactor {
	return redact.New(redact.Config{Environ: con.Environ, Extra: registry.Secrets(con.Environ), Warn: con.Stderr})
}

// toolVersions are recorded with every experiment.
func toolVersions(con *console.Console) map[string]string {
	versions := map[string]string{"fit": con.Version}
	if info, ok := debug.ReadBuildInfo(); ok {
		versions["go"] = info.GoVersion
	}
	return versions
}

// HookCommands are our own names that hooks find on their search path.
func HookCommands() []string { return []string{"fit-trace"} }

// keyPath is where the user's key that signs ledgers lies; empty where there is no such place.
func keyPath(con *console.Console) string {
	if dir := con.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fit", "ledger.key")
	}
	if home := con.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "fit", "ledger.key")
	}
	return ""
}

// OwnKey is the user's key that signs ledgers, for looking at signatures; nil where there is none.
func OwnKey(con *console.Console) *ledger.SigningKey {
	key, err := ledger.LoadKey(keyPath(con))
	if err != nil {
		return nil // who has no key has signed nothing
	}
	return key
}

// NoteSigner says what a reader of results must know about who signed them.
func NoteSigner(con *console.Console, found ledger.Signer) {
	if found.Note != "" {
		fmt.Fprintf(con.Stderr, "note: %s\n", found.Note)
	}
}

// SigningKey returns the user's key, which is made on first use. A ledger without a signature is
// better than no ledger.
func SigningKey(con *console.Console) *ledger.SigningKey {
	path := keyPath(con)
	if path == "" {
		return nil
	}
	key, err := ledger.CreateKey(path)
	if err != nil {
		fmt.Fprintf(con.Stderr, "note: the results are not signed: %v\n", err)
		return nil
	}
	return key
}

// OpenDirectory locks the run directory of a plan, or makes it; what is wrong has its exit code.
func OpenDirectory(con *console.Console, path string, plan *experiment.Plan,
	redactor *redact.Redactor,
) (*experiment.Directory, error) {
	dir, err := experiment.OpenDirectoryWith(path, plan, redactor, ledger.Config{Key: SigningKey(con)})
	if err != nil {
		return nil, DirectoryError(err)
	}
	return dir, nil
}

// DirectoryError gives what is wrong with a run directory its exit code.
func DirectoryError(err error) error {
	switch {
	case errors.As(err, new(*experiment.DifferentError)), errors.As(err, new(*experiment.NoDirectoryError)),
		errors.Is(err, experiment.ErrTaken):
		return console.Exit(console.ExitUsage, err)
	case errors.As(err, new(*ledger.Damage)), errors.Is(err, experiment.ErrBusy), errors.Is(err, ledger.ErrLocked):
		return console.Exit(console.ExitIncomplete, err)
	default:
		return err
	}
}

// PrepareError gives a mistake in a setup its exit code: an agent that is not installed and a
// network that does not work are this machine's lack, everything else is a mistake of the call,
// unless a signal came first.
func PrepareError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return startError(ctx, err)
	}
	if errors.As(err, new(*agent.NotFoundError)) ||
		errors.As(err, new(*local.NetworkError)) && !errors.As(err, new(*agent.NetworkError)) {
		return console.Exit(console.ExitIncomplete, err)
	}
	return console.Exit(console.ExitUsage, err)
}
