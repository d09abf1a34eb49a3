package proc

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memoryExceeds reports whether processes use more memory than a limit: the private memory of each,
// and the files that they keep in memory or the memory that they share, whichever is more, because
// such files can be mapped.
func memoryExceeds(processes []int, limit, files uint64) bool {
	own, shared := uint64(0), uint64(0) // at most: shared memory counts for each process
	for _, pid := range processes {
		status := memoryOf(pid, "status")
		own, shared = own+status["RssAnon"], shared+status["RssShmem"]
	}
	if own+max(files, shared) <= limit {
		return false
	}
	shared = 0
	for _, pid := range processes {
		part, known := memoryOf(pid, "smaps_rollup")["Pss_Shmem"]
		if !known { // the process hides it from us
			part = memoryOf(pid, "status")["RssShmem"]
		}
		shared += part
	}
	return own+max(files, shared) > limit
}

// mostDescriptors is how many open files of a tree are looked at. No honest tree has so many.
const mostDescriptors = 1 << 16

// unnamedFiles adds up the open files of processes that have no name, or none any more: in memory,
// where no file system shows them, and on disk. It is not ok if the processes have more open files
// than can be looked at.
func unnamedFiles(processes []int) (memory, disk uint64, ok bool) {
	open, ok := openFiles(processes)
	type file struct{ device, number uint64 }
	seen := map[file]bool{}
	for _, path := range open {
		name, err := os.Readlink(path)
		if err != nil || !strings.HasSuffix(name, " (deleted)") {
			continue
		}
		var about unix.Stat_t
		if unix.Stat(path, &about) != nil || about.Nlink > 0 || about.Mode&unix.S_IFMT != unix.S_IFREG ||
			seen[file{about.Dev, about.Ino}] {
			continue
		}
		seen[file{about.Dev, about.Ino}] = true
		var system unix.Statfs_t
		size := uint64(about.Blocks) * 512 //nolint:gosec // it is positive
		switch {
		case strings.HasPrefix(name, "/memfd:"):
			memory += size
		case unix.Statfs(path, &system) == nil && system.Type != unix.TMPFS_MAGIC: // whose blocks filesInMemory counts
			disk += size
		}
	}
	return memory, disk, ok
}

// openFiles returns the descriptors of processes. It is not ok if there are too many.
func openFiles(processes []int) (paths []string, ok bool) {
	for _, pid := range processes {
		dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
		if err != nil {
			continue // it has ended
		}
		names, _ := dir.Readdirnames(mostDescriptors)
		_ = dir.Close()
		if len(paths)+len(names) > mostDescriptors {
			return nil, false
		}
		for _, name := range names {
			paths = append(paths, dir.Name()+"/"+name)
		}
	}
	return paths, true
}

// memoryOf reads a file of a process with a name and a number of kilobytes in each line, in bytes.
func memoryOf(pid int, file string) map[string]uint64 {
	content, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file) // it may have ended
	sizes := map[string]uint64{}
	for line := range strings.Lines(string(content)) {
		name, size, _ := strings.Cut(line, ":")
		if number, ok := strings.CutSuffix(strings.TrimSpace(size), " kB"); ok {
			kilobytes, _ := strconv.ParseUint(number, 10, 64)
			sizes[name] = kilobytes << 10
		}
	}
	return sizes
}

// filesInMemory adds up the files in the sandbox of processes that are not on a disk: in its own
// /tmp, /dev/shm and the like. Without a sandbox there are none.
func filesInMemory(processes []int) uint64 {
	ours, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return 0
	}
	seen := map[string]bool{ours: true}
	for _, m := range Mounts("/proc/self") {
		seen[m.Device] = true
	}
	var sum uint64
	for _, pid := range processes {
		process := "/proc/" + strconv.Itoa(pid)
		theirs, err := os.Readlink(process + "/ns/mnt")
		if err != nil || seen[theirs] {
			continue
		}
		seen[theirs] = true
		for _, m := range Mounts(process) {
			var about unix.Statfs_t
			if m.Kind != "tmpfs" || seen[m.Device] || unix.Statfs(process+"/root"+m.Point, &about) != nil ||
				about.Type != unix.TMPFS_MAGIC {
				continue
			}
			seen[m.Device] = true
			sum += (about.Blocks - about.Bfree) * uint64(about.Bsize) //nolint:gosec // it is positive
		}
	}
	return sum
}
