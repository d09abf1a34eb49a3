package git

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestTheProgramsOfARepositoryAreFound: wherever git takes its settings from, and whatever in them
// names a program; what names none is left alone.
func TestTheProgramsOfARepositoryAreFound(t *testing.T) {
	t.Parallel()
	const config = ".git/config"
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string) (work string)
		want    []string
	}{
		"nothing":                      {set("user.name", "somebody"), nil},
		"git's own monitor":            {set("core.fsmonitor", "true"), nil},
		"the filter of git-lfs":        {set("filter.lfs.clean", "git-lfs clean -- %f"), nil},
		"git-lfs and something":        {set("filter.lfs.clean", "git-lfs clean; ./evil"), []string{config}},
		"a monitor":                    {set("core.fsmonitor", "./evil"), []string{config}},
		"hooks elsewhere":              {set("core.hooksPath", ".husky"), []string{config}},
		"a filter":                     {set("filter.Evil.one.process", "./evil"), []string{config}},
		"a difference":                 {set("diff.evil.textconv", "./evil"), []string{config}},
		"a signature":                  {set("gpg.ssh.program", "./evil"), []string{config}},
		"a remote that fills holes":    {set("remote.origin.uploadpack", "./evil"), []string{config}},
		"settings of a branch":         {set("includeIf.onbranch:main.path", "../other"), []string{config}},
		"a file that does not exist":   {set("include.path", "../other"), nil},
		"no repository":                {func(t *testing.T, _ string) string { return t.TempDir() }, nil},
		"a directory below":            {below, []string{config}},
		"an included file":             {included, []string{"settings"}},
		"a hook":                       {hooked, []string{".git/hooks/post-index-change"}},
		"a linked worktree":            {linked, []string{config}},
		"settings of one worktree":     {ownSettings, []string{".git/worktrees/linked/config.worktree"}},
		"a submodule":                  {submodule, []string{"sub/.git/config"}},
		"a file in place of .git":      {elsewhere, []string{"moved/config"}},
		"the directory itself is bare": {bare, []string{"bare/config"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newRepository(t)
			work := test.prepare(t, dir)
			var want []string
			for _, file := range test.want {
				file = filepath.Join(dir, file)
				if short, err := filepath.Rel(work, file); err == nil && filepath.IsLocal(short) {
					file = short
				}
				want = append(want, file)
			}
			if got := Programs(t.Context(), work); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}

// TestSettingsThatNobodyCanReadInTime: a pipe among them stops nobody, and hides nothing.
func TestSettingsThatNobodyCanReadInTime(t *testing.T) {
	t.Parallel()
	dir := newRepository(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	set("include.path", "../pipe")(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if got := Programs(ctx, dir); !slices.Equal(got, []string{".git"}) {
		t.Errorf("found %q", got)
	}
}

func set(key, value string) func(*testing.T, string) string {
	return func(t *testing.T, dir string) string {
		call(t, dir, "config", key, value)
		return dir
	}
}

func call(t *testing.T, dir string, args ...string) {
	t.Helper()
	if _, err := Output(t.Context(), dir, args...); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

const evil = "[core]\n\tfsmonitor = ./evil\n"

func below(t *testing.T, dir string) string {
	call(t, dir, "config", "core.fsmonitor", "./evil")
	put(t, filepath.Join(dir, "a/b/file"), "", 0o644)
	return filepath.Join(dir, "a/b")
}

func included(t *testing.T, dir string) string {
	put(t, filepath.Join(dir, "settings"), evil, 0o644)
	return set("include.path", "../settings")(t, dir)
}

func hooked(t *testing.T, dir string) string {
	put(t, filepath.Join(dir, ".git/hooks/post-index-change"), "#!/bin/sh\n", 0o755)
	put(t, filepath.Join(dir, ".git/hooks/pre-push.sample"), "#!/bin/sh\n", 0o755)
	put(t, filepath.Join(dir, ".git/hooks/pre-commit"), "#!/bin/sh\n", 0o644)
	return dir
}

func linked(t *testing.T, dir string) string {
	work := filepath.Join(t.TempDir(), "linked")
	call(t, dir, "worktree", "add", "-q", work)
	call(t, dir, "config", "core.fsmonitor", "./evil")
	return work
}

func ownSettings(t *testing.T, dir string) string {
	work := filepath.Join(t.TempDir(), "linked")
	call(t, dir, "worktree", "add", "-q", work)
	call(t, dir, "config", "extensions.worktreeConfig", "true")
	call(t, work, "config", "--worktree", "core.fsmonitor", "./evil")
	return work
}

func submodule(t *testing.T, dir string) string {
	sub := filepath.Join(dir, "sub")
	put(t, filepath.Join(sub, "file"), "", 0o644)
	call(t, sub, "init", "-q")
	call(t, sub, "add", ".")
	call(t, sub, "commit", "-q", "-m", "first")
	call(t, dir, "-c", "advice.addEmbeddedRepo=false", "add", "sub")
	call(t, sub, "config", "core.fsmonitor", "./evil")
	return dir
}

func elsewhere(t *testing.T, dir string) string {
	call(t, dir, "config", "core.fsmonitor", "./evil")
	if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, ".git"), "gitdir: moved\n", 0o644)
	return dir
}

func bare(t *testing.T, dir string) string {
	work := filepath.Join(dir, "bare")
	call(t, dir, "init", "-q", "--bare", work)
	call(t, work, "config", "core.fsmonitor", "./evil")
	return work
}
