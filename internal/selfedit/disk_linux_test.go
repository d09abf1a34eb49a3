package selfedit

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/testenv"
)

func TestAFullDiskChangesNothing(t *testing.T) {
	if !testenv.CanMount(t) {
		return
	}
	p := newProjectIn(t, smallDisk(t))
	fill := fillDisk(t, p)
	before := snapshot(t, p.root)
	_, err := p.edit(skill, strings.Repeat("x", 1<<20))
	if !errors.Is(err, unix.ENOSPC) || isRefusal(err) {
		t.Errorf("got %v, want a failed write", err)
	}
	wantSame(t, before, snapshot(t, p.root))
	must(t, os.Remove(fill))
	p.mustEdit(skill, "new\n")
}

func TestAFullDiskUnderTheAuditLogRollsBack(t *testing.T) {
	if !testenv.CanMount(t) {
		return
	}
	p := newProject(t)
	disk := smallDisk(t)
	must(t, os.CopyFS(filepath.Join(disk, "git"), os.DirFS(p.path(".git"))))
	must(t, os.RemoveAll(p.path(".git")))
	p.put(".git", "gitdir: "+filepath.Join(disk, "git")+"\n")
	p.mustEdit(skill, "first\n")
	log := filepath.Join(disk, "git", "fit", "selfedit.ndjson")
	// The log's last page must be full too, or one more line would still fit.
	content, err := os.ReadFile(log)
	must(t, err)
	padding := 4096 - len(content)%4096 - 1
	must(t, os.WriteFile(log, append(content, strings.Repeat(" ", padding)+"\n"...), 0o644))
	logged, err := os.ReadFile(log)
	must(t, err)
	fillDisk(t, &project{t: t, root: disk})
	before := snapshot(t, p.root)
	if _, err := p.edit(skill, "second\n"); !errors.Is(err, unix.ENOSPC) || isRefusal(err) {
		t.Errorf("got %v, want a failed write", err)
	}
	wantSame(t, before, snapshot(t, p.root))
	if now, err := os.ReadFile(log); err != nil || !bytes.Equal(now, logged) {
		t.Errorf("the log changed by %d bytes, %v", len(now)-len(logged), err)
	}
}

func TestAReadOnlyFileSystemChangesNothing(t *testing.T) {
	if !testenv.CanMount(t) {
		return
	}
	disk := smallDisk(t)
	p := newProjectIn(t, disk)
	before := snapshot(t, p.root)
	remountReadOnly(t, disk)
	if _, err := p.edit(skill, "new\n"); !errors.Is(err, unix.EROFS) || isRefusal(err) {
		t.Errorf("got %v, want a failed write", err)
	}
	wantSame(t, before, snapshot(t, p.root))
}

// smallDisk mounts a small file system in memory.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	runTool(t, testenv.NeedTool(t, "mount"), "-t", "tmpfs", "-o", "size=2m", "tmpfs", dir)
	t.Cleanup(func() { runTool(t, testenv.NeedTool(t, "umount"), dir) })
	return dir
}

func runTool(t *testing.T, name string, args ...string) {
	t.Helper()
	if output, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
}

func remountReadOnly(t *testing.T, dir string) {
	t.Helper()
	runTool(t, testenv.NeedTool(t, "mount"), "-o", "remount,bind,ro", dir)
}

// fillDisk uses up the space of the disk the project is on.
func fillDisk(t *testing.T, p *project) string {
	t.Helper()
	name := filepath.Join(p.root, "..", "fill")
	if filepath.Base(p.root) != "project" {
		name = filepath.Join(p.root, "fill")
	}
	file, err := os.Create(name)
	must(t, err)
	for chunk := 64 << 10; chunk > 0; {
		if _, err := file.Write(make([]byte, chunk)); err != nil {
			chunk /= 2
		}
	}
	must(t, file.Close())
	return name
}
