package network

import (
	"bytes"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user without any rights.
const nobody = 65534

// agentsVariable names the agents that a test binary of another user can start.
const agentsVariable = "FIT_TEST_AGENTS"

// An ordinary user has user namespaces in place of root's rights. Whoever runs the tests as such a
// user has seen it already.
func TestAModelOnlyCellOfAnUnprivilegedUser(t *testing.T) {
	if os.Getuid() != 0 {
		return
	}
	home, err := os.MkdirTemp("/tmp", "fit-network-test-") // not t.TempDir, which other users may not enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(home, "harness")
	copyProgram(t, os.Args[0], binary)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	asNobody := func(dir, program string, args ...string) *exec.Cmd {
		command := exec.Command(program, args...)
		command.Dir = dir
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		command.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8", "CI=" + os.Getenv("CI"),
		}
		return command
	}
	can := "builtin"
	switch readable := asNobody(here, "test", "-r", "../agents/node_modules/.bin/codex").Run() == nil; {
	case !readable:
		here = "/" // the repository lies where others may not look
	case os.Getenv("FIT_SOAK") != "":
		can = strings.Join(slices.Sorted(maps.Keys(agents)), " ")
	default: // root's test has every agent; the walls of a user are the same for all programs
		can += " codex"
	}
	command := asNobody(here, binary, "-test.run", "^TestAModelOnlyCellReachesNothingElse$", "-test.v")
	command.Env = append(command.Env, agentsVariable+"="+can)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil || strings.Count(out.String(), "--- PASS") != 1+len(strings.Fields(can)) {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
