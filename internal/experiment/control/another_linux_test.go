package control

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

// asAnother names the run directory to the process that plays the other user.
const asAnother = "FIT_TEST_CONTROL_DIR"

// TestAnotherUser: whoever did not start an experiment does not steer it, even where the run
// directory can be read, and the refusal says why.
func TestAnotherUser(t *testing.T) {
	if dir := os.Getenv(asAnother); dir != "" {
		var refused *Refused
		if _, err := Ask(t.Context(), dir, Command{Action: Pause}); !errors.As(err, &refused) {
			t.Errorf("another user asks: %v", err)
		}
		return
	}
	binary := testenv.PublicBinary(t)
	dir := filepath.Join(filepath.Dir(binary), "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	server, err := Serve(dir, still{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	cmd := exec.Command(binary, "-test.run", "^TestAnotherUser$", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{asAnother + "=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testenv.Nobody, Gid: testenv.Nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as another user: %v\n%s", err, out)
	}
	if _, err := Ask(t.Context(), dir, Command{Action: Pause}); err != nil {
		t.Errorf("the owner asks: %v", err)
	}
}
