package testenv

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	// Not t.TempDir: its parents may be private.
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

// AsOrdinaryUser runs tests of this binary once more, as an ordinary user with a home of its own.
// Each is a name, or a name, a slash and a pattern of subtests. Those with a short form run that
// one. They find the given files and directories by the same names, and the variables FIT_TEST_….
// Where the tests do not run as root there is nothing to do: they have run as such a user already.
func AsOrdinaryUser(t *testing.T, tests []string, files ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	binary := PublicBinary(t)
	home := filepath.Join(filepath.Dir(binary), "home")
	dir := filepath.Join(home, "fit", "package", "tests") // names of files may begin with ../..
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chown(home, Nobody, Nobody), os.Chown(dir, Nobody, Nobody)); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if err := copyAll(name, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var names, patterns []string
	for _, test := range tests {
		name, subtests, _ := strings.Cut(test, "/")
		names, patterns = append(names, name), append(patterns, "^"+name+"$/"+subtests)
	}
	cmd := exec.Command(binary, "-test.run", strings.Join(patterns, "|"), "-test.v", "-test.short")
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "CI=" + os.Getenv("CI"),
		"GORACE=atexit_sleep_ms=0", // it ends at once, not after a second
	}
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "FIT_TEST_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Nobody, Gid: Nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
	for _, name := range names {
		if !bytes.Contains(out, []byte("=== RUN   "+name+"\n")) {
			t.Errorf("%s did not run as an ordinary user", name)
		}
	}
	t.Logf("%s", out)
}

// copyAll copies a file or a directory, and lets every user read the copy.
func copyAll(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), copyProgram(from, to))
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
