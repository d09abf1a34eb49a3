//go:build !linux

package selfedit

import (
	"os"

	"golang.org/x/sys/unix"
)

// openBeneath opens a directory below another one without following links on the way.
func openBeneath(root *directory, rel string) (*directory, error) { return walkBeneath(root, rel) }

// exchange is not offered here; the caller falls back to a hard link and a rename.
func (d *directory) exchange(_, _ string) error { return unix.ENOTSUP }

// renameNew is not offered here; the caller falls back to a hard link.
func (d *directory) renameNew(_, _ string) error { return unix.ENOTSUP }

func (d *directory) createAnonymous(_ uint32) (*os.File, error) { return nil, unix.ENOTSUP }

func (d *directory) nameAnonymous(_ *os.File, _ string) error { return unix.ENOTSUP }
