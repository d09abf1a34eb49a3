package harness

import (
	"cmp"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// enoughSpace is the number of bytes that must be free on the disk of the agents' homes.
const enoughSpace = 1 << 20

// diskFull returns an error if a round failed because the disk is full: an agent that cannot write
// its own files is not at fault.
func (r *runner) diskFull(out outcome) error {
	if out.kind != roundFailed {
		return nil
	}
	reason := out.reason()
	home := cmp.Or(r.member.config.Home, r.loop.hub.state.settings.HomeDir)
	if errors.Is(reason, syscall.ENOSPC) || errors.Is(reason, syscall.EDQUOT) || spaceIn(home) < enoughSpace {
		return fmt.Errorf("no space is left for the files of %s in %s: %w", r.member.name, home, reason)
	}
	return nil
}

// spaceIn returns the free space on the disk of a directory; a disk that does not report it has
// enough.
func spaceIn(dir string) uint64 {
	var disk unix.Statfs_t
	if dir == "" || unix.Statfs(dir, &disk) != nil {
		return enoughSpace
	}
	return disk.Bavail * uint64(disk.Bsize) //nolint:gosec // no block has a negative size
}
