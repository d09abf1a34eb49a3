package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
)

const (
	defaultCommandTimeout = 2 * time.Minute
	maxCommandTimeout     = 10 * time.Minute
	commandGrace          = 2 * time.Second
	commandOutput         = 4 << 20 // bytes after which a command is killed
)

type bashInput struct {
	Command string `json:"command"`
	Timeout int64  `json:"timeout"` // milliseconds
}

func (c *conversation) bash(ctx context.Context, in bashInput) (string, error) {
	if in.Command == "" {
		return "", errors.New("command is missing")
	}
	timeout := defaultCommandTimeout
	if in.Timeout > 0 {
		timeout = min(time.Duration(in.Timeout)*time.Millisecond, maxCommandTimeout)
	}
	environment, err := c.shellEnvironment()
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	result, err := c.cfg.Spawner.Spawn(ctx, sandbox.SpawnSpec{
		Argv:      c.shell(in.Command),
		Dir:       c.cfg.Dir,
		Env:       environment,
		Timeout:   timeout,
		Grace:     commandGrace,
		MaxOutput: commandOutput,
		Isolation: c.cfg.Isolated(c.shellHome(), c.shellTmp()),
		Limits:    c.cfg.Limits,
	}, &out, &out)
	switch {
	case err != nil:
		return out.String(), err
	case result.TimedOut:
		return out.String(), fmt.Errorf("the command was ended after %s", timeout)
	case result.OutputLimit:
		return out.String(), fmt.Errorf("the command was ended because it printed more than %d bytes", commandOutput)
	case result.Exceeded != "":
		return out.String(), fmt.Errorf("the command was ended because it used more %s than its limit", result.Exceeded)
	case result.Cancelled:
		return out.String(), errors.New("the command was interrupted")
	case result.Signal != "" && c.cfg.Isolation.Kind == sandbox.IsolationBwrap:
		// of bubblewrap, which nothing inside can reach: a command's own is an exit code
		return out.String(), fmt.Errorf("%w: bubblewrap was ended by %s", agent.ErrKilled, result.Signal)
	case result.Signal != "":
		return out.String(), fmt.Errorf("the command was ended by %s", result.Signal)
	case result.ExitCode != 0:
		return out.String(), fmt.Errorf("exit code %d", result.ExitCode)
	case out.Len() == 0:
		return "(no output)", nil
	default:
		return out.String(), nil
	}
}

// anyShell runs a command with bash, or with sh in an image that has no bash.
const anyShell = `command -v bash >/dev/null 2>&1 && exec bash -c "$0"; exec sh -c "$0"`

func (c *conversation) shell(command string) []string {
	if c.cfg.Isolation.Container != nil {
		return []string{"sh", "-c", anyShell, command}
	}
	return []string{"bash", "-c", command}
}

// shellHome and shellTmp are the directories of commands within the session's home, whose other
// files they must not see.
func (c *conversation) shellHome() string { return filepath.Join(c.cfg.Home, "home") }

func (c *conversation) shellTmp() string { return filepath.Join(c.cfg.Home, "tmp") }

// shellEnvironment returns the environment of a command: the common variables, the session's own
// home and temporary directory, what the caller adds by name, and no credential.
func (c *conversation) shellEnvironment() ([]string, error) {
	home, tmp := c.shellHome(), c.shellTmp()
	for _, dir := range []string{home, tmp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("prepare the shell: %w", err)
		}
	}
	environment := sandbox.NewEnvironment(sandbox.EnvironmentConfig{Parent: c.cfg.Environ, Home: home, TmpDir: tmp})
	for _, pair := range c.cfg.ExtraEnv {
		if name, value, ok := strings.Cut(pair, "="); ok {
			environment[name] = value
		}
	}
	return environment.List(), nil
}
