package tree_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/internal/tree"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// made is a directory that is removed with everything in it, closed or not.
func made(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { _ = scratch.RemoveAll(dir) })
	return dir
}

// readOnly is a tree of what copies tend to change: permissions, times, symlinks and hard links.
func readOnly(t *testing.T) string {
	t.Helper()
	dir := made(t)
	must(t, os.MkdirAll(filepath.Join(dir, "data", "inner"), 0o755), os.Mkdir(filepath.Join(dir, "own"), 0o755))
	for name, mode := range map[string]fs.FileMode{
		"data/table.csv": 0o444, "data/inner/deep": 0o400, "own/run": 0o555, "own/shared": 0o664, "plain": 0o644,
		"owned": 0o4755,
	} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte("content of "+name), 0o600), os.Chmod(path, mode))
	}
	must(t,
		os.Symlink("data/table.csv", filepath.Join(dir, "link")),
		os.Symlink("/nowhere", filepath.Join(dir, "own", "dangling")),
		os.Link(filepath.Join(dir, "data/table.csv"), filepath.Join(dir, "same")),
		os.Chmod(filepath.Join(dir, "data", "inner"), 0o500), os.Chmod(filepath.Join(dir, "data"), 0o555),
		os.Chmod(filepath.Join(dir, "own"), 0o2770),
	)
	old := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	for i, name := range []string{"plain", "same", "own/run", "own", "data"} {
		must(t, os.Chtimes(filepath.Join(dir, name), old, old.Add(time.Duration(i)*time.Hour)))
	}
	return dir
}

// described lists a tree with everything that a copy must keep.
func described(t *testing.T, dir string, dirTimes bool) []string {
	t.Helper()
	entries, err := tree.Walk{}.Hash(dir)
	must(t, err)
	var lines []string
	for _, e := range entries {
		info, err := os.Lstat(filepath.Join(dir, e.Path))
		must(t, err)
		at := e.ModTime.Format(time.RFC3339Nano)
		if e.IsDir() && !dirTimes {
			at = ""
		}
		names := info.Sys().(*syscall.Stat_t).Nlink
		if e.IsDir() {
			names = 0 // it depends on the file system
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %.8s %s %d", e.Path, e.Mode.Perm()|e.Mode.Type(), at, e.Sum,
			e.Target, names))
	}
	return lines
}

func TestACopyIsExact(t *testing.T) {
	t.Parallel()
	from, to := readOnly(t), made(t)
	must(t, tree.Copy{}.Dir(t.Context(), from, to))
	if diff := cmp.Diff(described(t, from, true), described(t, to, true)); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(to, "owned")); err != nil || info.Mode()&fs.ModeSetuid != 0 {
		t.Errorf("the copy runs with the rights of whoever copied: %v %v", info.Mode(), err)
	}
	if err := (tree.Copy{}).Dir(t.Context(), from, to); err == nil {
		t.Error("it was copied over another without being asked to")
	}
}

func TestAnArchiveIsExact(t *testing.T) {
	t.Parallel()
	from, to := readOnly(t), made(t)
	var first, second bytes.Buffer
	must(t, tree.Walk{}.Pack(&first, from), os.WriteFile(filepath.Join(from, "left out"), nil, 0o600))
	without := tree.Walk{Skip: func(name string) bool { return name == "left out" }}
	must(t, without.Pack(&second, from))
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the archive depends on what is left out of it")
	}
	must(t, os.Remove(filepath.Join(from, "left out")), tree.Unpack{Top: true}.Dir(&first, to))
	if diff := cmp.Diff(described(t, from, false), described(t, to, false)); diff != "" {
		t.Error(diff)
	}
}

func TestAFileIsPackedAlone(t *testing.T) {
	t.Parallel()
	to := made(t)
	var archive bytes.Buffer
	must(t, tree.Walk{}.Pack(&archive, filepath.Join(readOnly(t), "own", "run")), tree.Unpack{}.Dir(&archive, to))
	if got := described(t, to, true); len(got) != 1 || !strings.HasPrefix(got[0], "run -r-xr-xr-x 2001-02-03T06:") {
		t.Errorf("%q", got)
	}
}

// A tree that is copied over another replaces files in directories that are not writable, and these
// stay as they are.
func TestCopyingOverAnother(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		over  tree.Over
		there string // a path of the destination that is made first
		isDir bool
		fails bool
	}{
		"a file replaces a file":          {over: tree.Merge, there: "data/table.csv"},
		"a directory replaces a file":     {over: tree.Merge, there: "data/inner"},
		"a file does not replace a tree":  {over: tree.Merge, there: "plain/x", isDir: true, fails: true},
		"a file replaces a tree if asked": {over: tree.Replace, there: "plain/x", isDir: true},
		"directories are merged":          {over: tree.Merge, there: "data/inner/x", isDir: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := readOnly(t), made(t)
			parent := filepath.Dir(filepath.Join(to, test.there))
			must(t, os.MkdirAll(parent, 0o755))
			must(t, os.WriteFile(filepath.Join(to, test.there), nil, 0o400), os.Chmod(parent, 0o555))
			if parent != to {
				t.Cleanup(func() { _ = os.Chmod(parent, 0o755) })
			} else {
				must(t, os.Chmod(parent, 0o755))
			}
			err := tree.Copy{Over: test.over}.Dir(t.Context(), from, to)
			if (err != nil) != test.fails {
				t.Fatal(err)
			}
			if info, err := os.Lstat(parent); test.isDir && test.over == tree.Merge &&
				(err != nil || info.Mode().Perm() != 0o555) {
				t.Errorf("%v %v", info.Mode(), err)
			}
			content, _ := os.ReadFile(filepath.Join(to, "plain"))
			if !test.fails && string(content) != "content of plain" {
				t.Errorf("%q", content)
			}
		})
	}
}

// Nothing is written through a symlink that an agent has put in the way.
func TestNothingIsWrittenThroughASymlink(t *testing.T) {
	t.Parallel()
	from, to, outside := readOnly(t), made(t), made(t)
	must(t, os.Symlink(outside, filepath.Join(to, "data")),
		os.Symlink(filepath.Join(outside, "x"), filepath.Join(to, "plain")))
	must(t, tree.Copy{Over: tree.Replace}.Dir(t.Context(), from, to))
	root, err := os.OpenRoot(to)
	must(t, err)
	defer root.Close()
	must(t, os.Symlink(outside, filepath.Join(to, "door")), tree.Write(root, "door/file", []byte("x"), 0o444))
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
	if info, err := os.Lstat(filepath.Join(to, "door/file")); err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("%v %v", info, err)
	}
}

func TestHostileTrees(t *testing.T) {
	t.Parallel()
	dir := made(t)
	long := strings.Repeat("n", 255)
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	must(t, err)
	defer listener.Close()
	must(t,
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
		os.Symlink("/etc/passwd", filepath.Join(dir, "out")),
		os.Symlink(strings.Repeat("../", 1000)+"etc", filepath.Join(dir, "far")),
		os.WriteFile(filepath.Join(dir, long), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "odd\n\x1b[31m\xff"), nil, 0o600),
	)
	if err := (tree.Copy{}).Dir(t.Context(), dir, made(t)); err == nil || !strings.Contains(err.Error(), "fifo") {
		t.Errorf("a pipe was copied: %v", err)
	}
	to := made(t)
	ordinary := func(e *tree.Entry) (bool, error) { return !e.IsSpecial(), nil }
	must(t, tree.Copy{Accept: ordinary}.Dir(t.Context(), dir, to))
	if got := described(t, to, true); len(got) != 4 {
		t.Errorf("%q", got)
	}
	var archive bytes.Buffer
	unpacked := made(t)
	must(t, tree.Walk{}.Pack(&archive, dir), tree.Unpack{NoLinks: true}.Dir(&archive, unpacked))
	if got := described(t, unpacked, true); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// A hard link makes a file count again: a small tree could name a large file a million times.
func TestLimits(t *testing.T) {
	t.Parallel()
	dir := made(t)
	must(t, os.WriteFile(filepath.Join(dir, "a"), make([]byte, 100), 0o600),
		os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	deep := made(t)
	for at, depth := deep, 0; depth < 300; depth++ {
		at = filepath.Join(at, "d")
		must(t, os.Mkdir(at, 0o700))
	}
	for name, test := range map[string]struct {
		walk tree.Walk
		dir  string
		what string
	}{
		"bytes": {tree.Walk{MaxBytes: 150}, dir, "bytes"},
		"files": {tree.Walk{MaxFiles: 1}, dir, "files"},
		"depth": {tree.Walk{}, deep, "depth"},
		"fits":  {tree.Walk{MaxBytes: 200, MaxFiles: 2}, dir, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tree.Copy{Walk: test.walk}.Dir(t.Context(), test.dir, made(t))
			limit, _ := errors.AsType[*tree.LimitError](err)
			if got := limit; test.what == "" && err != nil || test.what != "" && (got == nil || got.What != test.what) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What its owner cannot read is read only if the walk may unlock it, and is readable in a copy.
func TestClosedDirectoriesAndFiles(t *testing.T) {
	t.Parallel()
	dir := made(t)
	must(t, os.MkdirAll(filepath.Join(dir, "closed", "inner"), 0o700),
		os.WriteFile(filepath.Join(dir, "closed", "inner", "file"), []byte("x"), 0),
		os.Chmod(filepath.Join(dir, "closed", "inner"), 0), os.Chmod(filepath.Join(dir, "closed"), 0))
	if _, err := (tree.Walk{}).Hash(dir); os.Getuid() != 0 && !errors.Is(err, fs.ErrPermission) {
		t.Errorf("it was read: %v", err)
	}
	for range 2 {
		to := made(t)
		must(t, tree.Copy{Walk: tree.Walk{Unlock: true}}.Dir(t.Context(), dir, to))
		for name, want := range map[string]fs.FileMode{
			"closed": 0o500, "closed/inner": 0o500, "closed/inner/file": 0o400,
		} {
			if info, err := os.Lstat(filepath.Join(to, name)); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v %v", name, info, err)
			}
		}
	}
}

func TestArchivesCannotLeaveTheirDirectory(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string][]tar.Header{
		"parent":   {{Name: "../x", Typeflag: tar.TypeReg, Mode: 0o600}},
		"absolute": {{Name: "/tmp/x", Typeflag: tar.TypeReg, Mode: 0o600}},
		"through": {
			{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."},
			{Name: "l/x", Typeflag: tar.TypeReg, Mode: 0o600},
		},
		"device":         {{Name: "x", Typeflag: tar.TypeChar}},
		"hard link":      {{Name: "x", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
		"hard link over": {{Name: "x", Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"}},
		"hard link to a link": {
			{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
			{Name: "x", Typeflag: tar.TypeLink, Linkname: "l"},
		},
		"same name": {
			{Name: "x", Typeflag: tar.TypeReg, Mode: 0o600},
			{Name: "x", Typeflag: tar.TypeReg, Mode: 0o600},
		},
		"setuid kept": {{Name: "s", Typeflag: tar.TypeReg, Mode: 0o4755}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var archive bytes.Buffer
			out := tar.NewWriter(&archive)
			for i := range headers {
				must(t, out.WriteHeader(&headers[i]))
			}
			must(t, out.Close())
			parent := t.TempDir()
			dir := filepath.Join(parent, "in")
			must(t, os.Mkdir(dir, 0o700))
			err := tree.Unpack{}.Dir(&archive, dir)
			if name == "setuid kept" {
				info, statErr := os.Stat(filepath.Join(dir, "s"))
				if err != nil || statErr != nil || info.Mode()&fs.ModeSetuid != 0 {
					t.Errorf("%v %v", err, statErr)
				}
			} else if err == nil {
				t.Error("it was unpacked")
			}
			if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
				t.Errorf("%v %v", entries, err)
			}
		})
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	links := map[string]string{
		"in": "dir/file", "dir/up": "..", "over": "dir/up/../..", "abs": "/usr/lib", "chain": "abs/x", "self": "self",
		"a": "b", "b": "a",
	}
	for name, want := range map[string]string{
		"plain": "plain", "in": "dir/file", "dir/up": ".", "dir/up/in": "dir/file", "abs/x": "/usr/lib/x",
		"chain": "/usr/lib/x", "over": tree.ErrOutside.Error(), "../x": tree.ErrOutside.Error(),
		"self": tree.ErrCircle.Error(), "a/x": tree.ErrCircle.Error(), "missing/../in": "dir/file",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tree.Follow(name, func(name string) (string, error) { return links[name], nil })
			if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s leads to %s, want %s", name, got, want)
			}
		})
	}
}

func TestTreesOfAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	testenv.AsOrdinaryUser(t, []string{
		"TestACopyIsExact", "TestAnArchiveIsExact", "TestCopyingOverAnother", "TestNothingIsWrittenThroughASymlink",
		"TestClosedDirectoriesAndFiles",
	})
}
