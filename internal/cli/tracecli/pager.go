package tracecli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
)

// pager returns where answers go: through a pager when a person looks at a terminal, else straight
// to standard output. The second result waits for the person to leave the pager.
func (a *app) pager(ctx context.Context) (io.Writer, func() error) {
	direct := func() error { return nil }
	terminal, isFile := a.con.Stdout.(*os.File)
	if a.flags.noPager || !isFile || !a.con.StdoutIsTerminal() {
		return a.con.Stdout, direct
	}
	name, args := a.pagerCommand()
	if name == "" {
		return a.con.Stdout, direct
	}
	command := exec.CommandContext(ctx, name, args...)
	command.Stdout, command.Stderr = terminal, a.con.Stderr
	command.Env = append(append([]string{}, a.con.Environ...), "LESSCHARSET=utf-8")
	in, err := command.StdinPipe()
	if err != nil || command.Start() != nil {
		return a.con.Stdout, direct
	}
	return in, func() error {
		closed := in.Close()
		waited := command.Wait()
		if errors.Is(closed, os.ErrClosed) {
			closed = nil
		}
		var exit *exec.ExitError
		if errors.As(waited, &exit) { // the pager was left in an unusual way; the answer is complete all the same
			waited = nil
		}
		return errors.Join(closed, waited)
	}
}

// pagerCommand is the person's own pager, else less: it shows colours, stays out of the way of
// short answers, and leaves the text on the screen.
func (a *app) pagerCommand() (string, []string) {
	if own, set := a.con.LookupEnv("PAGER"); set {
		fields := strings.Fields(own)
		if len(fields) == 0 || fields[0] == "cat" {
			return "", nil
		}
		return fields[0], fields[1:]
	}
	if path, err := exec.LookPath("less"); err == nil {
		return path, []string{"-FRX"}
	}
	return "", nil
}
