package proc

import (
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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

// The bounds of a whole tree, as UsageWatch names them.
const (
	ExceededMemory = "memory"
	ExceededDisk   = "disk"
	ExceededFiles  = "open files"
)

// UsageWatch notices when a tree uses too much.
type UsageWatch struct {
	memory   uint64 // that the tree may use; 0: no bound
	disk     uint64 // as above
	dirs     []string
	tree     func() []int // the processes of the tree
	Exceeded chan string  // gets the name of the bound that was passed
	stop     chan struct{}
	done     sync.WaitGroup
	before   int64     // bytes in the directories at the start
	nextDisk time.Time // when to look at them again
}

// WatchUsage checks until it is closed how much memory a tree uses, and how much it writes into
// directories.
func WatchUsage(tree func() []int, memory, disk uint64, dirs []string) *UsageWatch {
	w := &UsageWatch{
		memory:   memory,
		disk:     disk,
		dirs:     outermost(dirs),
		tree:     tree,
		Exceeded: make(chan string, 1),
		stop:     make(chan struct{}),
	}
	if memory == 0 && disk == 0 {
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

// Close ends the watch.
func (w *UsageWatch) Close() {
	close(w.stop)
	w.done.Wait()
}

func (w *UsageWatch) follow() {
	if w.disk > 0 {
		w.before = w.diskUsed()
		w.disk = diskAllowance(w.disk, freeOnDisk(w.dirs))
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
		inMemory, onDisk, ok := unnamedFiles(processes)
		named := filesInMemory(processes)
		switch {
		case !ok:
			w.Exceeded <- ExceededFiles
			return
		case w.memory > 0 && memoryExceeds(processes, w.memory, named+inMemory):
			w.Exceeded <- ExceededMemory
			return
		case w.disk > 0 && time.Now().After(w.nextDisk) &&
			// no disk is that large
			w.diskUsed()-w.before+int64(onDisk+named) > int64(w.disk): //nolint:gosec // small
			w.Exceeded <- ExceededDisk
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
func (w *UsageWatch) diskUsed() int64 {
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

// bytesOnDisk returns the disk space of a file, which is less than its size where it has holes.
func bytesOnDisk(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * 512
	}
	return info.Size()
}
