package selfedit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func mkfifo(path string) error { return unix.Mkfifo(path, 0o644) }

func isRefusal(err error) bool {
	var refusal *Refusal
	return errors.As(err, &refusal)
}

func TestTheModeOfTheFileIsKept(t *testing.T) {
	p := newProject(t)
	must(t, os.Chmod(p.path(skill), 0o751))
	p.mustEdit(skill, "new\n")
	info, err := os.Stat(p.path(skill))
	must(t, err)
	if info.Mode().Perm() != 0o751 {
		t.Errorf("the mode is %o", info.Mode().Perm())
	}
}

func TestEmptyContentEmptiesTheFile(t *testing.T) {
	p := newProject(t)
	p.mustEdit(skill, "")
}

func TestAMissingParentIsAnErrorUnlessItShallBeMade(t *testing.T) {
	p := newProject(t)
	path := ".claude/skills/a/b/SKILL.md"
	_, err := p.edit(path, "new\n")
	if refused := new(Refusal); errors.As(err, &refused) || !strings.HasSuffix(err.Error(), "does not exist") {
		t.Errorf("the error is %v, and no safeguard refused", err)
	}
	request := p.request(path, "new\n")
	request.Mkdir = true
	_, err = (&Editor{}).Edit(t.Context(), request)
	must(t, err)
	if got := p.get(path); got != "new\n" {
		t.Errorf("the file holds %q", got)
	}
}

func TestACheckChangesNothing(t *testing.T) {
	p := newProject(t)
	before := snapshot(t, p.root)
	request := p.request(".claude/skills/a/b.md", "new\n")
	request.Check, request.Mkdir = true, true
	result, err := (&Editor{}).Edit(t.Context(), request)
	must(t, err)
	if result.Written || result.NewSHA256 == "" {
		t.Errorf("got %+v", result)
	}
	wantSame(t, before, snapshot(t, p.root))
	if _, err := os.Stat(p.path(".git/fit")); !os.IsNotExist(err) {
		t.Errorf("a check made an audit log: %v", err)
	}
}

func TestTheExpectedHashDecides(t *testing.T) {
	p := newProject(t)
	for _, test := range []struct {
		path, expect string
		allowed      bool
	}{
		{skill, hashOf([]byte("other\n")), false},
		{skill, ExpectAbsent, false},
		{".claude/skills/fresh.md", hashOf(nil), false},
		{skill, hashOf([]byte("old\n")), true},
		{".claude/skills/fresh.md", ExpectAbsent, true},
	} {
		request := p.request(test.path, "new\n")
		request.ExpectSHA256 = test.expect
		_, err := (&Editor{}).Edit(t.Context(), request)
		if test.allowed {
			must(t, err)
		} else {
			wantRefusal(t, err, settingsAllow, "hash")
		}
	}
}

func TestAnotherWriterDuringTheWriteWins(t *testing.T) {
	for name, test := range map[string]struct {
		path   string
		meddle func(p *project)
		after  string
	}{
		"content changed": {skill, func(p *project) { p.put(skill, "theirs\n") }, "theirs\n"},
		"file appeared": {
			".claude/skills/fresh.md",
			func(p *project) { p.put(".claude/skills/fresh.md", "theirs\n") }, "theirs\n",
		},
		"file removed": {skill, func(p *project) { must(p.t, os.Remove(p.path(skill))) }, ""},
		"link appeared": {skill, func(p *project) {
			p.put("theirs", "theirs\n")
			must(p.t, os.Remove(p.path(skill)))
			must(p.t, os.Symlink("../../../theirs", p.path(skill)))
		}, "theirs\n"},
		"directory appeared": {skill, func(p *project) {
			must(p.t, os.Remove(p.path(skill)))
			must(p.t, os.Mkdir(p.path(skill), 0o755))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			var meddled map[string]string
			editor := &Editor{beforePlacing: func() {
				test.meddle(p)
				meddled = snapshot(t, p.root)
			}}
			_, err := editor.Edit(t.Context(), p.request(test.path, "new\n"))
			wantRefusal(t, err, settingsAllow, "during the write")
			for path := range meddled {
				if strings.Contains(path, ".fit-selfedit-") {
					delete(meddled, path)
				}
			}
			wantSame(t, meddled, snapshot(t, p.root))
			if content, err := os.ReadFile(p.path(test.path)); test.after != "" &&
				(err != nil || string(content) != test.after) {
				t.Errorf("the file holds %q, %v", content, err)
			}
		})
	}
}

func TestABranchThatMovesDuringTheWriteRollsBack(t *testing.T) {
	for name, test := range map[string]struct {
		move  func(p *project)
		words string
	}{
		"to main":           {func(p *project) { p.git("symbolic-ref", "HEAD", "refs/heads/main") }, "main"},
		"to another branch": {func(p *project) { p.git("checkout", "-q", "-b", "second") }, "'second'"},
		"to another commit": {
			func(p *project) { p.git("commit", "-q", "--allow-empty", "-m", "more") },
			"branch moved",
		},
		"detached": {func(p *project) { p.git("checkout", "-q", "--detach") }, "detached"},
		"protected meanwhile": {
			func(p *project) { p.git("config", "fit.selfedit.protectedBranches", "feature") },
			"protectedBranches",
		},
		"repository gone": {
			func(p *project) { must(p.t, os.Rename(p.path(".git"), p.path("../gone"))) },
			"no git repository",
		},
	} {
		for _, path := range []string{skill, ".claude/skills/new/dir/fresh.md"} {
			t.Run(name+" for "+path, func(t *testing.T) {
				p := newProject(t)
				p.git("branch", "main")
				before := snapshot(t, p.root)
				editor := &Editor{afterPlacing: func() {
					if p.get(path) != "new\n" {
						t.Error("nothing was written before the branch moved")
					}
					test.move(p)
				}}
				request := p.request(path, "new\n")
				request.Mkdir = true
				_, err := editor.Edit(t.Context(), request)
				wantRefusal(t, err, branchScope, test.words, "put back")
				wantSame(t, before, snapshot(t, p.root))
			})
		}
	}
}

func TestTheWriteWorksWithoutTheCallsThatOnlyLinuxHas(t *testing.T) {
	p := newProject(t)
	editor := &Editor{portable: true}
	for _, path := range []string{skill, ".claude/skills/fresh.md"} {
		_, err := editor.Edit(t.Context(), p.request(path, "new\n"))
		must(t, err)
		if got := p.get(path); got != "new\n" {
			t.Errorf("%s holds %q", path, got)
		}
	}
	before := snapshot(t, p.root)
	editor.afterPlacing = func() { p.git("symbolic-ref", "HEAD", "refs/heads/main") }
	for _, path := range []string{skill, ".claude/skills/second.md"} {
		_, err := editor.Edit(t.Context(), p.request(path, "newer\n"))
		wantRefusal(t, err, branchScope, "put back")
		wantSame(t, before, snapshot(t, p.root))
		p.git("symbolic-ref", "HEAD", "refs/heads/feature")
	}
	meddling := &Editor{portable: true, beforePlacing: func() { p.put(skill, "theirs\n") }}
	_, err := meddling.Edit(t.Context(), p.request(skill, "newer\n"))
	wantRefusal(t, err, settingsAllow, "changed by another process")
	before[skill] = "theirs\n"
	wantSame(t, before, snapshot(t, p.root))
}

func TestWalkingBeneathADirectoryFollowsNoLink(t *testing.T) {
	p := newProject(t)
	must(t, os.Symlink("review", p.path(".claude/skills/link")))
	opened, err := os.Open(p.root)
	must(t, err)
	defer opened.Close()
	root := &directory{file: opened}
	for name, open := range map[string]func(*directory, string) (*directory, error){
		"walk":   walkBeneath,
		"kernel": openBeneath,
	} {
		t.Run(name, func(t *testing.T) {
			found, err := open(root, ".claude/skills/review")
			must(t, err)
			must(t, found.file.Close())
			if _, err := open(root, ".claude/skills/link"); !errors.Is(err, errLink) {
				t.Errorf("%s: a link gives %v", name, err)
			}
			if _, err := open(root, ".claude/none/x"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: a missing directory gives %v", name, err)
			}
		})
	}
}

// endless counts how much is read from it.
type endless struct{ read int64 }

func (e *endless) Read(buffer []byte) (int, error) {
	e.read += int64(len(buffer))
	if e.read > 1<<30 {
		return 0, io.EOF
	}
	return len(buffer), nil
}

func TestAGigabyteOfContentIsRefusedAfterTheLimit(t *testing.T) {
	p := newProject(t)
	source := &endless{}
	request := p.request(skill, "")
	request.Content = source
	_, err := (&Editor{}).Edit(t.Context(), request)
	wantRefusal(t, err, settingsAllow, "size", fmt.Sprint(MaxBytes))
	if source.read > MaxBytes+1 {
		t.Errorf("%d bytes were read, the limit is %d", source.read, MaxBytes)
	}
	request.Content, request.MaxBytes = strings.NewReader("1234"), 3
	_, err = (&Editor{}).Edit(t.Context(), request)
	wantRefusal(t, err, settingsAllow, "larger than 3 bytes")
	request.Content, request.MaxBytes = bytes.NewReader(make([]byte, MaxBytes+1)), 1<<40
	_, err = (&Editor{}).Edit(t.Context(), request)
	wantRefusal(t, err, settingsAllow, "size")
	if p.get(skill) != "old\n" {
		t.Error("the file changed")
	}
}

func TestARefusedEditDoesNotReadTheContent(t *testing.T) {
	p := newProject(t)
	source := &endless{}
	request := p.request("README.md", "")
	request.Content = source
	_, err := (&Editor{}).Edit(t.Context(), request)
	wantRefusal(t, err, settingsAllow, "no Edit() rule")
	if source.read != 0 {
		t.Errorf("%d bytes were read", source.read)
	}
}

func TestContentThatCannotBeReadIsAFailureAndChangesNothing(t *testing.T) {
	p := newProject(t)
	request := p.request(skill, "")
	request.Content = io.MultiReader(strings.NewReader("half"), brokenReader{})
	_, err := (&Editor{}).Edit(t.Context(), request)
	if err == nil || isRefusal(err) || !errors.Is(err, unix.EBADF) {
		t.Errorf("got %v", err)
	}
	if p.get(skill) != "old\n" {
		t.Error("the file changed")
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, unix.EBADF }

func TestACancelledEditStopsWaitingForItsContent(t *testing.T) {
	p := newProject(t)
	reader, writer := io.Pipe()
	defer writer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	request := p.request(skill, "")
	request.Content = cancelOnRead{reader, cancel}
	if _, err := (&Editor{}).Edit(ctx, request); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

type cancelOnRead struct {
	io.Reader
	cancel func()
}

func (c cancelOnRead) Read(buffer []byte) (int, error) {
	c.cancel()
	return c.Reader.Read(buffer)
}

func TestEditsAtTheSameTimeAreEachWholeAndLogged(t *testing.T) {
	p := newProject(t)
	const writers = 8
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			if _, err := p.edit(skill, strings.Repeat(fmt.Sprint(i), 100_000)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	content := p.get(skill)
	if content != strings.Repeat(content[:1], 100_000) {
		t.Error("the file mixes two writes")
	}
	if lines := auditLines(t, p); len(lines) != 2*writers {
		t.Errorf("%d lines in the log, want two for each of %d", len(lines), writers)
	}
}

func TestAFileOrDirectoryWithoutPermissionIsAFailure(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	p := newProject(t)
	must(t, os.Chmod(p.path(skill), 0o444))
	if _, err := p.edit(skill, "new\n"); !errors.Is(err, os.ErrPermission) || isRefusal(err) {
		t.Errorf("got %v, want a failed write", err)
	}
	must(t, os.Chmod(p.path(skill), 0o644))
	must(t, os.Chmod(filepath.Dir(p.path(skill)), 0o555))
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(p.path(skill)), 0o755) })
	if _, err := p.edit(skill, "new\n"); !errors.Is(err, os.ErrPermission) || isRefusal(err) {
		t.Errorf("got %v, want a failed write", err)
	}
}

func TestNamesThatOnlyTheFileSystemTakesForEqualAreRefused(t *testing.T) {
	p := newProject(t)
	p.allow("Edit(.claude/skills/review/skill.MD)")
	if _, err := os.Stat(p.path(".claude/skills/review/skill.MD")); err == nil {
		p.mustRefuse(".claude/skills/review/skill.MD", settingsAllow, "another spelling")
		return
	}
	// This file system tells the two names apart; what is left to see is that the listing is what
	// decides.
	file, err := os.Open(filepath.Dir(p.path(skill)))
	must(t, err)
	dir := &directory{file: file}
	defer file.Close()
	for name, want := range map[string]bool{"SKILL.md": true, "skill.MD": false} {
		t.Run(name, func(t *testing.T) {
			if got, err := dir.spells(name); err != nil || got != want {
				t.Errorf("spells(%q) is %v, %v", name, got, err)
			}
		})
	}
}

// actingReader does something when it is read, as a program does that feeds an edit and works on
// the repository meanwhile.
type actingReader struct {
	act  func()
	rest io.Reader
}

func (r *actingReader) Read(p []byte) (int, error) {
	if r.act != nil {
		r.act()
		r.act = nil
	}
	return r.rest.Read(p)
}

func TestARepositoryThatAppearsWhileTheContentIsReadIsRefused(t *testing.T) {
	p, prepared := newProject(t), newProject(t)
	const draft = ".claude/skills/drafts/one.md"
	p.put(draft, "old\n") // not tracked, so that a repository of its own may lie there
	request := p.request(draft, "")
	var moved error
	request.Content = &actingReader{
		act:  func() { moved = os.Rename(prepared.path(".git"), p.path(".claude/skills/drafts/.git")) },
		rest: strings.NewReader("new\n"),
	}
	_, err := (&Editor{}).Edit(t.Context(), request)
	must(t, moved)
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Safeguard != branchScope ||
		!strings.Contains(err.Error(), "changed while the content was read") {
		t.Errorf("got %v", err)
	}
	if p.get(draft) != "old\n" {
		t.Error("the file changed")
	}
}
