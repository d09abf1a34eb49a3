package sandbox_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/sandbox/untrusted"
)

// asUntrusted runs a program as a hook would, from a shell that has a descriptor and variables of
// its own.
func asUntrusted(t *testing.T, script string) (stdout, stderr, rows string, status int) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, untrusted.Name)); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, "rows"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + dir + ":/usr/local/bin:/usr/bin:/bin", "RESULTS_FD=3", "TASK_DIR=/task", "PORT=20000",
		"TASK_ID=one",
	}
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = strings.NewReader("input\n"), &out, &errs, []*os.File{file}
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), string(content), cmd.ProcessState.ExitCode()
}

func TestUntrustedProgramsGetNothingOfTheHook(t *testing.T) {
	for name, test := range map[string]struct {
		script, stdout, stderr string
		status                 int
	}{
		"streams and arguments": {
			script: `echo input | fit-untrusted sh -c 'cat; echo "$1" >&2' x 'a b'`, stdout: "input\n",
			stderr: "a b\n",
		},
		"variables": {
			script: `fit-untrusted sh -c 'echo "$PORT$RESULTS_FD$TASK_DIR$TASK_ID"'`,
			stdout: "20000\n",
		},
		"descriptor": {script: `fit-untrusted sh -c '(echo forged >&3) 2>/dev/null || echo closed'; echo row >&3`, stdout: "closed\n"},
		"descriptor of the hook": {
			script: `fit-untrusted sh -c 'for f in 1 3; do (echo forged >/proc/'$$'/fd/$f) 2>/dev/null || echo closed; done
				for p in /proc/[0-9]*; do (echo forged >$p/fd/3) 2>/dev/null; done; true'; echo row >&3`,
			stdout: "closed\nclosed\n",
		},
		"environment of the hook": {
			script: `fit-untrusted sh -c 'cat /proc/'$$'/environ /proc/$PPID/environ 2>/dev/null | tr "\0" "\n" | grep -c TASK'`, stdout: "0\n", status: 1,
		},
		"status":        {script: `fit-untrusted sh -c 'exit 7'`, status: 7},
		"signal":        {script: `fit-untrusted sh -c 'kill -9 $$'`, status: 137},
		"dashes":        {script: `fit-untrusted -- echo --`, stdout: "--\n"},
		"not there":     {script: `fit-untrusted no-such-program`, stderr: "no-such-program", status: 127},
		"not a program": {script: `fit-untrusted /`, stderr: "fit-untrusted: /: ", status: 126},
		"nothing":       {script: `fit-untrusted`, stderr: "usage: fit-untrusted", status: 2},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, rows, status := asUntrusted(t, test.script)
			if stdout != test.stdout || !strings.Contains(stderr, test.stderr) || status != test.status ||
				strings.Contains(rows, "forged") {
				t.Errorf("printed %q and %q, status %d, rows %q", stdout, stderr, status, rows)
			}
		})
	}
}
