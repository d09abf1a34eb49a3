package judge

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/document"
)

// Check refuses labels of runs that are not there, and clusters with labels in two splits: a judge
// must not be measured on the labels that it was chosen by.
func (l *Labels) Check(subjects []Subject) error {
	runs := map[cell]bool{}
	for i := range subjects {
		runs[subjects[i].cell()] = true
	}
	clusterOf, splitOf := clusters(subjects), map[string]string{}
	for i, one := range l.file.Labels {
		cluster := clusterOf(one)
		switch before := splitOf[cluster]; {
		case one.Dimension == "": // of a benchmark, whose runs may be elsewhere
		case !runs[cellOf(one)]:
			return errorAt(l.path, l.source, i, "there is no run %d of task %s with arm %s", one.Run, one.Task, one.Arm)
		case before != "" && one.Split != "" && before != one.Split:
			return errorAt(l.path, l.source, i,
				"cluster %s has labels in the splits %s and %s; give all of them the same one", cluster, before,
				one.Split)
		case one.Split != "":
			splitOf[cluster] = one.Split
		}
	}
	return nil
}

// errorAt returns an error about a label, with its position.
func errorAt(path string, source []byte, at int, format string, args ...any) error {
	doc, err := document.Parse(path, source)
	if err != nil {
		return err
	}
	return doc.ErrorAt([]string{"labels", strconv.Itoa(at)}, format, args...)
}

// clusters finds the cluster of a label. An unknown task is its own cluster.
func clusters(subjects []Subject) func(label) string {
	byTask := map[string]string{}
	for i := range subjects {
		byTask[subjects[i].Task.ID] = subjects[i].cluster()
	}
	return func(one label) string {
		if cluster, known := byTask[one.Task]; known {
			return cluster
		}
		return one.Task
	}
}

// digestOf identifies the labels that a dimension is measured with, regardless of their order.
func (l *Labels) digestOf(dimension, split string) string {
	var lines []string
	for _, one := range l.file.Labels {
		if one.Dimension == dimension && one.Split == split {
			lines = append(lines, lineOf(one))
		}
	}
	slices.Sort(lines)
	return digest(strings.Join(lines, ""))
}
