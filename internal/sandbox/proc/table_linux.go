package proc

import (
	"bytes"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process is a line of the process table.
type Process struct {
	ID, Parent, Group, Session int
	Zombie                     bool
}

// Read reads one process, which may have ended meanwhile.
func Read(pid int) (Process, bool) {
	fields := Stat(strconv.Itoa(pid))
	if len(fields) < 4 {
		return Process{}, false
	}
	p := Process{ID: pid, Zombie: fields[0] == "Z" || fields[0] == "X"}
	p.Parent, _ = strconv.Atoi(fields[1])
	p.Group, _ = strconv.Atoi(fields[2])
	p.Session, _ = strconv.Atoi(fields[3])
	return p, true
}

// Stat returns the fields of a process after its name.
func Stat(pid string) []string {
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

// processTable lists all processes that we can see.
func processTable() []Process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	table := make([]Process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := Read(pid); ok {
			table = append(table, p)
		}
	}
	return table
}

// Descendants lists the living processes below root. The kernel's own lists of
// children make this cheap, so that it can run faster than processes can fork away.
func Descendants(root int) []int {
	var found []int
	pending := []int{root}
	for len(pending) > 0 {
		pid := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		children, ok := Children(pid)
		if !ok && pid == root {
			return descendantsByTable(root)
		}
		found = append(found, children...)
		pending = append(pending, children...)
	}
	return found
}

// Adopted lists the living processes below this one, which is a supervisor.
func Adopted() []int {
	if errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil), unix.ECHILD) {
		return nil
	}
	return Supervised(os.Getpid())
}

// Supervised lists the living processes below a supervisor: its first thread starts the program,
// and gets the orphans. Reading the lists of the other threads costs the process that waits for it
// several milliseconds: it spins while the kernel drops the /proc entries of each.
func Supervised(supervisor int) []int {
	process := strconv.Itoa(supervisor)
	direct, ok := childrenOfThread(process, process)
	if !ok || len(direct) == 0 {
		return Descendants(supervisor)
	}
	found := direct
	for _, child := range direct {
		found = append(found, Descendants(child)...)
	}
	return found
}

// Children reads the children of all threads of a process. It reports false where
// the kernel was built without these lists.
func Children(pid int) ([]int, bool) {
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
func livingIn(set map[int]bool, table []Process) []int {
	for grew := true; grew; {
		grew = false
		for _, p := range table {
			if set[p.Parent] && !set[p.ID] {
				set[p.ID], grew = true, true
			}
		}
	}
	var found []int
	for _, p := range table {
		if set[p.ID] && !p.Zombie {
			found = append(found, p.ID)
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

// CloseAllOnExec keeps every descriptor from the program that it is not given by
// name: ours, and those left open in the process that started the harness. Go opens everything that
// way, so that only inherited ones change.
func CloseAllOnExec() {
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
