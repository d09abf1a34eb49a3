package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// Check refuses labels of runs that are not there, and clusters with labels in two splits: a judge
// must not be measured on the labels that it was chosen by.
func (l *Labels) Check(subjects []Subject) error {
	runs := map[ledger.Cell]bool{}
	for i := range subjects {
		runs[subjects[i].cell()] = true
	}
	clusterOf, splitOf := clusters(subjects), map[string]string{}
	for i, one := range l.Labels {
		cluster := clusterOf(one)
		switch before := splitOf[cluster]; {
		case one.Dimension == "": // of a benchmark, whose runs may be elsewhere
		case !runs[one.Cell()]:
			return l.errorAt(i, "there is no run %d of task %s with arm %s", one.Run, one.Task, one.Arm)
		case before != "" && one.Split != "" && before != one.Split:
			return l.errorAt(i,
				"cluster %s has labels in the splits %s and %s; give all of them the same one", cluster, before,
				one.Split)
		case one.Split != "":
			splitOf[cluster] = one.Split
		}
	}
	return nil
}

// design says how the labelled runs were chosen.
func (l *Labels) design() string { return cmp.Or(l.Design, designBalanced) }

// Matched are labels with the verdicts that they are about.
type Matched struct {
	Labels []MatchedLabel
	// Unjudged counts labels on runs without a verdict.
	Unjudged int
	Design   string
	// Digests identify the judge that labels are about which carry its verdict.
	Digests []string
}

// MatchedLabel is a label with the verdict that it is about; Carried says that it came with it.
type MatchedLabel struct {
	Label
	Judged, Carried bool
}

// Match finds the judge's verdicts that the labels of a question are about. arms are those of the
// experiment: a label need not name the only one.
func (l *Labels) Match(dimension, split string, judged Judged, arms []string) (*Matched, error) {
	found := &Matched{Design: l.design(), Digests: l.Judge.Digests}
	for _, one := range l.Labels {
		if one.Dimension != dimension || dimension != "" && one.Split != split {
			continue
		}
		if one.Arm == "" && len(arms) == 1 {
			one.Arm = arms[0]
		}
		verdict, known := judged[one.Cell()]
		switch {
		case one.Judge != "":
			found.Labels = append(found.Labels, MatchedLabel{one, one.Judge == ledger.Pass, true})
		case one.Arm == "":
			return nil, fmt.Errorf("the label of task %s, run %d does not say which arm it is about, and there are %d",
				one.Task, one.Run, len(arms))
		case !known:
			found.Unjudged++
		default:
			found.Labels = append(found.Labels, MatchedLabel{one, verdict, false})
		}
	}
	return found, nil
}

// Errors counts how often the judge recognises good and bad work, over all and by arm.
func (m *Matched) Errors() (Errors, error) {
	var known Errors
	arms := map[string]*stats.Calibration{}
	for _, one := range m.Labels {
		known.Pooled.Count(one.Passed(), one.Judged)
		if one.Arm == "" {
			continue
		}
		if arms[one.Arm] == nil {
			arms[one.Arm] = &stats.Calibration{Agent: one.Arm}
		}
		arms[one.Arm].Count(one.Passed(), one.Judged)
	}
	for _, arm := range sortedKeys(arms) {
		known.PerArm = append(known.PerArm, *arms[arm])
	}
	var err error
	if known.Homogeneity, err = stats.LabelledHomogeneity(known.PerArm); err != nil {
		return known, fmt.Errorf("labels: %w", err)
	}
	return known, nil
}

// errorAt returns an error about a label, with its position.
func (l *Labels) errorAt(at int, format string, args ...any) error {
	doc, err := document.Parse(l.path, l.source)
	if err != nil {
		return err
	}
	return doc.ErrorAt([]string{"labels", strconv.Itoa(at)}, format, args...)
}

// clusters finds the cluster of a label. An unknown task is its own cluster.
func clusters(subjects []Subject) func(Label) string {
	byTask := map[string]string{}
	for i := range subjects {
		byTask[subjects[i].Task.ID] = subjects[i].cluster()
	}
	return func(one Label) string {
		if cluster, known := byTask[one.Task]; known {
			return cluster
		}
		return one.Task
	}
}

// digestOf identifies the labels that a dimension is measured with, regardless of their order.
func (l *Labels) digestOf(dimension, split string) string {
	var lines []string
	for _, one := range l.Labels {
		if one.Dimension == dimension && one.Split == split {
			lines = append(lines, one.line())
		}
	}
	slices.Sort(lines)
	return digest(strings.Join(lines, ""))
}
