package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/sandbox"
)

// attemptProcesses lists the living processes of an attempt: those that carry its mark, those that
// work in its directories, and all their descendants; without the tree below spared, and without
// us.
func attemptProcesses(runID string, dirs []string, spared int) []int {
	parents := processParents()
	mark := []byte(sandbox.RunMarker + "=" + runID)
	ours := map[int]bool{}
	above := map[int]bool{} // we, and whoever started us
	for at := os.Getpid(); at > 0 && !above[at]; at = parents[at] {
		above[at] = true
	}
	for pid := range parents {
		if !above[pid] && (carries(pid, mark) || worksIn(pid, dirs)) {
			ours[pid] = true
		}
	}
	if len(ours) == 0 {
		return nil
	}
	var found []int
	for pid := range parents {
		belongs, exempt := false, false
		for at, steps := pid, 0; at > 1 && steps < 1000; at, steps = parents[at], steps+1 {
			belongs = belongs || ours[at]
			exempt = exempt || at == spared
		}
		if belongs && !exempt && !above[pid] {
			found = append(found, pid)
		}
	}
	return found
}

// processParents reads the process table, without processes that are dead already.
func processParents() map[int]int {
	parents := map[int]int{}
	dir, err := os.Open("/proc")
	if err != nil {
		return parents
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		end := bytes.LastIndexByte(stat, ')') // the name in brackets may hold anything
		if err != nil || end < 0 {
			continue
		}
		fields := strings.Fields(string(stat[end+1:]))
		if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	return parents
}

// carries reports whether the environment that a process was started with holds a variable.
func carries(pid int, variable []byte) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(entry, variable) {
			return true
		}
	}
	return false
}

// worksIn reports whether a process has one of the directories, or one below, as its working
// directory.
func worksIn(pid int, dirs []string) bool {
	at, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	if err != nil {
		return false
	}
	at = strings.TrimSuffix(at, " (deleted)")
	for _, dir := range dirs {
		if within(filepath.Clean(dir), at) {
			return true
		}
	}
	return false
}

func killProcess(pid int) { bestEffort(unix.Kill(pid, unix.SIGKILL)) }
