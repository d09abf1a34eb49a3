package report

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// The ways in which labelled runs can have been chosen.
const (
	// DesignBalanced is about as many good as bad ones: the judge's error rates carry over, its
	// pass rate does not.
	DesignBalanced = "balanced"
	designRandom   = "random" // a random sample of the judged runs
)

// Labels is labels.yaml: people's verdicts on work that the judge has judged, and on single
// dimensions of work that a panel has judged in a head to head.
type Labels struct {
	Design string        `yaml:"design" doc:"How the labelled runs were chosen: balanced (as many good as bad ones) or random (a random sample of the judged runs); default balanced." enum:"balanced,random"`
	Judge  LabelledJudge `yaml:"judge" doc:"The judge whose verdicts the labels carry, where they do."`
	Labels []RunLabel    `yaml:"labels" doc:"The verdicts of people, run by run." required:"true"`
}

// LabelledJudge identifies the judge that a set of labels is about.
type LabelledJudge struct {
	Digests []string `yaml:"digests" doc:"Digests of the judge as shown in records and reports (digests.judge). Labels on another judge correct nothing."`
}

// RunLabel is one person's verdict on one run. Without the judge's verdict the run must be in the
// reported experiment.
type RunLabel struct {
	Task  string `yaml:"task" doc:"Task of the run." required:"true"`
	Arm   string `yaml:"arm" doc:"Arm of the run; needed where there are several."`
	Run   int    `yaml:"run" doc:"Which repetition it is, counted from 0." min:"0"`
	Human string `yaml:"human" doc:"What a person says about the work." enum:"pass,fail" required:"true"`
	Judge string `yaml:"judge" doc:"What the judge said; default: its verdict in the ledger." enum:"pass,fail"`
	// Dimension and Split belong to labels of a head to head, which are not about this judge.
	Dimension string `yaml:"dimension" doc:"The dimension of a head to head that the label is about. Such labels do not count here." enum:"correctness,verification,completeness,codeQuality,minimalDiff"`
	Split     string `yaml:"split" doc:"The part of a head to head's labels that it belongs to." enum:"train,dev,test"`
}

// Passed reports whether the person passes the work.
func (l RunLabel) Passed() bool { return l.Human == ledger.Pass }

// LoadLabels reads labels.yaml. Mistakes are reported with file, line and column.
func LoadLabels(path string) (*Labels, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read labels: %w", err)
	}
	return ParseLabels(path, source)
}

// ParseLabels reads the content of labels.yaml.
func ParseLabels(path string, source []byte) (*Labels, error) {
	var labels Labels
	doc, err := document.Read(path, source, &labels)
	if err != nil {
		return nil, err
	}
	seen := map[RunLabel]bool{}
	for i, label := range labels.Labels {
		about := label
		about.Human, about.Judge, about.Split = "", "", ""
		if seen[about] {
			what := fmt.Sprintf("task %s, run %d", label.Task, label.Run)
			if label.Dimension != "" {
				what = fmt.Sprintf("%s of task %s, arm %s, run %d", label.Dimension, label.Task, label.Arm, label.Run)
			}
			return nil, doc.ErrorAt([]string{"labels", strconv.Itoa(i)}, "%s is labelled twice", what)
		}
		seen[about] = true
	}
	return &labels, nil
}

// labelled is a label with the verdict of the judge that it is about.
type labelled struct {
	arm          string
	human, judge bool
	record       *ledger.Record // nil: the label brought the judge's verdict along
}

// resolved holds labels with the verdicts they are about.
type resolved struct {
	rows      []labelled
	unmatched int
	design    string
	digests   []string
	// homogeneity says whether the judge errs equally on all arms; nil if fewer than two arms have
	// labels.
	homogeneity *stats.HomogeneityResult
}

// resolve finds the judge's verdict for every label.
func (l *Labels) resolve(records []ledger.Record) (*resolved, error) {
	if l == nil {
		return nil, nil
	}
	out := &resolved{design: cmp.Or(l.Design, DesignBalanced), digests: l.Judge.Digests}
	byRun := map[ledger.Cell]*ledger.Record{}
	arms := map[string]bool{}
	for i, r := range records {
		arms[r.Arm] = true
		if r.JudgeVerdict != nil {
			byRun[r.Cell()] = &records[i]
		}
	}
	for _, label := range l.Labels {
		if label.Dimension != "" {
			continue
		}
		row := labelled{arm: label.Arm, human: label.Passed(), judge: label.Judge == ledger.Pass}
		if label.Arm == "" && len(arms) == 1 {
			for only := range arms {
				row.arm = only
			}
		}
		record := byRun[ledger.Cell{Arm: row.arm, TaskID: label.Task, RunIndex: label.Run}]
		switch {
		case label.Judge != "":
		case row.arm == "":
			return nil, fmt.Errorf("the label of task %s, run %d does not say which arm it is about, and there are %d",
				label.Task, label.Run, len(arms))
		case record == nil:
			out.unmatched++
			continue
		default:
			row.judge, row.record = record.JudgeVerdict.Verdict == ledger.Pass, record
		}
		out.rows = append(out.rows, row)
	}
	return out, out.testHomogeneity()
}

// testHomogeneity tests whether the judge errs equally on all arms that have labels of both kinds.
func (r *resolved) testHomogeneity() error {
	var arms []string
	for _, row := range r.rows {
		if row.arm != "" && !slices.Contains(arms, row.arm) {
			arms = append(arms, row.arm)
		}
	}
	slices.Sort(arms)
	var calibrations []stats.Calibration
	for _, arm := range arms {
		calibrations = append(calibrations, r.calibration(arm))
	}
	var err error
	if r.homogeneity, err = stats.LabelledHomogeneity(calibrations); err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	return nil
}

// calibration counts how often the judge recognises good and bad work of an arm; of all arms if arm
// is empty.
func (r *resolved) calibration(arm string) stats.Calibration {
	c := stats.Calibration{Agent: arm}
	for _, row := range r.rows {
		if arm == "" || row.arm == arm {
			c.Count(row.human, row.judge)
		}
	}
	return c
}
