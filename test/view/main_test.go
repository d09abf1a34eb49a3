// Package view looks at fit view with a real browser: every page, live updates, hostile traces,
// damaged directories, the keyboard alone, and accessibility. The scenarios are in scenarios/*.mjs.
package view

import (
	"bufio"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
)

// The test binary is fit itself when it is called by that name.
func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "fit") {
		os.Exit(cli.Main())
	}
	// Tests mostly wait for the browser.
	flag.Parse()
	if err := flag.Set("test.parallel", "5"); err != nil {
		panic(err)
	}
	code := m.Run()
	if driver.stop != nil {
		driver.stop()
	}
	for _, clean := range cleanups.list {
		clean()
	}
	os.Exit(code)
}

// cleanups run after all tests.
var cleanups struct {
	mu   sync.Mutex
	list []func()
}

// atTheEnd does something after all tests.
func atTheEnd(clean func()) {
	cleanups.mu.Lock()
	defer cleanups.mu.Unlock()
	cleanups.list = append(cleanups.list, clean)
}

// fitCommand is fit with the given arguments, in a home of its own.
func fitCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Args[0] = "fit"
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = os.Stderr
	return cmd
}

// serve starts fit view for the given paths and returns the address that it prints.
func serve(t *testing.T, paths ...string) string {
	t.Helper()
	return firstLine(t, fitCommand(t, append([]string{"view", "--no-open"}, paths...)...))
}

// firstLine starts a command, which ends with the test, and returns the first line that it prints.
func firstLine(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	return lineOf(t, cmd, "")
}

// lineOf starts a command, which ends with the test, and returns the first line that begins so.
func lineOf(t *testing.T, cmd *exec.Cmd, beginning string) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	printed := bufio.NewReader(out)
	for {
		line, err := printed.ReadString('\n')
		if err != nil {
			t.Fatalf("%s printed no address: %v", cmd.Args, err)
		}
		if strings.HasPrefix(line, beginning) {
			go func() { _, _ = io.Copy(io.Discard, printed) }() // until the command ends
			return strings.TrimSpace(line)
		}
	}
}
