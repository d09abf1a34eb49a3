package sandbox_test

import (
	"bytes"
	"cmp"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// unprivilegedHarness runs the harness role as a user without privileges.
func unprivilegedHarness(t *testing.T, user testenv.User, containment sandbox.Containment, script string) string {
	t.Helper()
	cmd := exec.Command(user.Binary, string(containment), script)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", roleVariable + "=harness", quickExit}
	cmd.SysProcAttr = user.Attributes
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return out.String()
}

// strongestFor is a PID namespace wherever users may make user namespaces.
func strongestFor(t *testing.T, user testenv.User) sandbox.Containment {
	t.Helper()
	cmd := exec.Command(testenv.NeedTool(t, "unshare"), "--user", "--map-root-user", "--pid", "--fork", "--mount-proc",
		"true")
	cmd.SysProcAttr = user.Attributes
	if err := cmd.Run(); err != nil {
		return sandbox.SubReaper
	}
	return sandbox.PIDNamespace
}

func TestUnprivilegedHarnessKillsTheTreeToo(t *testing.T) {
	user := testenv.OrdinaryUser(t)
	for _, containment := range []sandbox.Containment{"", sandbox.SubReaper} {
		marker := newMarker(t)
		script := strings.ReplaceAll(`id -u; env -i "$(command -v setsid)" sh -c "sleep @ & sleep @ &"; exit 4`, "@",
			marker)
		out := unprivilegedHarness(t, user, containment, script)
		mustBeGone(t, marker)
		if !strings.Contains(out, strconv.Itoa(user.ID)+"\n") ||
			!strings.Contains(out, "exit=4 leftovers=2 error=<nil>") {
			t.Errorf("containment %q: %s", containment, out)
		}
		if !strings.Contains(out, "containment="+string(cmp.Or(containment, strongestFor(t, user)))) {
			t.Errorf("containment %q was asked for: %s", containment, out)
		}
	}
}

func TestUnprivilegedProgramHasNoMorePrivilegesInItsNamespace(t *testing.T) {
	out := unprivilegedHarness(t, testenv.OrdinaryUser(t), "", `grep -E 'CapEff|CapPrm|CapAmb' /proc/self/status | tr -d '\t'; cat /etc/shadow; kill -9 1; echo alive`)
	if strings.Count(out, ":0000000000000000\n") != 3 || strings.Contains(out, "root:") ||
		!strings.Contains(out, "alive\n") {
		t.Errorf("got %s", out)
	}
}
