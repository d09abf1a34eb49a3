package selfedit

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// memoryDir returns a directory in memory where there is one, so that many edits do not wait
// for a disk each.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "selfedit")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// outside makes a file that no edit may touch.
func outside(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "SKILL.md")
	must(t, os.WriteFile(file, []byte("precious\n"), 0o644))
	return dir, file
}

func wantPrecious(t *testing.T, dir string) {
	t.Helper()
	wantSame(t, map[string]string{"SKILL.md": "precious\n"}, snapshot(t, dir))
}

func TestASymlinkedFileIsRefused(t *testing.T) {
	p := newProject(t)
	dir, file := outside(t)
	must(t, os.Remove(p.path(skill)))
	must(t, os.Symlink(file, p.path(skill)))
	p.mustRefuse(skill, settingsAllow, "symbolic link")
	wantPrecious(t, dir)

	p.put("README.md", "old\n")
	must(t, os.Symlink("../../README.md", p.path(".claude/skills/inside.md")))
	p.mustRefuse(".claude/skills/inside.md", settingsAllow, "symbolic link")
	must(t, os.Symlink("nowhere", p.path(".claude/skills/dangling.md")))
	p.mustRefuse(".claude/skills/dangling.md", settingsAllow, "symbolic link")
}

func TestASymlinkedDirectoryIsRefused(t *testing.T) {
	p := newProject(t)
	dir, _ := outside(t)
	must(t, os.Symlink(dir, p.path(".claude/skills/linked")))
	p.mustRefuse(".claude/skills/linked/SKILL.md", settingsAllow, "'.claude/skills/linked' is a symbolic link")
	request := p.request(".claude/skills/linked/new/deep.md", "new\n")
	request.Mkdir = true
	_, err := (&Editor{}).Edit(t.Context(), request)
	wantRefusal(t, err, settingsAllow, "symbolic link")
	wantPrecious(t, dir)
}

func TestLinkedSettingsGrantNothing(t *testing.T) {
	p := newProject(t)
	p.put("elsewhere.json", `{"permissions":{"allow":["Edit(**)"]}}`)
	must(t, os.Remove(p.path(".claude/settings.json")))
	must(t, os.Symlink("../elsewhere.json", p.path(".claude/settings.json")))
	p.mustRefuse(skill, settingsAllow, "symbolic link")
}

func TestLinksAboveTheSettingsDirectoryAreFine(t *testing.T) {
	p := newProject(t)
	alias := filepath.Join(t.TempDir(), "alias")
	must(t, os.Symlink(p.root, alias))
	_, err := p.edit(filepath.Join(alias, skill), "new\n")
	must(t, err)
	if got := p.get(skill); got != "new\n" {
		t.Errorf("the file holds %q", got)
	}
}

func TestAHardLinkElsewhereKeepsTheOldContent(t *testing.T) {
	p := newProject(t)
	dir, file := outside(t)
	must(t, os.Remove(p.path(skill)))
	must(t, os.Link(file, p.path(skill)))
	if result := p.mustEdit(skill, "new\n"); result.OtherNames != 1 {
		t.Errorf("the result does not tell of the other name: %+v", result)
	}
	wantPrecious(t, dir)
}

func TestThingsThatAreNoFilesAreRefused(t *testing.T) {
	p := newProject(t)
	must(t, mkfifo(p.path(".claude/skills/pipe")))
	p.mustRefuse(".claude/skills/pipe", settingsAllow, "not a regular file")
	p.mustRefuse(skill+"/below", settingsAllow, "not a directory")
	if _, err := p.edit(".claude/skills/review", "new\n"); err == nil || isRefusal(err) {
		t.Errorf("writing to a directory gives %v, want a failed write", err)
	}
}

// TestSwappingADirectoryForALinkDuringTheWrite lets somebody exchange the target's directory for a
// link to another place, and back, at a random moment of each of many edits. Wherever the
// exchange falls, the other place stays untouched and the target is whole.
func TestSwappingADirectoryForALinkDuringTheWrite(t *testing.T) {
	p := newProjectIn(t, memoryDir(t))
	dir, _ := outside(t)
	place, aside := p.path(".claude/skills/review"), p.path(".claude/skills/aside")
	duration := time.Hour
	for range 20 {
		started := time.Now()
		p.mustEdit(skill, "new\n")
		duration = min(duration, time.Since(started))
	}
	begin := make(chan time.Duration)
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for delay := range begin {
			spin(delay)
			_ = os.Rename(place, aside)
			_ = os.Symlink(dir, place)
			spin(delay % (duration / 4))
			_ = os.Remove(place)
			_ = os.Rename(aside, place)
		}
	})
	written, refused, away := 0, 0, 0
	const rounds = 120
	for i := range rounds {
		begin <- time.Duration(rand.Int64N(int64(duration)))
		_, err := p.edit(skill, []string{"old\n", "new\n"}[i%2])
		switch {
		case err == nil:
			written++
		case isRefusal(err):
			refused++
		case errors.Is(err, fs.ErrNotExist): // Between the two renames of a swap there is no directory.
			away++
		default:
			t.Errorf("neither written nor refused: %v", err)
		}
	}
	close(begin)
	swapper.Wait()
	t.Logf("%d of %d edits were written, %d refused, %d found no directory", written, rounds, refused, away)
	if written == 0 || refused == 0 {
		t.Errorf("the swaps never fell into the edits: %d written, %d refused", written, refused)
	}
	wantPrecious(t, dir)
	wantWhole(t, place)
}

// spin waits for a time too short to sleep.
func spin(delay time.Duration) {
	for start := time.Now(); time.Since(start) < delay; {
		runtime.Gosched()
	}
}

// TestSwappingAtTheWorstMoment swaps the directory exactly between the checks and the moment the
// file is put in place, time and again.
func TestSwappingAtTheWorstMoment(t *testing.T) {
	p := newProjectIn(t, memoryDir(t))
	dir, _ := outside(t)
	place, aside := p.path(".claude/skills/review"), p.path(".claude/skills/aside")
	editor := &Editor{beforePlacing: func() {
		must(t, os.Rename(place, aside))
		must(t, os.Symlink(dir, place))
	}}
	for range 30 {
		_, err := editor.Edit(t.Context(), p.request(skill, "new\n"))
		wantRefusal(t, err, settingsAllow, "moved or replaced during the write", "put back")
		must(t, os.Remove(place))
		must(t, os.Rename(aside, place))
		if got := p.get(skill); got != "old\n" {
			t.Fatalf("the file in the directory that was moved away holds %q", got)
		}
	}
	wantPrecious(t, dir)
	wantWhole(t, place)
}

// wantWhole expects exactly one file with the old or the new content, and no temporary file beside
// it.
func wantWhole(t *testing.T, dir string) {
	t.Helper()
	files := snapshot(t, dir)
	if content := files["SKILL.md"]; content != "old\n" && content != "new\n" {
		t.Errorf("the file holds %q", content)
	}
	if len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}
