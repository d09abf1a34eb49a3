package sandbox

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// RunMarker is the environment variable that marks the processes of one run. Without a supervisor,
// orphans are found by it.
const RunMarker = "EVAL_RUN_ID"

// rssUnit is the unit of the kernel's resident set size, in KiB.
const rssUnit = 1

// killStrays kills what is left of a program whose first process has ended: its
// session and process group, processes that carry its marker, those that were known
// before, and all their descendants. It returns how many it killed, and what is still
// alive after all.
func killStrays(program int, env []string, known map[int]bool) (killed int, unkillable []int) {
	marker := lookup(env, RunMarker)
	if marker != "" {
		marker = RunMarker + "=" + marker
	}
	seen := map[int]bool{}
	deadline := time.Now().Add(killDelay / 2)
	for {
		strays := findStrays(program, marker, known)
		if len(strays) == 0 || time.Now().After(deadline) {
			return len(seen), strays
		}
		for _, pid := range strays {
			seen[pid] = true
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond) // let them die before we look again
	}
}

func findStrays(program int, marker string, known map[int]bool) []int {
	ours := map[int]bool{}
	table := processTable()
	for _, p := range table {
		if p.pid == os.Getpid() || p.zombie {
			continue
		}
		inGroup := program != 0 && (p.session == program || p.group == program)
		if inGroup || known[p.pid] || marker != "" && carries(p.pid, marker) {
			ours[p.pid] = true
		}
	}
	return livingIn(ours, table)
}

// ProcessesOf lists the living processes of a run: those that carry its mark, those that work in
// one of its directories or below, and all their descendants; without the tree below spared, unless
// that is 0, and without us and our ancestors.
func ProcessesOf(runID string, dirs []string, spared int) []int {
	table := processTable()
	parents := map[int]int{}
	for _, p := range table {
		parents[p.pid] = p.parent
	}
	ours, exempt := map[int]bool{}, map[int]bool{1: true}
	for at := os.Getpid(); at > 0 && !exempt[at]; at = parents[at] {
		exempt[at] = true
	}
	for _, p := range table {
		ours[p.pid] = !exempt[p.pid] && !p.zombie && (carries(p.pid, RunMarker+"="+runID) || worksIn(p.pid, dirs))
	}
	if spared != 0 {
		for _, pid := range livingIn(map[int]bool{spared: true}, table) {
			exempt[pid] = true
		}
	}
	return slices.DeleteFunc(livingIn(ours, table), func(pid int) bool { return exempt[pid] })
}

// worksIn reports whether a process has one of the directories, or one below, as its working
// directory.
func worksIn(pid int, dirs []string) bool {
	at, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	return err == nil && slices.ContainsFunc(dirs, func(dir string) bool {
		_, inside := below(dir, strings.TrimSuffix(at, " (deleted)"))
		return inside
	})
}
