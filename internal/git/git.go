// Package git runs the git binary: with a clean environment, so that no GIT_ variable and no
// setting of the user changes what a command does, without hooks, without questions, and without
// reading settings that would start another program.
//
//	sha, err := git.Output(ctx, repository, "rev-parse", "HEAD")
package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Command is one call of git.
type Command struct {
	// Dir is the directory to run in; empty: ours.
	Dir  string
	Args []string
	// Program is the git to run; empty: the first in PATH.
	Program string
	// Env is added to the clean environment as NAME=value.
	Env []string
	// UserConfig lets git read the user's own settings, which fetching from a private repository
	// may need. Hooks stay off.
	UserConfig bool
	Stdin      io.Reader
	// Stdout receives git's standard output; nil discards it.
	Stdout io.Writer
}

// Error is a git command that failed.
type Error struct {
	Args     []string
	ExitCode int // -1 if it could not be started or was killed
	Stderr   string
	Err      error
}

func (e *Error) Error() string {
	what := "git " + strings.Join(e.Args, " ")
	if e.Stderr != "" {
		return fmt.Sprintf("%s: exit %d: %s", what, e.ExitCode, strings.Join(strings.Fields(e.Stderr), " "))
	}
	return fmt.Sprintf("%s: %v", what, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// passedOn are the variables that git may take from us: to find its helpers, to reach the network,
// and to use the user's keys.
var passedOn = []string{
	"PATH", "HOME", "USER", "TMPDIR", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "ALL_PROXY", "all_proxy",
}

// stderrLimit bounds what is kept of an error message.
const stderrLimit = 4 << 10

// Run runs git to its end. A context that is cancelled kills it.
func Run(ctx context.Context, c Command) error {
	args := append([]string{
		"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never", "-c",
		"gc.auto=0", "-c", "maintenance.auto=false",
		"-c", "core.autocrlf=false", "-c", "core.pager=cat", "-c", "advice.detachedHead=false",
	}, c.Args...)
	cmd := exec.CommandContext(ctx, cmp.Or(c.Program, "git"), args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout = c.Dir, c.Stdin, c.Stdout
	cmd.Env = append(environment(c.UserConfig), c.Env...)
	cmd.WaitDelay = 5 * time.Second
	stderr := &tail{limit: stderrLimit}
	cmd.Stderr = stderr
	err := cmd.Run()
	if err == nil {
		return nil
	}
	failed := &Error{
		Args:     c.Args,
		ExitCode: -1,
		Stderr:   strings.TrimSpace(stderr.String()),
		Err:      err,
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		failed.ExitCode = exit.ExitCode()
	}
	if ctx.Err() != nil {
		failed.Err, failed.Stderr = ctx.Err(), ""
	}
	return failed
}

// Output runs git in a directory and returns what it printed, without the white space around it.
func Output(ctx context.Context, dir string, args ...string) (string, error) {
	var out bytes.Buffer
	err := Run(ctx, Command{Dir: dir, Args: args, Stdout: &out})
	return strings.TrimSpace(out.String()), err
}

// Resolve returns the commit that a reference names; a reference that looks like an option is
// refused.
func Resolve(ctx context.Context, repository, ref string) (string, error) {
	ref = cmp.Or(ref, "HEAD")
	if strings.HasPrefix(ref, "-") {
		return "", fmt.Errorf("%q is not a reference", ref)
	}
	return Output(ctx, repository, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
}

func environment(userConfig bool) []string {
	env := []string{
		"LC_ALL=C", "TZ=UTC", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_AUTHOR_NAME=fit", "GIT_AUTHOR_EMAIL=fit@localhost", "GIT_COMMITTER_NAME=fit",
		"GIT_COMMITTER_EMAIL=fit@localhost",
	}
	if !userConfig {
		env = append(env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_ATTR_NOSYSTEM=1")
	}
	for _, name := range passedOn {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	kept  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if len(t.kept) > t.limit {
		t.kept = t.kept[len(t.kept)-t.limit:]
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.kept), "?") }
