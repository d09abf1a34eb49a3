package local

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// minFree is how much must be free on the disks of workspaces and artefacts before a cell starts.
// With less, an agent's correct solution can fail because it could not be written.
const minFree = 256 << 20

// FreeSpace returns an error if one of the directories is on a disk with too little space for a
// cell.
func FreeSpace(dirs ...string) error { return freeSpace(minFree, dirs...) }

func freeSpace(minFree uint64, dirs ...string) error {
	for _, dir := range dirs {
		var disk unix.Statfs_t
		if err := unix.Statfs(dir, &disk); err != nil {
			return fmt.Errorf("look for free space: %s: %w", dir, err)
		}
		if free := disk.Bavail * uint64(disk.Bsize); free < minFree {
			return fmt.Errorf("low disk space in %s: %d MB free, %d MB needed per cell; free some space and rerun the "+
				"same command", dir, free>>20, minFree>>20)
		}
	}
	return nil
}
