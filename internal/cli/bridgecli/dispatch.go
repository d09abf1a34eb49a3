package bridgecli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/session"
)

// dispatcher holds runs as child processes.
type dispatcher struct {
	con     *console.Console
	dir     string
	discuss []string // flags of fit-harness discuss
	resume  []string // those of them that fit-harness resume needs again
}

// flagsOfResume returns the flags of fit-harness discuss that a run which is continued does not
// find in its trace. They come from the commands themselves, so mistakes in them are found here.
func flagsOfResume(root *cobra.Command, given []string) (again []string, err error) {
	commands := map[string]*cobra.Command{}
	for _, name := range []string{"discuss", "resume"} {
		if commands[name], _, err = root.Find([]string{"harness", name}); err != nil {
			return nil, err
		}
	}
	err = commands["discuss"].Flags().ParseAll(given, func(flag *pflag.Flag, value string) error {
		if commands["resume"].Flags().Lookup(flag.Name) != nil {
			again = append(again, "--"+flag.Name+"="+value)
		}
		return nil
	})
	if err != nil {
		err = console.Usagef("fit-harness discuss: %w", err)
	}
	return again, err
}

const (
	// continuations is how often a run that died is continued.
	continuations = 10
	// continuePause is the pause before that: its first process may be about to end.
	continuePause = time.Second
	// stopLimit is how long a run may take to stop its agents.
	stopLimit = 15 * time.Second
)

// hold runs a discussion to its end and reports it. A run whose process died is continued from its
// trace, with the same conversations.
func (d dispatcher) hold(ctx context.Context, job server.Job) error {
	trace, home := d.files(job)
	if err := os.MkdirAll(filepath.Dir(trace), 0o700); err != nil {
		return err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	for n := 0; ; n++ {
		_, err := harness.Inspect(trace)
		args := append([]string{"resume", trace}, d.resume...)
		ended := errors.Is(err, harness.ErrEnded)
		switch {
		case ended:
			args = []string{"callback", "--trace-file", trace, "--run-url", "file://" + trace}
		case errors.Is(err, os.ErrNotExist), errors.Is(err, harness.ErrNoSession):
			_ = os.Remove(trace) // it has no session
			if args, err = d.beginning(job, trace, home); err != nil {
				return err
			}
		case err != nil:
			return err
		}
		said, err := d.child(ctx, job, args...)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && ended {
			return nil
		}
		var exit *exec.ExitError
		_, missing := os.Stat(trace)
		switch {
		case err == nil:
		case missing != nil && errors.As(err, &exit) && exit.Exited(): // it was refused, and nothing was started
			return errors.New(said)
		case n == continuations:
			return fmt.Errorf("the run died %d times: %s", n+1, said)
		case !ended:
			if err := within(ctx, continuePause); err != nil {
				return err
			}
		}
	}
}

// spent returns what says how much a run on this machine has cost, as its trace has it.
func (d dispatcher) spent(dialects session.Dialects) func(context.Context, server.Job) float64 {
	return func(ctx context.Context, job server.Job) float64 {
		path, _ := d.files(job)
		t, err := query.Open(path, query.Options{Dialects: dialects, Prices: d.con.Prices()})
		if err != nil {
			return 0 // it has hardly begun, or is held elsewhere
		}
		overview, _, err := t.Overview(ctx)
		if err != nil || overview.Summary.TotalCostUSD == nil {
			return 0
		}
		return *overview.Summary.TotalCostUSD
	}
}

func within(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// beginning is the command line of a run that has not been started.
func (d dispatcher) beginning(job server.Job, trace, home string) ([]string, error) {
	task := filepath.Join(filepath.Dir(trace), "task.md")
	if err := atomicfile.WriteSynced(task, 0o600, []byte(job.Task)); err != nil {
		return nil, err
	}
	args := append([]string{"discuss"}, d.discuss...)
	args = append(args, "--discussion-id", job.Thread, "--session-home", home, "--task-file", task, "--output", trace)
	if job.Resume != nil {
		data, err := json.Marshal(job.Resume)
		if err != nil {
			return nil, err
		}
		resume := filepath.Join(filepath.Dir(trace), "resume.json")
		if err := atomicfile.WriteSynced(resume, 0o600, data); err != nil {
			return nil, err
		}
		args = append(args, "--resume-context", "@"+resume)
	}
	return args, nil
}

// child runs a command of fit-harness, and returns the last line of what it said on standard error.
func (d dispatcher) child(ctx context.Context, job server.Job, args ...string) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return err.Error(), err
	}
	command := exec.CommandContext(ctx, program)
	command.Args = append([]string{"fit", "harness"}, args...)
	command.Env = d.environ(job)
	return d.wait(command)
}

// environ tells a run where its bridge is. The addresses hold a token, so they are on no command
// line. Secrets of the bridge are not for runs.
func (d dispatcher) environ(job server.Job) []string {
	environ := slices.DeleteFunc(slices.Clone(d.con.Environ), func(variable string) bool {
		return strings.HasPrefix(variable, secretVariables)
	})
	return append(environ,
		"CALLBACK_URL="+job.CallbackURL, "INBOX_URL="+job.InboxURL, "CORRELATION_ID="+job.Run)
}

func (d dispatcher) wait(command *exec.Cmd) (string, error) {
	command.Dir = d.con.Path(".")
	command.SysProcAttr = endsWithUs()
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = stopLimit
	var said bytes.Buffer
	command.Stderr = &said
	// the system ends the child with the thread that started it
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := command.Run()
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	last := display.Line(lines[len(lines)-1])
	if err != nil && last == "" {
		last = err.Error()
	}
	return last, err
}

// command returns a dispatch that runs a command of the user's. The command starts a run somewhere,
// which reports its end itself. Its environment says which.
func (d dispatcher) command(shell string) func(context.Context, server.Job) error {
	return func(ctx context.Context, job server.Job) error {
		trace, _ := d.files(job)
		if err := os.MkdirAll(filepath.Dir(trace), 0o700); err != nil {
			return err
		}
		resume := []byte("{}")
		if job.Resume != nil {
			var err error
			if resume, err = json.Marshal(job.Resume); err != nil {
				return err
			}
		}
		files := map[string][]byte{"task.md": []byte(job.Task), "resume.json": resume}
		for name, content := range files {
			if err := atomicfile.WriteSynced(filepath.Join(filepath.Dir(trace), name), 0o600, content); err != nil {
				return err
			}
		}
		command := exec.CommandContext(ctx, "sh", "-c", shell)
		command.Env = append(d.environ(job), "DISCUSSION_ID="+job.Thread,
			"TASK_FILE="+filepath.Join(filepath.Dir(trace), "task.md"),
			"RESUME_CONTEXT=@"+filepath.Join(filepath.Dir(trace), "resume.json"))
		if said, err := d.wait(command); err != nil {
			return fmt.Errorf("--dispatch: %s", said)
		}
		return nil
	}
}
