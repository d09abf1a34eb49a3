package sandbox

import (
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The use of a whole tree of processes is polled while it runs; the kernel's own limits hold
// for each process only.
const (
	usageEvery = 500 * time.Millisecond
	// diskShare is the ratio of the pause after a check of the disk to the duration of the check.
	diskShare = 20
)

// The bounds that Limits sets for a whole tree, as SpawnResult.Exceeded names them.
const (
	ExceededMemory = "memory"
	ExceededDisk   = "disk"
	ExceededFiles  = "open files"
)

// perProcess returns the limits that the kernel enforces.
func (l Limits) perProcess() Limits {
	l.TreeMemoryBytes, l.DiskBytes = 0, 0
	return l
}

// usageWatch notices when a tree uses too much.
type usageWatch struct {
	limits   Limits
	dirs     []string
	tree     func() []int // the processes of the tree
	exceeded chan string  // gets the name of the bound that was passed
	stop     chan struct{}
	done     sync.WaitGroup
	before   int64     // bytes in the directories at the start
	nextDisk time.Time // when to look at them again
}

// watchUsage checks a tree until it is closed.
func watchUsage(tree func() []int, limits Limits, dirs []string) *usageWatch {
	w := &usageWatch{
		limits:   limits,
		dirs:     outermost(dirs),
		tree:     tree,
		exceeded: make(chan string, 1),
		stop:     make(chan struct{}),
	}
	if limits.TreeMemoryBytes == 0 && limits.DiskBytes == 0 {
		return w
	}
	w.done.Go(w.follow)
	return w
}

// outermost drops directories that are inside others, or are named twice.
func outermost(dirs []string) []string {
	var kept []string
	for _, dir := range slices.Sorted(slices.Values(dirs)) { // what contains others comes before them
		if !slices.ContainsFunc(kept, func(outer string) bool {
			return dir == outer || strings.HasPrefix(dir, strings.TrimSuffix(outer, "/")+"/")
		}) {
			kept = append(kept, dir)
		}
	}
	return kept
}

func (w *usageWatch) close() {
	close(w.stop)
	w.done.Wait()
}

func (w *usageWatch) follow() {
	if w.limits.DiskBytes > 0 {
		w.before = w.diskUsed()
		w.limits.DiskBytes = diskAllowance(w.limits.DiskBytes, freeOnDisk(w.dirs))
	}
	ticker := time.NewTicker(usageEvery)
	defer ticker.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-ticker.C:
		}
		processes := w.tree()
		memory, disk, ok := unnamedFiles(processes)
		named := filesInMemory(processes)
		switch {
		case !ok:
			w.exceeded <- ExceededFiles
			return
		case w.limits.TreeMemoryBytes > 0 && memoryExceeds(processes, w.limits.TreeMemoryBytes, named+memory):
			w.exceeded <- ExceededMemory
			return
		case w.limits.DiskBytes > 0 && time.Now().After(w.nextDisk) &&
			// no disk is that large
			w.diskUsed()-w.before+int64(disk+named) > int64(w.limits.DiskBytes): //nolint:gosec // small
			w.exceeded <- ExceededDisk
			return
		}
	}
}

// diskAllowance returns how much a program may write where that much is free: a limit larger than
// the disk would let it fill the disk, and then everything else fails.
func diskAllowance(limit, free uint64) uint64 { return min(limit, max(free/4, 1<<30)) }

// freeOnDisk returns what is free on the fullest of the disks of some directories.
func freeOnDisk(dirs []string) uint64 {
	var free uint64 = math.MaxUint64
	for _, dir := range dirs {
		var disk unix.Statfs_t
		if unix.Statfs(dir, &disk) == nil {
			free = min(free, disk.Bavail*uint64(disk.Bsize)) //nolint:gosec // a block has a positive size
		}
	}
	return free
}

// diskUsed adds up the files in the directories that can be seen.
func (w *usageWatch) diskUsed() int64 {
	began := time.Now()
	var sum int64
	for _, dir := range w.dirs {
		// A file that is gone, or a directory that is closed to us, counts as nothing.
		_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
			select {
			case <-w.stop:
				return fs.SkipAll
			default:
			}
			if err == nil && entry.Type().IsRegular() {
				if info, err := entry.Info(); err == nil {
					sum += bytesOnDisk(info)
				}
			}
			return nil
		})
	}
	w.nextDisk = time.Now().Add(diskShare * time.Since(began))
	return sum
}
