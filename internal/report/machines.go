package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/ledger"
)

// Machines says whether the runs of two arms were made on similar machines: task by task with the
// same isolation, and with one version of fit and of each agent.
type Machines struct {
	// Workers is the number of machines, or workers of a fleet, that made the runs.
	Workers int          `json:"workers"`
	Tasks   int          `json:"tasks"` // with runs of both arms
	Unlike  []UnlikeTask `json:"unlike,omitempty"`
}

// UnlikeTask is a task whose runs were made on machines that differ.
type UnlikeTask struct {
	TaskID string `json:"taskId"`
	Why    string `json:"why"`
}

// compareMachines compares the machines of two arms. It returns nil if one machine made all runs in
// the same way, or if records do not name the machine.
func compareMachines(a, b *Group) *Machines {
	workers, tasks := map[string]bool{}, map[string]*machinesOf{}
	for side, g := range []*Group{a, b} {
		for i := range g.records {
			r := &g.records[i]
			if r.Verdict == ledger.Error {
				continue
			}
			if name := r.Worker + "@" + r.Host; name != "@" {
				workers[name] = true
			}
			if tasks[r.TaskID] == nil {
				tasks[r.TaskID] = &machinesOf{kinds: map[string]map[string]bool{}}
			}
			tasks[r.TaskID].add(side, r)
		}
	}
	m := &Machines{Workers: len(workers)}
	for _, id := range slices.Sorted(maps.Keys(tasks)) {
		t := tasks[id]
		if !t.sides[0] || !t.sides[1] {
			continue
		}
		m.Tasks++
		if why := t.differences(); why != "" {
			m.Unlike = append(m.Unlike, UnlikeTask{TaskID: id, Why: why})
		}
	}
	if m.Workers < 2 && len(m.Unlike) == 0 {
		return nil
	}
	return m
}

// machinesOf are the machines on which a task was run.
type machinesOf struct {
	sides [2]bool
	kinds map[string]map[string]bool // what was seen of isolation, fit, and each agent
}

func (m *machinesOf) add(side int, r *ledger.Record) {
	m.sides[side] = true
	for kind, value := range map[string]string{
		"isolation": r.Isolation,
		"fit":       r.Tools["fit"],
		r.Agent:     r.AgentVersion,
	} {
		if kind == "" || value == "" { // old records do not say
			continue
		}
		if m.kinds[kind] == nil {
			m.kinds[kind] = map[string]bool{}
		}
		m.kinds[kind][value] = true
	}
}

func (m *machinesOf) differences() string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(m.kinds)) {
		if values := m.kinds[kind]; len(values) > 1 {
			list = append(list, kind+" "+strings.Join(slices.Sorted(maps.Keys(values)), " and "))
		}
	}
	return strings.Join(list, ", ")
}

// Fact returns a sentence that the machines were alike; empty if they were not, or were not
// compared.
func (m *Machines) Fact() string {
	if m == nil || len(m.Unlike) > 0 || m.Tasks == 0 {
		return ""
	}
	return fmt.Sprintf("machines: %s; on every task both arms ran with the same isolation and versions",
		Count(m.Workers, "worker"))
}

// shownUnlike bounds how many tasks a warning names.
const shownUnlike = 3

// Warning returns a sentence about where machines differed; empty if they did not.
func (m *Machines) Warning() string {
	if m == nil || len(m.Unlike) == 0 {
		return ""
	}
	var named []string
	for _, t := range m.Unlike[:min(len(m.Unlike), shownUnlike)] {
		named = append(named, fmt.Sprintf("%s (%s)", t.TaskID, display.CutRunes(t.Why, 200)))
	}
	more := ""
	if left := len(m.Unlike) - len(named); left > 0 {
		more = fmt.Sprintf(" and %d more", left)
	}
	return fmt.Sprintf("%d of %s: the arms ran on different machine setups, which confounds the comparison: %s%s",
		len(m.Unlike), Count(m.Tasks, "task"), strings.Join(named, ", "), more)
}
