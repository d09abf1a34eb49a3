package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/sandbox"
)

// Whoever gives up while bubblewrap is tried has not found out that there is none: attempts would
// run without a sandbox.
func TestAnInterruptedLookDecidesNothingAboutIsolation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if kind, err := chooseIsolation(ctx, ""); kind == sandbox.IsolationNone {
		t.Errorf("isolation %q, %v", kind, err)
	}
}

// It is not parallel: another test's programs would not find bubblewrap.
func TestALookForAHangingBubblewrapIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	var here machine
	_, err := here.bwrap(ctx)
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 20*time.Second {
		t.Errorf("%v after %s", err, took)
	}
}
