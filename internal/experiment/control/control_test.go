package control

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// still is an experiment that does nothing.
type still struct{}

func (still) Status(context.Context) (Status, error) { return Status{State: Running}, nil }

func (still) Control(_ context.Context, c Command) (string, error) {
	if c.Action == Pause {
		return "paused", nil
	}
	return "", errors.New("no")
}

// TestSocket: a run directory of any length has a socket that only its user can open, and one that
// a killed process left is replaced.
func TestSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long-", 40))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Ask(t.Context(), dir, Command{Action: Ping}); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("nobody listens: %v", err)
	}
	leaveStale(t, dir)
	if _, err := Ask(t.Context(), dir, Command{Action: Ping}); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("a stale socket: %v", err)
	}
	server, err := Serve(dir, still{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(filepath.Join(dir, SocketFile))
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != os.ModeSocket {
		t.Fatalf("%v %v", info, err)
	}
	answer, err := Ask(t.Context(), dir, Command{Action: Pause})
	if err != nil || answer.Message != "paused" || answer.Status.State != Running {
		t.Fatalf("%+v %v", answer, err)
	}
	var refused *Refused
	if _, err := Ask(t.Context(), dir, Command{Action: Resume}); !errors.As(err, &refused) || refused.Reason != "no" {
		t.Errorf("%v", err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// leaveStale makes a socket that nobody listens on any more.
func leaveStale(t *testing.T, dir string) {
	t.Helper()
	at, err := openDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer at.close()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: at.name(SocketFile), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}
