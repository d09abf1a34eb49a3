package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func newRepository(t *testing.T) string {
	t.Helper()
	testenv.NeedTool(t, "git")
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		if _, err := Output(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestNothingOfTheUsersEnvironmentReachesGit(t *testing.T) {
	dir, other := newRepository(t), newRepository(t)
	t.Setenv("GIT_DIR", filepath.Join(other, ".git"))
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "user.name")
	t.Setenv("GIT_CONFIG_VALUE_0", "somebody")
	top, err := Output(t.Context(), dir, "rev-parse", "--show-toplevel")
	if real, _ := filepath.EvalSymlinks(dir); err != nil || top != real {
		t.Errorf("git worked in %q (%v), want %q", top, err, real)
	}
	if name, _ := Output(t.Context(), dir, "config", "user.name"); name != "" {
		t.Errorf("user.name = %q, want nothing of the user's", name)
	}
}

func TestHooksDoNotRun(t *testing.T) {
	dir := newRepository(t)
	hook := filepath.Join(dir, ".git", "hooks", "pre-commit")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Output(t.Context(), dir, "commit", "-q", "--allow-empty", "-m", "second"); err != nil {
		t.Errorf("the hook ran: %v", err)
	}
}

func TestAFailureSaysWhatGitSaid(t *testing.T) {
	dir := newRepository(t)
	_, err := Output(t.Context(), dir, "checkout", "no-such-branch")
	var failed *Error
	if !errors.As(err, &failed) || failed.ExitCode != 1 || !strings.Contains(err.Error(), "no-such-branch") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Output(ctx, dir, "status"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled command gave %v", err)
	}
}

func TestReferencesThatLookLikeOptionsAreRefused(t *testing.T) {
	dir := newRepository(t)
	if sha, err := Resolve(t.Context(), dir, ""); err != nil || len(sha) != 40 {
		t.Errorf("HEAD is %q, %v", sha, err)
	}
	if _, err := Resolve(t.Context(), dir, "--all"); err == nil {
		t.Error("an option was taken for a reference")
	}
}
