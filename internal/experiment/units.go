package experiment

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/fit-eval/fit/stats"
)

// copiesOf begins the name of a cluster of tasks that are the same task.
const copiesOf = "copies of "

// groupTasks puts tasks that are not independent evidence into one cluster: copies of one task,
// and, where tasks are of several repositories, those of each. Tasks of one repository stay apart:
// what is found then holds for tasks of that repository. A cluster that a task names is kept.
func (p *Plan) groupTasks() {
	several := p.Repository() == ""
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if t.Cluster == "" && several {
			t.Cluster = t.Repository
		}
	}
	for _, same := range p.Copies() {
		for _, i := range same {
			p.Tasks[i].Cluster = cmp.Or(p.Tasks[i].Cluster, p.Tasks[same[0]].Cluster, copiesOf+p.Tasks[same[0]].ID)
		}
	}
}

// Repository returns the one repository that all tasks are of; empty if there is none, or several.
func (p *Plan) Repository() string {
	one := ""
	for i := range p.Tasks { // a plan that somebody wrote may have none
		if i == 0 {
			one = p.Tasks[i].Repository
		}
		if p.Tasks[i].Repository != one {
			return ""
		}
	}
	return one
}

// Scope says in words which tasks a result holds for, if not for all of a family.
func (p *Plan) Scope() string {
	var parts []string
	if part := p.Part(); part != "" {
		parts = append(parts, part)
	}
	if p.Repository() != "" {
		parts = append(parts, "for tasks of this repository")
	}
	for _, near := range p.nearCopies() {
		parts = append(parts, p.nearlySame(near))
	}
	return strings.Join(parts, "; ")
}

// Part says which part of the tasks of the family is run, and why the others are not; it is empty
// if all are.
func (p *Plan) Part() string {
	out := p.Family.LeftOut
	if p.Family.Selected == "" && len(out) == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d tasks", len(p.Tasks), p.Family.Tasks)
	if p.Family.Selected != "" {
		text += ", selected by " + p.Family.Selected
	}
	if len(out) == 0 {
		return text
	}
	named := map[string][]string{}
	var reasons []string
	for _, t := range out {
		if named[t.Reason] == nil {
			reasons = append(reasons, t.Reason)
		}
		named[t.Reason] = append(named[t.Reason], t.Task)
	}
	shown := reasons[:min(len(reasons), maxReasons)]
	text += fmt.Sprintf("; %d left out", len(out))
	for i, reason := range shown {
		tasks := named[reason]
		more := ""
		if len(tasks) > maxReasons {
			more = fmt.Sprintf(" and %d more", len(tasks)-maxReasons)
		}
		text += fmt.Sprintf("%s%s%s (%s)", []string{": ", ", "}[min(i, 1)],
			strings.Join(tasks[:min(len(tasks), maxReasons)], ", "), more, reason)
	}
	if more := len(reasons) - len(shown); more > 0 {
		text += fmt.Sprintf(", and for %d more reasons (plan.json)", more)
	}
	return text
}

// maxReasons bounds the reasons, and the tasks of each, that a line names.
const maxReasons = 3

// Copies returns the places of tasks that are the same but for their names, in groups.
func (p *Plan) Copies() [][]int {
	return p.groups(func(t *PlannedTask) [2]string { return [2]string{t.Visible, t.Hidden} })
}

// nearCopies returns the places of tasks that count each, though all have the same files and tests
// and differ in what they ask.
func (p *Plan) nearCopies() [][]int {
	return p.groups(func(t *PlannedTask) [2]string {
		if t.Cluster != "" {
			return [2]string{}
		}
		return [2]string{t.Shared}
	})
}

// nearlySame says which tasks are near copies of the first of them.
func (p *Plan) nearlySame(near []int) string {
	first := p.Tasks[near[0]].ID
	if len(near) == 2 {
		return fmt.Sprintf("1 task has the same files and tests as task %s, and each counts as independent evidence",
			first)
	}
	return fmt.Sprintf("%d tasks have the same files and tests as task %s, and each counts as independent evidence",
		len(near)-1, first)
}

// groups returns the places of tasks of the same kind, where it is known and there are several.
func (p *Plan) groups(kind func(*PlannedTask) [2]string) [][]int {
	places := map[[2]string][]int{}
	for i := range p.Tasks {
		if key := kind(&p.Tasks[i]); key[0] != "" {
			places[key] = append(places[key], i)
		}
	}
	groups := slices.Collect(maps.Values(places))
	groups = slices.DeleteFunc(groups, func(group []int) bool { return len(group) < 2 })
	slices.SortFunc(groups, func(a, b []int) int { return a[0] - b[0] })
	return groups
}

// Units counts what is independent evidence: clusters, and tasks that are in none.
func (p *Plan) Units() int {
	clusters, alone := map[string]bool{}, 0
	for i := range p.Tasks {
		if cluster := p.Tasks[i].Cluster; cluster != "" {
			clusters[cluster] = true
		} else {
			alone++
		}
	}
	return len(clusters) + alone
}

// Limits says what keeps the experiment from a claim, or makes its evidence less than its number of
// tasks, and what to do about it.
func (p *Plan) Limits() []string {
	var notes []string
	for _, same := range p.Copies() {
		notes = append(notes, fmt.Sprintf("copies of task %s: %d; together they count as one: change or remove them",
			p.Tasks[same[0]].ID, len(same)-1))
	}
	for _, near := range p.nearCopies() {
		notes = append(notes, p.nearlySame(near)+": put them in one cluster if solving one solves the others")
	}
	units := p.Units()
	switch needed := fewestUnits(); {
	case len(p.Arms) < 2:
	case len(p.Tasks) < stats.MinClaimTasks:
		notes = append(notes, fmt.Sprintf("tasks: %d: results will be descriptive only; a claim needs at least %d",
			len(p.Tasks), stats.MinClaimTasks))
	case units < needed:
		notes = append(notes, fmt.Sprintf("independent units (clusters, repositories, copies) among the %d tasks: "+
			"%d: results will be descriptive only; a claim needs at least %d: add tasks of others", len(p.Tasks), units,
			needed))
	case units < len(p.Tasks):
		notes = append(notes, fmt.Sprintf("independent units (clusters, repositories, copies) among the %d tasks: "+
			"%d; they are what is counted", len(p.Tasks), units))
	}
	return notes
}

// fewestUnits is the least number of units whose sign-flip test can be significant: with all of
// them on one side it is 2/2^n.
func fewestUnits() int { return int(math.Ceil(math.Log2(2 / stats.DefaultAlpha))) }
