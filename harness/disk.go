package harness

import (
	"cmp"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// enoughSpace is how many bytes must be free where agents have their homes.
const enoughSpace = 1 << 20

// diskFull says that a round failed on a full disk, if that is so: an agent that cannot write its
// own files is not at fault.
func (r *runner) diskFull(out outcome) error {
	if out.kind != roundFailed {
		return nil
	}
	reason := out.reason()
	home := cmp.Or(r.member.config.Home, r.loop.hub.state.settings.HomeDir)
	if errors.Is(reason, syscall.ENOSPC) || errors.Is(reason, syscall.EDQUOT) || spaceIn(home) < enoughSpace {
		return fmt.Errorf("no space is left for what %s keeps in %s: %w", r.member.name, home, reason)
	}
	return nil
}

// spaceIn is how much can be written to the disk of a directory; a disk that does not say has
// enough.
func spaceIn(dir string) uint64 {
	var disk unix.Statfs_t
	if dir == "" || unix.Statfs(dir, &disk) != nil {
		return enoughSpace
	}
	return disk.Bavail * uint64(disk.Bsize) //nolint:gosec // no block has a negative size
}
