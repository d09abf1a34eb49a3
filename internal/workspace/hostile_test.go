package workspace

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/internal/tree"
)

// plain is a workspace with two files in it.
func plain(t *testing.T) *Workspace {
	t.Helper()
	fam, one := family(t, map[string]string{
		"workdir/a.txt": "one\ntwo\nthree\n", "workdir/dir/b.txt": "b\n",
		"workdir/protected/p.txt": "as it was\n",
	})
	return prepare(t, Config{Family: fam, Task: one})
}

func TestACopyHoldsNothingThatLeadsOutside(t *testing.T) {
	w := plain(t)
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret": "hidden"})
	write(t, w.Dir, map[string]string{
		"good": "-> a.txt", "deep/good": "-> ../dir/b.txt", "dangling": "-> not/there", "system": "-> /usr/bin/env",
		"chain": "-> system", "self": "-> self",
		"absolute": "-> " + outside + "/secret", "up": "-> ../..", "dir/up": "-> ..", "over": "-> dir/up/../..",
		"own":      "-> " + w.Dir + "/dir/b.txt",
		"deep/own": "-> " + w.Dir + "/dir",
	})
	if err := unix.Mkfifo(filepath.Join(w.Dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := unix.Mknod(filepath.Join(w.Dir, "device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
			t.Logf("no device: %v", err)
		}
	}
	c, err := w.Copy(t.Context(), CopyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"a.txt": "one\ntwo\nthree\n", "dir/b.txt": "b\n", "protected/p.txt": "as it was\n", "good": "-> a.txt",
		"deep/good": "-> ../dir/b.txt",
		"dangling":  "-> not/there", "system": "-> /usr/bin/env", "chain": "-> system", "self": "-> self",
		"dir/up": "-> ..", "own": "-> dir/b.txt", "deep/own": "-> ../dir",
	}
	if diff := cmp.Diff(want, list(t, c.Dir)); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"absolute", "up", "over", "fifo"} {
		if !slices.ContainsFunc(c.Dropped, func(line string) bool { return strings.HasPrefix(line, name+": ") }) {
			t.Errorf("%s is not among the dropped: %v", name, c.Dropped)
		}
	}
	if err := c.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(c.Dir); err == nil {
		t.Error("the copy is still there")
	}
}

func TestLimitsOfACopy(t *testing.T) {
	w := plain(t)
	huge, err := os.Create(filepath.Join(w.Dir, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	if err := huge.Truncate(1 << 40); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	huge.Close()
	var limit *tree.LimitError
	if _, err := w.Copy(t.Context(), CopyConfig{}); !errors.As(err, &limit) {
		t.Errorf("got %v", err)
	}
	if _, err := w.Diff(t.Context()); err == nil {
		t.Error("a file of a terabyte was compared")
	}
	if left, _ := os.ReadDir(filepath.Join(w.Root, "copies")); len(left) > 0 {
		t.Errorf("failed copies are left: %v", left)
	}
}

func TestDeepNestingIsRefusedAndRemoved(t *testing.T) {
	w := plain(t)
	here, err := os.OpenRoot(w.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 { // far longer than any path may be
		if err := here.Mkdir("d", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := here.OpenRoot("d")
		here.Close()
		if err != nil {
			t.Fatal(err)
		}
		here = next
	}
	here.Close()
	var limit *tree.LimitError
	if _, err := w.Copy(t.Context(), CopyConfig{}); !errors.As(err, &limit) || limit.What != "depth" {
		t.Errorf("got %v", err)
	}
	if err := w.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(w.Root); err == nil {
		t.Error("it is still there")
	}
}

func TestLockedFilesAndOddNamesAreReadAndRemoved(t *testing.T) {
	w := plain(t)
	odd := "new\nline \x1b[31m \"quoted\" \xff\xfe"
	write(t, w.Dir, map[string]string{"locked/inner/file": "x", "secret": "y", odd: "z\n"})
	for _, name := range []string{"secret", "locked/inner", "locked"} {
		if err := os.Chmod(filepath.Join(w.Dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	c, err := w.Copy(t.Context(), CopyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	got := list(t, c.Dir)
	if got["locked/inner/file"] != "x" || got["secret"] != "y" || got[odd] != "z\n" {
		t.Errorf("got %q", got)
	}
	d, err := w.Diff(t.Context())
	if err != nil || len(d.Files) != 3 {
		t.Errorf("%+v, %v", d, err)
	}
	if bytes.ContainsRune(d.Patch, 0x1b) || bytes.Contains(d.Patch, []byte{0xff}) {
		t.Errorf("control characters in %q", d.Patch)
	}
	if err := os.Chmod(filepath.Join(w.Dir, "locked"), 0); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestProtectedFilesComeBack(t *testing.T) {
	w := plain(t)
	outside := t.TempDir()
	write(t, outside, map[string]string{"p.txt": "untouched"})
	if err := os.RemoveAll(filepath.Join(w.Dir, "protected")); err != nil {
		t.Fatal(err)
	}
	write(t, w.Dir, map[string]string{
		"a.txt": "changed\n", "protected": "-> dir", "dir/extra.txt": "new\n",
		"dir/b.txt": "changed\n",
	})
	c, err := w.Copy(t.Context(), CopyConfig{Restore: []string{"protected/**", "dir/*.txt"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a.txt": "changed\n", "dir/b.txt": "b\n", "protected/p.txt": "as it was\n"}
	if diff := cmp.Diff(want, list(t, c.Dir)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"dir/b.txt", "dir/extra.txt", "protected/p.txt"}, c.Restored); diff != "" {
		t.Error(diff)
	}
	if base, err := w.Copy(t.Context(), CopyConfig{FromBase: true}); err != nil ||
		list(t, base.Dir)["a.txt"] != "one\ntwo\nthree\n" {
		t.Errorf("copy of the base: %v", err)
	}
}

func TestABaseThatWasChangedIsNotTrusted(t *testing.T) {
	w := plain(t)
	if err := os.WriteFile(filepath.Join(w.Base().Dir, "a.txt"), []byte("one\nTWO\nthree\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Copy(t.Context(), CopyConfig{FromBase: true}); !errors.Is(err, errBaseChanged) {
		t.Errorf("a copy of the base gave %v", err)
	}
	write(t, w.Dir, map[string]string{"a.txt": "mine\n"})
	if _, err := w.Diff(t.Context()); !errors.Is(err, errBaseChanged) {
		t.Errorf("a comparison with it gave %v", err)
	}
}

func TestAPatchTurnsTheBaseIntoTheResult(t *testing.T) {
	testenv.NeedTool(t, "git")
	w := plain(t)
	if err := os.RemoveAll(filepath.Join(w.Dir, "dir")); err != nil {
		t.Fatal(err)
	}
	write(t, w.Dir, map[string]string{
		"a.txt": "one\n2\nthree\nfour", "new/file name.txt": "fresh\n", "empty": "", "run": "#!/bin/sh\n",
		"link": "-> a.txt", "dir": "-> new",
		"ünïcode\t\"x\"": "text\r\n", ".git/config": "[core]\n\tfsmonitor = touch /tmp/never\n",
		".gitattributes": "* diff=evil\n", "binary": "a\x00b",
	})
	if err := os.Chmod(filepath.Join(w.Dir, "protected/p.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := w.Diff(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dest, err := w.Copy(t.Context(), CopyConfig{FromBase: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := git.Run(t.Context(), git.Command{
		Dir: dest.Dir, Args: []string{"apply", "--whitespace=nowarn", "-"},
		Stdin: strings.NewReader(string(d.Patch)),
	}); err != nil {
		t.Fatalf("%v\n%s", err, d.Patch)
	}
	want := list(t, w.Dir)
	delete(want, ".git/config")
	delete(want, "binary")
	if diff := cmp.Diff(want, list(t, dest.Dir)); diff != "" {
		t.Errorf("%s\n%s", diff, d.Patch)
	}
	if info, err := os.Stat(filepath.Join(dest.Dir, "protected/p.txt")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the mode was not carried over: %v", err)
	}
	if !strings.Contains(string(d.Patch), "# binary file added: binary\n") {
		t.Errorf("the binary file is not named:\n%s", d.Patch)
	}
	status := map[string]string{}
	for _, change := range d.Files {
		status[change.Path] = change.Status
	}
	for name, want := range map[string]string{
		"a.txt": "modified", "dir/b.txt": "deleted", "dir": "added",
		"protected/p.txt": "mode", "empty": "added",
	} {
		t.Run(name, func(t *testing.T) {
			if status[name] != want {
				t.Errorf("%s is %q, want %q", name, status[name], want)
			}
		})
	}
}

func TestHugeDifferencesAreCut(t *testing.T) {
	w := plain(t)
	files := map[string]string{}
	for _, name := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "x"} {
		files[name] = strings.Repeat("line\n", 199_000)
	}
	write(t, w.Dir, files)
	d, err := w.Diff(t.Context())
	if err != nil || !d.Truncated || len(d.Patch) > maxPatch || len(d.Files) != 11 {
		t.Errorf("%v, truncated %v, %d bytes, %d files", err, d.Truncated, len(d.Patch), len(d.Files))
	}
}

func TestAStoredRunCanBeAdopted(t *testing.T) {
	fam, one := family(t, map[string]string{"workdir/a.txt": "one\n"})
	stored := t.TempDir()
	write(t, stored, map[string]string{"a.txt": "two\n"})
	w, err := Adopt(t.Context(), Config{Root: t.TempDir(), Name: "regrade", Family: fam, Task: one}, stored)
	if err != nil {
		t.Fatal(err)
	}
	d, err := w.Diff(t.Context())
	if err != nil || !strings.Contains(string(d.Patch), "-one\n+two\n") {
		t.Errorf("%+v, %v", d, err)
	}
	if err := w.Remove(context.Background()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"a.txt": "two\n"}, list(t, stored)); diff != "" {
		t.Error(diff)
	}
}

func TestAnAgentThatRemovesItsDirectoryHasLeftAnEmptyOne(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret": "hidden"})
	for name, instead := range map[string]func(dir string) error{
		"nothing":   func(string) error { return nil },
		"a file":    func(dir string) error { return os.WriteFile(dir, []byte("x"), 0o600) },
		"a link":    func(dir string) error { return os.Symlink(outside, dir) },
		"a pipe":    func(dir string) error { return unix.Mkfifo(dir, 0o600) },
		"locked up": func(dir string) error { return os.Mkdir(dir, 0o000) },
	} {
		t.Run(name, func(t *testing.T) {
			w := plain(t)
			if err := errors.Join(os.RemoveAll(w.Dir), instead(w.Dir)); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Seal(t.Context()); err != nil {
				t.Fatal(err)
			}
			diff, err := w.Diff(t.Context())
			if err != nil || len(diff.Files) != 3 {
				t.Errorf("%d files differ, %v", len(diff.Files), err)
			}
			if c, err := w.Copy(t.Context(), CopyConfig{}); err != nil || len(list(t, c.Dir)) != 0 {
				t.Errorf("%+v, %v", c, err)
			}
			if left := list(t, outside); left["secret"] != "hidden" {
				t.Errorf("outside: %v", left)
			}
		})
	}
}
