package benchmarkcli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/task"
)

// selection picks tasks of a family.
type selection struct {
	tasks, tags []string
	limit       console.Count
}

func newSelection() selection { return selection{limit: console.Count{Min: 1}} }

func (s *selection) register(flags *pflag.FlagSet) {
	flags.StringSliceVar(&s.tasks, "task", nil, "only tasks with this name or glob, e.g. 'fix-*'; may "+
		"be repeated")
	flags.StringSliceVar(&s.tags, "tag", nil, "only tasks with this tag; may be repeated")
	flags.Var(&s.limit, "limit", "only the first N of these tasks, ordered by name")
}

// String returns the flags of the selection as they were given.
func (s *selection) String() string {
	var flags []string
	for _, name := range nonEmpty(s.tasks) {
		flags = append(flags, "--task "+name)
	}
	for _, tag := range nonEmpty(s.tags) {
		flags = append(flags, "--tag "+tag)
	}
	if s.limit.Given {
		flags = append(flags, fmt.Sprintf("--limit %d", s.limit.Value))
	}
	return strings.Join(flags, ", ")
}

// choose returns the names of the selected tasks; nil is all of them.
func (s *selection) choose(family *task.Family) ([]string, error) {
	names, tags := nonEmpty(s.tasks), nonEmpty(s.tags)
	if len(names)+len(tags) == 0 && !s.limit.Given {
		return nil, nil
	}
	var known, chosen []string
	for i := range family.Tasks {
		known = append(known, family.Tasks[i].ID)
	}
	matched := map[string]bool{}
	for _, name := range names {
		pattern, err := glob.Compile(name)
		if err != nil {
			return nil, console.Usagef("--task %s: %v", name, err)
		}
		found := false
		for _, id := range known {
			if id == name || pattern.Match(id) {
				matched[id], found = true, true
			}
		}
		if !found {
			return nil, console.Exit(console.ExitUsage, &local.UnknownTaskError{ID: name, Known: known})
		}
	}
	for i := range family.Tasks {
		t := &family.Tasks[i]
		tagged := len(tags) == 0 || slices.ContainsFunc(t.Settings.Tags,
			func(tag string) bool { return slices.Contains(tags, tag) })
		if tagged && (len(names) == 0 || matched[t.ID]) {
			chosen = append(chosen, t.ID)
		}
	}
	if len(chosen) == 0 {
		return nil, console.Usagef("--tag %s: no selected task has it; there are %s", tags[0], tagsOf(family))
	}
	slices.Sort(chosen)
	if s.limit.Given {
		chosen = chosen[:min(len(chosen), s.limit.Value)]
	}
	return chosen, nil
}

// tagsOf lists the tags of the tasks of a family.
func tagsOf(family *task.Family) string {
	var tags []string
	for i := range family.Tasks {
		tags = append(tags, family.Tasks[i].Settings.Tags...)
	}
	slices.Sort(tags)
	return cmp.Or(strings.Join(slices.Compact(tags), ", "), "no tags")
}

// olderDirs are run directories that are named by flags, as they were before they were arguments.
type olderDirs struct{ dirs []string }

func (o *olderDirs) register(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flags.StringSliceVar(&o.dirs, name, nil, "older way to name a run directory")
		_ = flags.MarkHidden(name) // it exists
	}
}
