package task

import (
	"errors"
	"fmt"
)

// CheckUnchanged recomputes the digests of a task from the current files, and returns an error if
// they differ from those that the family was loaded with.
func (f *Family) CheckUnchanged(t *Task) error {
	now, err := f.filesNow(t)
	if err != nil {
		return fmt.Errorf("look at task %s again: %w", t.ID, err)
	}
	var part string
	switch {
	case now.Visible != t.Files.Visible:
		part = "what the agent sees"
	case now.Hidden != t.Files.Hidden:
		part = "its hidden part (hooks or tests)"
	default:
		return nil
	}
	return fmt.Errorf("task %s changed since the experiment began: %s; restore it, and rerun with --retry-errors", t.ID,
		part)
}

func (f *Family) filesNow(t *Task) (Digest, error) {
	if t.Spec != nil {
		return t.Spec.fileDigests()
	}
	if t.Instance != nil { // it was read as a whole
		return t.Files, nil
	}
	l := &loader{real: f.Dir, family: f}
	now := l.fileDigests(t)
	if t.Sample != nil {
		var err error
		now, err = t.sampleFileDigests(now)
		l.add(err)
	}
	return now, errors.Join(l.problems...)
}
