package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// bubblewrap is a fact of the machine, which is found out once.
var bubblewrap = sync.OnceValue(func() sandbox.Capabilities { return sandbox.DetectBwrap(context.Background()) })

// needBwrap ends a test where programs cannot be isolated.
func needBwrap(t *testing.T) {
	t.Helper()
	if c := bubblewrap(); !c.Bwrap.OK || !c.BwrapNetwork.OK {
		testenv.Missing(t, "bubblewrap does not work here: %s; %s (%s; %s)",
			c.Bwrap.Detail, c.Bwrap.Fix, c.BwrapNetwork.Detail, c.BwrapNetwork.Fix)
	}
}

// cell is a workspace with things around it that an agent must not see.
type cell struct{ workspace, hidden, sibling, readable string }

func newCell(t *testing.T) cell {
	t.Helper()
	needBwrap(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := cell{
		workspace: filepath.Join(root, "run 1", "workspace"),
		hidden:    filepath.Join(root, "run 1", "workspace", "hidden"),
		sibling:   filepath.Join(root, "run 2"), readable: filepath.Join(root, "tools"),
	}
	for _, dir := range []string{c.workspace, c.hidden, c.sibling, c.readable} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(filepath.Base(dir)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c cell) spec(script string) sandbox.SpawnSpec {
	spec := shell(script)
	spec.Dir = c.workspace
	spec.Isolation = sandbox.Isolation{
		Kind: sandbox.IsolationBwrap, Writable: []string{c.workspace},
		ReadOnly: []string{c.readable}, Hidden: []string{c.hidden, filepath.Join(c.workspace, "not-there")},
	}
	spec.Env = append(spec.Env, "SIBLING="+c.sibling, "READABLE="+c.readable, "HIDDEN="+c.hidden)
	return spec
}

func TestIsolatedProgramSeesItsWorkspaceAndNothingElse(t *testing.T) {
	c := newCell(t)
	for _, check := range []struct{ name, script, want string }{
		{"workspace is writable", `echo new > made && cat file made`, "workspace\nnew\n"},
		{"readable is readable", `cat "$READABLE/file"`, "tools\n"},
		{"readable is not writable", `echo x 2>/dev/null > "$READABLE/file" || echo refused`, "refused\n"},
		{"hidden is empty", `ls -A "$HIDDEN"; cat "$HIDDEN/file" 2>/dev/null || echo nothing`, "nothing\n"},
		{"sibling is not there", `ls "$SIBLING" 2>/dev/null || echo nothing`, "nothing\n"},
		{"neighbours cannot be listed", `ls ../..`, "run 1\ntools\n"},
		{"home and tmp are empty", `ls -A /home /root /run | grep -v :$ | grep .; [ -z "$(ls -A /tmp | grep -vx "$(pwd | cut -d/ -f3)")" ] && echo empty`, "empty\n"},
		{"tmp is writable", `echo t > /tmp/x && cat /tmp/x`, "t\n"},
		{"system is not writable", `touch /usr/x /etc/x 2>/dev/null || echo refused`, "refused\n"},
		{"password hashes are gone", `cat /etc/shadow 2>/dev/null | wc -c`, "0\n"},
		{"processes outside are invisible", `ls -d /proc/[0-9]* | wc -l | awk '{print ($1 < 8)}'`, "1\n"},
		{"no privileges", `grep CapEff /proc/self/status | tr -d '\t'`, "CapEff:0000000000000000\n"},
		{"no other descriptor", `ls /proc/self/fd | tr '\n' ' '`, "0 1 2 3 "},
		{"runs in the workspace", `pwd`, c.workspace + "\n"},
	} {
		t.Run(check.name, func(t *testing.T) {
			result, out, errs := run(t, sandbox.Local{}, c.spec(check.script))
			if out != check.want {
				t.Errorf("printed %q and %q, want %q (%+v)", out, errs, check.want, result)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(c.hidden, "file")); err != nil {
		t.Errorf("hiding has touched the real file: %v", err)
	}
}

func TestIsolatedProgramHasNoNetworkUnlessAllowed(t *testing.T) {
	c := newCell(t)
	bash := testenv.NeedTool(t, "bash")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "hello\n")
			conn.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for network, want := range map[bool]string{true: "hello\n", false: "no\n"} {
		spec := c.spec("")
		spec.Argv = []string{bash, "-c", `(cat < /dev/tcp/127.0.0.1/` + port + `) 2>/dev/null || echo no`}
		spec.Isolation.Network = network
		if _, out, _ := run(t, sandbox.Local{}, spec); out != want {
			t.Errorf("network %v: printed %q, want %q", network, out, want)
		}
	}
}

func TestIsolatedExitCodesAndExtraFilesGetThrough(t *testing.T) {
	c := newCell(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	spec := c.spec(`echo row >&3; ls /proc/self/fd | tr '\n' ' '; exit 9`)
	spec.ExtraFiles = []*os.File{write}
	result, out, _ := run(t, sandbox.Local{}, spec)
	write.Close()
	row, err := io.ReadAll(read)
	if err != nil || string(row) != "row\n" || out != "0 1 2 3 4 " || result.ExitCode != 9 {
		t.Errorf("extra file %q, descriptors %q, result %+v, %v", row, out, result, err)
	}
}

func TestIsolatedTreeIsKilled(t *testing.T) {
	c := newCell(t)
	for name, script := range hostile {
		t.Run(name, func(t *testing.T) {
			marker := newMarker(t)
			spec := c.spec(strings.ReplaceAll(script, "@", marker))
			spec.Grace = 100 * time.Millisecond
			_, took := spawnUntilUp(t, sandbox.Local{}, spec)
			// The kernel ends a PID namespace a moment after its first process.
			eventually(t, "everything is gone", func() bool { return len(alive(marker)) == 0 })
			if took > patience {
				t.Errorf("the end took %v", took)
			}
		})
	}
}

func TestIsolatedLeftoversDieWithTheProgram(t *testing.T) {
	c := newCell(t)
	marker := newMarker(t)
	result, _, _ := run(t, sandbox.Local{}, c.spec(strings.ReplaceAll(`setsid sleep @ & (sleep @ &); exit 7`, "@", marker)))
	eventually(t, "everything is gone", func() bool { return len(alive(marker)) == 0 })
	if result.ExitCode != 7 || result.LeftoversKilled != 0 {
		t.Errorf("got %+v", result)
	}
}

func TestIsolatedProgramMayCleanUpAfterSIGTERM(t *testing.T) {
	c := newCell(t)
	file := filepath.Join(c.workspace, "cleaned")
	_ = os.Remove(file)
	result, _ := spawnUntilUp(t, sandbox.Local{},
		c.spec(`trap 'touch cleaned; exit 5' TERM; echo up; while :; do sleep 0.01; done`))
	if _, err := os.Stat(file); err != nil || result.ExitCode != 5 {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestSandboxThatCannotBeMadeIsNoFailureOfTheProgram(t *testing.T) {
	c := newCell(t)
	spec := c.spec("")
	spec.Argv = []string{filepath.Join(c.sibling, "file")} // exists, but not in the sandbox
	var errs bytes.Buffer
	_, err := sandbox.Local{}.Spawn(t.Context(), spec, nil, &errs)
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v, %q", err, errs.String())
	}
	for name, change := range map[string]func(*sandbox.SpawnSpec){
		"working directory is not visible": func(s *sandbox.SpawnSpec) { s.Dir = c.sibling },
		"no such file": func(
			s *sandbox.SpawnSpec,
		) {
			s.Isolation.Writable = append(s.Isolation.Writable, "/no/such/dir")
		},
		"not absolute": func(s *sandbox.SpawnSpec) { s.Isolation.ReadOnly = []string{"relative"} },
		"both":         func(s *sandbox.SpawnSpec) { s.Isolation.ReadOnly = []string{c.workspace} },
	} {
		t.Run(name, func(t *testing.T) {
			spec := c.spec("true")
			change(&spec)
			if name == "working directory is not visible" {
				name = "is not visible"
			}
			if _, err := (sandbox.Local{}).Spawn(t.Context(), spec, nil, nil); err == nil ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWholeRootCanBeShownReadOnly(t *testing.T) {
	c := newCell(t)
	spec := c.spec(`cat "$SIBLING/file" 2>/dev/null || echo nothing; touch /usr/x 2>/dev/null || echo refused; echo ok > made; ls -A /root`)
	spec.Isolation.ReadOnly = []string{"/"}
	// The sibling lies in /tmp, which is empty unless it is asked for.
	if _, out, errs := run(t, sandbox.Local{}, spec); out != "nothing\nrefused\n" {
		t.Errorf("printed %q and %q", out, errs)
	}
}

func TestLinkedPathWorksInside(t *testing.T) {
	c := newCell(t)
	link := filepath.Join(filepath.Dir(c.sibling), "link")
	if err := os.Symlink(c.readable, link); err != nil {
		t.Fatal(err)
	}
	spec := c.spec(`cat "$0/file"`)
	spec.Argv = append(spec.Argv, link)
	spec.Isolation.ReadOnly = []string{link}
	if _, out, errs := run(t, sandbox.Local{}, spec); out != "tools\n" {
		t.Errorf("printed %q and %q", out, errs)
	}
}

// A bubblewrap that fails although the kernel would let it has a way out, too.
func TestABrokenBubblewrapNamesAWayOut(t *testing.T) {
	for program, want := range map[string]string{
		"#!/bin/sh\necho 'bwrap: no' >&2\nexit 1\n": "bwrap: no",
		"#!/bin/sh\nkill -9 $$\n":                   "ended by SIGKILL",
		"nonsense":                                  "exec format error",
	} {
		t.Run(program, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte(program), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":/usr/bin:/bin")
			found := sandbox.DetectBwrap(t.Context())
			for _, c := range []sandbox.Capability{found.Bwrap, found.BwrapNetwork} {
				if c.OK || !strings.Contains(c.Detail, want) || c.Fix == "" {
					t.Errorf("%+v, want %q and a fix", c, want)
				}
			}
		})
	}
}

// What fails once says nothing about the machine: giving up isolation needs more than that.
func TestABubblewrapThatFailsOnceIsTriedAgain(t *testing.T) {
	if !bubblewrap().Bwrap.OK {
		testenv.Missing(t, "bubblewrap: %s", bubblewrap().Bwrap.Detail)
	}
	real, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	for _, failure := range []string{
		"echo 'bwrap: Creating new namespace failed: Resource temporarily unavailable' >&2; exit 1",
		"echo 'bwrap: something that nobody knows' >&2; exit 1",
		"kill -9 $$",
	} {
		dir := t.TempDir()
		fakeBwrap(t, dir, "mkdir "+dir+"/failed 2>/dev/null && { "+failure+"; }\nexec "+real+` "$@"`)
		found := sandbox.DetectBwrap(t.Context())
		if !found.Bwrap.OK || !found.BwrapNetwork.OK || found.Unknown != nil {
			t.Errorf("%s: %+v", failure, found)
		}
		if _, err := os.Stat(filepath.Join(dir, "failed")); err != nil {
			t.Error(err)
		}
	}
}

// A machine that fails has not been found to lack isolation; one that refuses it has.
func TestAMachineThatFailsIsNotOneWithoutIsolation(t *testing.T) {
	for failure, fails := range map[string]bool{
		"kill -9 $$": true,
		"echo 'bwrap: Creating new namespace failed: Resource temporarily unavailable' >&2; exit 1": true,
		"echo 'bwrap: fork: Cannot allocate memory' >&2; exit 1":                                    true,
		"echo 'bwrap: No permissions to create a new namespace' >&2; exit 1":                        false,
		"echo 'bwrap: Creating new namespace failed: Operation not permitted' >&2; exit 1":          false,
		"echo 'bwrap: Unknown option --json-status-fd' >&2; exit 1":                                 false,
	} {
		fakeBwrap(t, t.TempDir(), failure)
		found := sandbox.DetectBwrap(t.Context())
		if found.Bwrap.OK || found.Bwrap.Fix == "" || (found.Unknown != nil) != fails {
			t.Errorf("%s: %+v", failure, found)
		}
		network := sandbox.PrivateNetworkWorks(t.Context())
		if network == nil || errors.Is(network, sandbox.ErrUntested) != fails {
			t.Errorf("%s, in a network: %v", failure, network)
		}
	}
}

// fakeBwrap makes a shell script the bubblewrap of this process.
func fakeBwrap(t *testing.T, dir, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/local/bin:/usr/bin:/bin")
}
