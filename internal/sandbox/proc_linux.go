package sandbox

import (
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is a line of the process table.
type process struct {
	pid, parent, group, session int
	zombie                      bool
}

// readProcess reads one process; it may have ended meanwhile.
func readProcess(pid int) (process, bool) {
	fields := statOf(strconv.Itoa(pid))
	if len(fields) < 4 {
		return process{}, false
	}
	p := process{pid: pid, zombie: fields[0] == "Z" || fields[0] == "X"}
	p.parent, _ = strconv.Atoi(fields[1])
	p.group, _ = strconv.Atoi(fields[2])
	p.session, _ = strconv.Atoi(fields[3])
	return p, true
}

// processTable lists all processes that we can see.
func processTable() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	table := make([]process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			table = append(table, p)
		}
	}
	return table
}

// descendants lists the living processes below root. The kernel's own lists of
// children make this cheap, so that it can run faster than processes can fork away.
func descendants(root int) []int {
	var found []int
	pending := []int{root}
	for len(pending) > 0 {
		pid := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		children, ok := childrenOf(pid)
		if !ok && pid == root {
			return descendantsByTable(root)
		}
		found = append(found, children...)
		pending = append(pending, children...)
	}
	return found
}

// adopted lists the living processes below this one, which is a supervisor.
func adopted() []int {
	if errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil), unix.ECHILD) {
		return nil
	}
	return supervisedBy(os.Getpid())
}

// supervisedBy lists the living processes below a supervisor: its first thread starts the program,
// and gets the orphans. Reading the lists of the other threads costs the process that waits for it
// several milliseconds: it spins while the kernel drops the /proc entries of each.
func supervisedBy(supervisor int) []int {
	process := strconv.Itoa(supervisor)
	direct, ok := childrenOfThread(process, process)
	if !ok || len(direct) == 0 {
		return descendants(supervisor)
	}
	found := direct
	for _, child := range direct {
		found = append(found, descendants(child)...)
	}
	return found
}

// childrenOf reads the children of all threads of a process. It reports false where
// the kernel was built without these lists.
func childrenOf(pid int) ([]int, bool) {
	process := strconv.Itoa(pid)
	entries, err := os.ReadDir("/proc/" + process + "/task")
	if err != nil {
		return nil, false
	}
	var children []int
	readable := false
	for _, entry := range entries {
		if list, ok := childrenOfThread(process, entry.Name()); ok {
			readable, children = true, append(children, list...)
		}
	}
	return children, readable
}

func childrenOfThread(process, thread string) (children []int, ok bool) {
	list, err := os.ReadFile("/proc/" + process + "/task/" + thread + "/children")
	for field := range strings.FieldsSeq(string(list)) {
		if child, err := strconv.Atoi(field); err == nil {
			children = append(children, child)
		}
	}
	return children, err == nil
}

func descendantsByTable(root int) []int {
	found := livingIn(map[int]bool{root: true}, processTable())
	return slices.DeleteFunc(found, func(pid int) bool { return pid == root })
}

// livingIn lists the living processes of a table that are in a set or below one that is.
func livingIn(set map[int]bool, table []process) []int {
	for grew := true; grew; {
		grew = false
		for _, p := range table {
			if set[p.parent] && !set[p.pid] {
				set[p.pid], grew = true, true
			}
		}
	}
	var found []int
	for _, p := range table {
		if set[p.pid] && !p.zombie {
			found = append(found, p.pid)
		}
	}
	return found
}

// carries reports whether the environment a process was started with holds a variable.
func carries(pid int, variable string) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	return slices.Contains(strings.Split(string(environ), "\x00"), variable)
}

// closeAllOnExec keeps every descriptor from the program that it is not given by
// name: ours, and those left open in the process that started the harness. Go opens everything that
// way, so that only inherited ones change.
func closeAllOnExec() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
