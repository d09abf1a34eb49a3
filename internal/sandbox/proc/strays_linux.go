package proc

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// KillStrays kills what is left of a program whose first process has ended: its
// session and process group, processes that carry its marker, those that were known
// before, and all their descendants. It returns how many it killed, and what is still alive after a
// time. A marker is a variable with its value; empty: there is none.
func KillStrays(program int, marker string, known map[int]bool, limit time.Duration) (killed int, unkillable []int) {
	seen := map[int]bool{}
	deadline := time.Now().Add(limit)
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
		if p.ID == os.Getpid() || p.Zombie {
			continue
		}
		inGroup := program != 0 && (p.Session == program || p.Group == program)
		if inGroup || known[p.ID] || marker != "" && carries(p.ID, marker) {
			ours[p.ID] = true
		}
	}
	return livingIn(ours, table)
}

// Find lists the living processes of a run: those that carry its marker, those that work in
// one of its directories or below, and all their descendants; without the tree below spared, unless
// that is 0, and without us and our ancestors.
func Find(marker string, dirs []string, spared int) []int {
	table := processTable()
	parents := map[int]int{}
	for _, p := range table {
		parents[p.ID] = p.Parent
	}
	ours, exempt := map[int]bool{}, map[int]bool{1: true}
	for at := os.Getpid(); at > 0 && !exempt[at]; at = parents[at] {
		exempt[at] = true
	}
	for _, p := range table {
		ours[p.ID] = !exempt[p.ID] && !p.Zombie && (carries(p.ID, marker) || worksIn(p.ID, dirs))
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
