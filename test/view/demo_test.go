package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// demoRuns is the number of repetitions of each task per arm: enough to see passes and failures.
const demoRuns = "1"

// demoOnce makes the run directory of one small demo, called skills, for all tests that only read
// it. Beside it is the family of its tasks.
var demoOnce = sync.OnceValues(func() (string, error) {
	top, err := os.MkdirTemp("", "fit-view-site-")
	if err != nil {
		return "", err
	}
	atTheEnd(func() { _ = os.RemoveAll(top) })
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	work := filepath.Join(top, "elsewhere")
	dir := filepath.Join(top, "site", "skills")
	if err := errors.Join(os.MkdirAll(work, 0o700), os.MkdirAll(filepath.Dir(dir), 0o700)); err != nil {
		return "", err
	}
	cmd := exec.Command(self, "demo", "--runs", demoRuns)
	cmd.Args[0] = "fit"
	cmd.Env = append(os.Environ(), "TMPDIR="+work)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("fit demo: %w", err)
	}
	found, _ := filepath.Glob(filepath.Join(work, "fit-demo-*"))
	if len(found) != 1 {
		return "", fmt.Errorf("the demo left %d directories", len(found))
	}
	return dir, errors.Join(os.Rename(filepath.Join(found[0], "results"), dir),
		os.Rename(filepath.Join(found[0], "family"), filepath.Join(top, "family")))
})

// demoDirectory returns the run directory of the finished demo.
func demoDirectory(t *testing.T) string {
	t.Helper()
	dir, err := demoOnce()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// demoServer shows the finished demo alone, to all tests that only read it.
var demoServer = sync.OnceValues(func() (string, error) {
	dir, err := demoOnce()
	if err != nil {
		return "", err
	}
	return serveToTheEnd(dir)
})

// demoAddress returns the address at which the finished demo is shown.
func demoAddress(t *testing.T) string {
	t.Helper()
	address, err := demoServer()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// demoFamily returns the directory of the demo's tasks.
func demoFamily(t *testing.T) string {
	t.Helper()
	return filepath.Join(filepath.Dir(filepath.Dir(demoDirectory(t))), "family")
}

// answerOf decodes what a fit command prints as JSON.
func answerOf(t *testing.T, into any, args ...string) {
	t.Helper()
	out, err := fitCommand(t, args...).Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("fit %s: %v", strings.Join(args, " "), err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("fit %s printed no JSON: %v", strings.Join(args, " "), err)
	}
}

// decode reads what a scenario returned.
func decode[T any](t *testing.T, value json.RawMessage) T {
	t.Helper()
	var into T
	if err := json.Unmarshal(value, &into); err != nil {
		t.Fatal(err)
	}
	return into
}
