package sandbox_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// findsKey looks for the credential in every process that it can see.
const findsKey = `found=0; for f in /proc/[0-9]*/environ; do
	tr '\0' '\n' <$f 2>/dev/null | grep -q "^` + keyVariable + `=a-secret" && found=1; done; echo found=$found; `

// withoutNamespaces runs the harness as a user who may not make user namespaces.
func withoutNamespaces(t *testing.T, containment sandbox.Containment, before ...string) string {
	t.Helper()
	needBwrap(t)
	user := testenv.OrdinaryUser(t)
	cmd := exec.Command(testenv.NeedTool(t, "bwrap"), "--dev-bind", "/", "/", "--unshare-user", "--disable-userns",
		"--uid", fmt.Sprint(testenv.Nobody), "--gid", fmt.Sprint(testenv.Nobody), "--")
	cmd.Args = slices.Concat(cmd.Args, before, []string{user.Binary, string(containment), findsKey})
	cmd.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", roleVariable + "=harness", keyVariable + "=a-secret", quickExit,
	}
	if len(before) > 0 {
		cmd.Env = append(cmd.Env, roleVariable+"=hiding harness")
	}
	cmd.SysProcAttr = user.Attributes
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return out.String()
}

func TestWithoutNamespacesTheHarnessIsClosedToItsPrograms(t *testing.T) {
	if out := withoutNamespaces(t, ""); !strings.Contains(out, "containment=sub-reaper") ||
		!strings.Contains(out, "found=0\n") || !strings.Contains(out, "exposes=false") {
		t.Errorf("got %s", out)
	}
}

// The shell from which the user started the harness has the key too, and nobody can close it.
func TestAKeyInTheUsersShellIsExposed(t *testing.T) {
	out := withoutNamespaces(t, "", "sh", "-c", `"$0" "$@"; true`)
	if !strings.Contains(out, "found=1\n") || !strings.Contains(out, "exposes=true") {
		t.Errorf("got %s", out)
	}
}

// A caller who asks for the weaker mechanism gets it as it is. It shows that the attack works.
func TestTheAttackOnTheHarnessWorksWhereItIsOpen(t *testing.T) {
	if out := withoutNamespaces(t, sandbox.SubReaper); !strings.Contains(out, "found=1\n") {
		t.Errorf("got %s", out)
	}
}

func TestHiddenVariablesAreGoneFromTheKernelsListOnly(t *testing.T) {
	cmd := exec.Command(os.Args[0], keyVariable)
	cmd.Env = []string{"BEFORE=1", keyVariable + "=a-secret", "AFTER=2", roleVariable + "=hide"}
	out, err := cmd.CombinedOutput()
	if want := "\"BEFORE=1\" \"" + keyVariable + "=\" \"AFTER=2\" a-secret 2"; err != nil || string(out) != want {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}
}

// playHide hides a variable and prints what the kernel shows of the environment, and what Go does.
func playHide(name string) int {
	if err := sandbox.HideVariables(name); err != nil {
		fmt.Println(err)
		return 1
	}
	block, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for variable := range bytes.SplitSeq(block, []byte{0}) {
		if len(variable) > 0 && !bytes.HasPrefix(variable, []byte(roleVariable)) {
			fmt.Printf("%q ", variable)
		}
	}
	fmt.Print(os.Getenv(name), " ", os.Getenv("AFTER"))
	return 0
}
