package testenv

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Nobody is the ordinary user that tests started by root run programs as.
const Nobody = 65534

// PublicBinary copies the running test binary to a directory that every user can reach, and returns
// its path. It needs root, who alone can start it as another user.
func PublicBinary(t testing.TB) string {
	t.Helper()
	if os.Getuid() != 0 {
		Missing(t, "only root can start a program as another user")
	}
	// Not t.TempDir: its parents may be closed to other users.
	dir, err := os.MkdirTemp("/tmp", "fit-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "test")
	if err := copyProgram(os.Args[0], path); err != nil {
		t.Fatal(err)
	}
	return path
}

// User is whom a test runs its own binary as.
type User struct {
	Binary     string // a path that the user can reach
	ID         int
	Attributes *syscall.SysProcAttr // make a process the user's
}

// OrdinaryUser returns a user without privileges: nobody where the tests run as root, else the one
// who runs them.
func OrdinaryUser(t testing.TB) User {
	t.Helper()
	if os.Getuid() == 0 {
		credential := &syscall.Credential{Uid: Nobody, Gid: Nobody}
		return User{PublicBinary(t), Nobody, &syscall.SysProcAttr{Credential: credential}}
	}
	return ThisUser(t)
}

// ThisUser returns the one who runs the tests.
func ThisUser(t testing.TB) User {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return User{binary, os.Getuid(), nil}
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

// AsOrdinaryUser runs the tests of this binary whose names match a pattern once more, as an
// ordinary user with a home of its own, in which it finds the given files by the same names. Where
// the tests do not run as root there is nothing to do: they have run as such a user already.
func AsOrdinaryUser(t *testing.T, pattern string, files ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	binary := PublicBinary(t)
	home := filepath.Join(filepath.Dir(binary), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, Nobody, Nobody); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		to := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), copyProgram(name, to)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(binary, "-test.run", pattern, "-test.v")
	cmd.Dir = home
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "CI=" + os.Getenv("CI"),
		"GORACE=atexit_sleep_ms=0", // it ends at once, not after a second
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Nobody, Gid: Nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// CanMount reports whether the test may mount file systems. Where the tests do not run as root it
// may not: CanMount runs it once more as root of a user namespace with mounts of its own, and the
// test that asked has nothing left to do.
func CanMount(t *testing.T) bool {
	t.Helper()
	if os.Getuid() == 0 {
		return true
	}
	unshare := []string{NeedTool(t, "unshare"), "--user", "--map-root-user", "--mount"}
	if out, err := exec.Command(unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
		Missing(t, "root, or a user who may make user namespaces: %s", out)
	}
	unshare = append(unshare, ThisUser(t).Binary, "-test.run", "^"+t.Name()+"$", "-test.v")
	out, err := exec.CommandContext(t.Context(), unshare[0], unshare[1:]...).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Errorf("as root of a user namespace: %v", err)
	}
	t.Logf("%s", out)
	return false
}
