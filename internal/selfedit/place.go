package selfedit

import (
	"errors"
	"fmt"
	"os"

	"github.com/fit-eval/fit/internal/display"
	"golang.org/x/sys/unix"
)

// placement is new content in its place, which can still be undone: the old file is kept beside it
// until finish.
type placement struct {
	dir  *directory
	base string
	// ours is the new file, which undo distinguishes from one that was put there since.
	ours unix.Stat_t
	// kept is the name the old file has meanwhile; empty if there was none.
	kept string
}

// place writes the content to a temporary file in the target's directory, syncs it and moves it to
// the target's name in one step.
func (e *Editor) place(w writing) (*placement, error) {
	dir, base := w.plan.parent, w.plan.base()
	temporary := temporaryName()
	info, err := w.writeTemporary(temporary)
	if err != nil {
		return nil, fmt.Errorf("write failed: %s: %w", display.Name(w.plan.rel), err)
	}
	// The line comes first: a writer that is killed leaves no change without one.
	if err := w.log.append(e.now(), w.event("started", nil)); err != nil {
		return nil, errors.Join(err, ignoreAbsent(dir.remove(temporary)))
	}
	placed := &placement{dir: dir, base: base, ours: info}
	if err := e.move(w, placed, temporary); err != nil {
		return nil, errors.Join(err, w.log.append(e.now(), w.event("rolled_back", err)))
	}
	return placed, nil
}

// move gives the complete new file its name, or changes nothing.
func (e *Editor) move(w writing, placed *placement, temporary string) (err error) {
	if e.beforePlacing != nil {
		e.beforePlacing()
	}
	if w.plan.exists {
		err = placed.replace(w, temporary)
	} else {
		err = placed.add(w, temporary)
	}
	if err != nil {
		if placed.kept == "" {
			err = errors.Join(err, ignoreAbsent(placed.dir.remove(temporary)))
		}
		return err
	}
	if err := placed.dir.sync(); err != nil {
		return errors.Join(fmt.Errorf("write failed: %s: %w", display.Name(w.plan.rel), err), placed.undo())
	}
	return nil
}

// writeTemporary makes the new file, complete and on the disk, under a temporary name. Where the
// file system can do it, the name comes last.
func (w writing) writeTemporary(name string) (unix.Stat_t, error) {
	dir := w.plan.parent
	mode := uint32(0o666)
	if w.plan.exists {
		mode = 0o600
	}
	if file, err := dir.createAnonymous(mode); err == nil {
		defer file.Close()
		info, err := w.fill(file)
		if err != nil {
			return info, err
		}
		// Without /proc an anonymous file cannot be named; an ordinary one does the same, if less
		// tidily when killed.
		if err = dir.nameAnonymous(file, name); !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EPERM) &&
			!errors.Is(err, unix.EACCES) {
			return info, err
		}
	}
	file, err := dir.create(name, mode)
	if err != nil {
		return unix.Stat_t{}, err
	}
	defer file.Close()
	info, err := w.fill(file)
	if err != nil {
		err = errors.Join(err, ignoreAbsent(dir.remove(name)))
	}
	return info, err
}

func (w writing) fill(file *os.File) (stat unix.Stat_t, err error) {
	if _, err := file.Write(w.content); err != nil {
		return stat, err
	}
	if w.plan.exists {
		// The owner first: changing it can take permissions away. Only the permissions are kept,
		// not the bits that let a program run as somebody else.
		if int(w.plan.old.Uid) != os.Getuid() || int(w.plan.old.Gid) != os.Getgid() {
			// Only root can change the owner; for other users the file becomes theirs, as with
			// every editor that saves this way.
			_ = file.Chown(int(w.plan.old.Uid), int(w.plan.old.Gid))
		}
		if err := file.Chmod(os.FileMode(w.plan.old.Mode & 0o777)); err != nil {
			return stat, err
		}
	}
	if err := file.Sync(); err != nil {
		return stat, err
	}
	err = unix.Fstat(int(file.Fd()), &stat)
	return stat, err
}

// add gives a new file its name, which must still be free.
func (p *placement) add(w writing, temporary string) error {
	err := p.dir.renameNew(temporary, p.base)
	if isUnsupported(err) {
		if err = p.dir.link(temporary, p.base); err == nil {
			// The file has its name; that it still has the other one is untidy, not a failure.
			_ = p.dir.remove(temporary)
		}
	}
	if errors.Is(err, unix.EEXIST) {
		return notAllowed("hash: '%s' appeared during the write", display.Name(w.plan.rel))
	}
	if err != nil {
		return fmt.Errorf("write failed: %s: %w", display.Name(w.plan.rel), err)
	}
	return nil
}

// replace puts the new file in the place of the old one and keeps the old one under another name.
// If the replaced file is not the one that the edit was decided on, it is put back.
func (p *placement) replace(w writing, temporary string) error {
	err := p.dir.exchange(temporary, p.base)
	kept := temporary
	if isUnsupported(err) {
		kept = temporaryName()
		if err = p.dir.link(p.base, kept); err == nil {
			if err = p.dir.rename(temporary, p.base); err != nil {
				err = errors.Join(err, p.dir.remove(kept))
			}
		}
	}
	if errors.Is(err, unix.ENOENT) {
		return notAllowed("hash: '%s' was removed during the write", display.Name(w.plan.rel))
	}
	if err != nil {
		return fmt.Errorf("write failed: %s: %w", display.Name(w.plan.rel), err)
	}
	p.kept = kept
	if hash, err := p.hashKept(); err != nil || hash != w.result.OldSHA256 {
		return errors.Join(notAllowed("hash: '%s' was changed by another process during the write",
			display.Name(w.plan.rel)), p.undo())
	}
	return nil
}

func (p *placement) hashKept() (string, error) {
	file, err := p.dir.open(p.kept)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash, _, err := hashFile(file)
	return hash, err
}

// undo puts the old state back, unless our file was replaced since: the replacement stays.
func (p *placement) undo() error {
	ours, err := p.isOurFile()
	if err != nil {
		return err
	}
	switch {
	case ours && p.kept != "":
		// An exchange also puts back what a rename could not, such as a directory that took the
		// file's place.
		if err = p.dir.exchange(p.kept, p.base); err == nil {
			err = p.dir.remove(p.kept)
		} else if isUnsupported(err) {
			err = p.dir.rename(p.kept, p.base)
		}
	case ours:
		err = p.dir.remove(p.base)
	case p.kept != "":
		err = p.dir.remove(p.kept)
	}
	return errors.Join(err, p.dir.sync())
}

func (p *placement) isOurFile() (bool, error) {
	stat, err := p.dir.stat(p.base)
	return err == nil && stat.Dev == p.ours.Dev && stat.Ino == p.ours.Ino, ignoreAbsent(err)
}

// finish removes the old file. If that fails, the edit still stands.
func (p *placement) finish() {
	if p.kept != "" {
		_ = p.dir.remove(p.kept)
		_ = p.dir.sync()
	}
}

func isUnsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) ||
		errors.Is(err, unix.EPERM)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
