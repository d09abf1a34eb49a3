package sandbox_test

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/sandbox"
)

// nobody is the user that harnesses without privileges run as in these tests.
const nobody = 65534

// unprivilegedBinary copies this test binary to where every user can run it.
func unprivilegedBinary(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		testenv.Missing(t, "only root can start a harness as another user")
	}
	// Not t.TempDir: its parents may be closed to other users.
	dir, err := os.MkdirTemp("/tmp", "fit-sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	path := filepath.Join(dir, "harness")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// harnessAsNobody runs the harness role as an unprivileged user.
func harnessAsNobody(t *testing.T, containment sandbox.Containment, script string) string {
	t.Helper()
	cmd := exec.Command(unprivilegedBinary(t), string(containment), script)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", roleVariable + "=harness"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return out.String()
}

// strongestForNobody is a PID namespace wherever users may make user namespaces.
func strongestForNobody(t *testing.T) sandbox.Containment {
	t.Helper()
	cmd := exec.Command(testenv.NeedTool(t, "unshare"), "--user", "--map-root-user", "--pid", "--fork", "--mount-proc",
		"true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if err := cmd.Run(); err != nil {
		return sandbox.SubReaper
	}
	return sandbox.PIDNamespace
}

func TestUnprivilegedHarnessKillsTheTreeToo(t *testing.T) {
	for _, containment := range []sandbox.Containment{"", sandbox.SubReaper} {
		marker := newMarker(t)
		script := strings.ReplaceAll(`id -u; env -i "$(command -v setsid)" sh -c "sleep @ & sleep @ &"; exit 4`, "@",
			marker)
		out := harnessAsNobody(t, containment, script)
		mustBeGone(t, marker)
		if !strings.Contains(out, "65534\n") || !strings.Contains(out, "exit=4 leftovers=2 error=<nil>") {
			t.Errorf("containment %q: %s", containment, out)
		}
		if !strings.Contains(out, "containment="+string(cmp.Or(containment, strongestForNobody(t)))) {
			t.Errorf("containment %q was asked for: %s", containment, out)
		}
	}
}

func TestUnprivilegedProgramHasNoMorePrivilegesInItsNamespace(t *testing.T) {
	out := harnessAsNobody(t, "", `grep -E 'CapEff|CapPrm|CapAmb' /proc/self/status | tr -d '\t'; cat /etc/shadow; kill -9 1; echo alive`)
	if strings.Count(out, ":0000000000000000\n") != 3 || strings.Contains(out, "root:") ||
		!strings.Contains(out, "alive\n") {
		t.Errorf("got %s", out)
	}
}
