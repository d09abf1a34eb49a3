package selfedit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"golang.org/x/sys/unix"
)

// writing is an edit that may go ahead.
type writing struct {
	plan    *plan
	home    homeDirs
	content []byte
	log     *auditLog
	result  Result
}

// write puts the content in place, makes sure that nothing moved, and records it; or undoes
// everything.
func (e *Editor) write(ctx context.Context, w writing) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	made, err := w.makeParent()
	if err != nil {
		return Result{}, err
	}
	w.plan.parent.portable = e.portable
	placed, err := e.place(w)
	if err != nil {
		return Result{}, errors.Join(err, made.undo())
	}
	if e.afterPlacing != nil {
		e.afterPlacing()
	}
	if err := w.plan.recheck(ctx, w.home); err != nil {
		return Result{}, e.revert(w, placed, made, err)
	}
	if err := w.log.append(e.now(), w.event("written", nil)); err != nil {
		return Result{}, errors.Join(err, placed.undo(), made.undo()) // the line that it was started stays
	}
	placed.finish()
	w.result.Written = true
	return w.result, nil
}

// revert undoes a write that a safeguard found wrong afterwards, and records that.
func (e *Editor) revert(w writing, placed *placement, made *createdDirectories, reason error) error {
	if err := errors.Join(placed.undo(), made.undo()); err != nil {
		return fmt.Errorf("%w; and putting the old file back failed: %w", reason, err)
	}
	if refusal, ok := errors.AsType[*Refusal](reason); ok {
		refusal.Reason += "; the old state was put back"
	}
	// The refusal stands whether or not it can be recorded.
	return errors.Join(reason, w.log.append(e.now(), w.event("rolled_back", reason)))
}

func (w writing) event(outcome string, reason error) auditEvent {
	r := w.result
	event := auditEvent{
		Type:      "selfedit",
		Outcome:   outcome,
		Path:      r.Path,
		Root:      r.Root,
		OldSHA256: r.OldSHA256,
		NewSHA256: r.NewSHA256,
		Bytes:     r.Bytes,
		Rule:      r.Rule,
		Settings:  r.Settings,
		Branch:    r.Branch,
		Commit:    r.Commit,
		UID:       os.Getuid(),
	}
	if reason != nil {
		event.Reason = reason.Error()
	}
	return event
}

// createdDirectories remembers the directories that were made for an edit, outermost first.
type createdDirectories struct {
	root  *directory
	paths []string
}

// undo removes the directories again; one that is no longer empty stays.
func (c *createdDirectories) undo() error {
	for _, made := range slices.Backward(c.paths) {
		parent, err := openBeneath(c.root, path.Dir(made))
		if err != nil {
			return err
		}
		err = unix.Unlinkat(parent.fd(), path.Base(made), unix.AT_REMOVEDIR)
		parent.file.Close()
		if err != nil && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("removing %s: %w", display.Name(made), err)
		}
	}
	return nil
}

// makeParent creates the missing directories on the way to the target, one by one and following no
// link.
func (w writing) makeParent() (*createdDirectories, error) {
	made := &createdDirectories{root: w.plan.rootDir}
	if w.plan.parent != nil {
		return made, nil
	}
	parts := strings.Split(w.plan.parentRel(), "/")
	for i := range parts {
		rel := strings.Join(parts[:i+1], "/")
		if err := made.add(rel); err != nil {
			return made, errors.Join(err, made.undo())
		}
	}
	parent, err := openBeneath(w.plan.rootDir, w.plan.parentRel())
	if err != nil {
		return made, errors.Join(linkRefusal(err, w.plan.parentRel()), made.undo())
	}
	w.plan.parent = parent
	return made, nil
}

func (c *createdDirectories) add(rel string) error {
	parent, err := openBeneath(c.root, path.Dir(rel))
	if err != nil {
		return linkRefusal(err, rel)
	}
	defer parent.file.Close()
	switch err := unix.Mkdirat(parent.fd(), path.Base(rel), 0o777); {
	case err == nil:
		c.paths = append(c.paths, rel)
	case !errors.Is(err, unix.EEXIST):
		return fmt.Errorf("creating the directory %s: %w", display.Name(rel), err)
	}
	return nil
}

func linkRefusal(err error, rel string) error {
	if errors.Is(err, errLink) {
		return notAllowed("a symbolic link appeared on the way to '%s'", display.Name(rel))
	}
	return fmt.Errorf("opening %s: %w", display.Name(rel), err)
}

// temporaryName returns a name that is recognisable and cannot be guessed.
func temporaryName() string { return ".fit-selfedit-" + rand.Text() + ".tmp" }
