package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
)

// TestTheCopyOfAKilledProcessIsRemovedByTheNextStart makes copies in processes of their own: one is
// killed, one ends in good order, and one still runs.
func TestTheCopyOfAKilledProcessIsRemovedByTheNextStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home [1]*") // a name, not a pattern
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	login := filepath.Join(dir, "login.json")
	if err := os.WriteFile(login, []byte(`{"token":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"HOME=" + dir}
	copied := func(name string) string { return filepath.Join(dir, name) }
	start := func(name, end string) {
		child := exec.Command(os.Args[0], "-test.run=^TestHelperCopiesALogin$")
		child.Env = append(
			os.Environ(),
			"COPY_LOGIN="+login,
			"COPY_TO="+copied(name),
			"COPY_END="+end,
			"COPY_HOME="+dir,
		)
		_ = child.Run() // one of them is killed
	}
	start("killed", "kill")
	start("kept", "keep")
	if err := agent.CopyLogin(agent.Config{Environ: environ, Home: dir}, login, copied("running")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(copied("killed")); err != nil {
		t.Fatal("there is nothing to remove: ", err)
	}
	if err := agent.RemoveLoginCopies(environ); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"killed": false, "kept": true, "running": true} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(copied(name)); (err == nil) != want {
				t.Errorf("the copy of the process that was %s: %v", name, err)
			}
		})
	}
	if _, err := os.Stat(login); err != nil {
		t.Errorf("the login itself: %v", err)
	}
}

// TestHelperCopiesALogin is the process of the test above.
func TestHelperCopiesALogin(t *testing.T) {
	login := os.Getenv("COPY_LOGIN")
	if login == "" {
		return
	}
	environ := []string{"HOME=" + os.Getenv("COPY_HOME")}
	cfg := agent.Config{Environ: environ, Home: os.Getenv("COPY_HOME")}
	if err := agent.CopyLogin(cfg, login, os.Getenv("COPY_TO")); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("COPY_END") == "keep" {
		if err := agent.KeepLoginCopies(environ); err != nil {
			t.Fatal(err)
		}
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	_ = self.Kill()
	select {}
}
