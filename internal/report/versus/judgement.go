package versus

import (
	"errors"
	"io/fs"

	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/stats"
)

// Judgement holds the verdicts from the replies and labels in a run directory.
type Judgement struct {
	Settings judge.Settings
	Subjects []judge.Subject
	Labels   *judge.Labels
	// Choices are the members that judge a dimension, where labels decide that; Result is made from
	// their votes.
	Choices      []judge.Choice
	Result       *judge.Result
	Calibrations []judge.Calibration

	newestMs int64
}

// Judgement derives verdicts from the replies that are there; nil if no judge was asked.
func (s *Source) Judgement() (*Judgement, error) {
	replies, err := judge.Read(s.dir)
	if err != nil {
		return nil, err
	}
	settings, asked := replies.Settings()
	if !asked {
		return nil, nil
	}
	j := &Judgement{Settings: settings, Subjects: s.Subjects(), newestMs: replies.NewestMs()}
	j.Labels, err = judge.LoadLabels(s.LabelsPath())
	if errors.Is(err, fs.ErrNotExist) {
		j.Labels, err = judge.NewLabels(s.LabelsPath()), nil
	}
	if err != nil {
		return nil, err
	}
	if err := j.Labels.Check(j.Subjects); err != nil {
		return nil, err
	}
	j.Result = judge.Derive(replies, settings, j.Subjects, nil)
	var selection judge.Selection
	if selection, j.Choices = j.Labels.Select(j.Result); len(selection) > 0 {
		j.Result = judge.Derive(replies, settings, j.Subjects, selection)
	}
	j.Calibrations, err = j.Labels.Calibrations(j.Result)
	return j, err
}

// known returns what labels say about the panel, by dimension.
func (j *Judgement) known() map[string]*judge.Calibration {
	known := map[string]*judge.Calibration{}
	if j == nil {
		return known
	}
	for i := range j.Calibrations {
		if c := &j.Calibrations[i]; c.Status != stats.StatusUncalibrated {
			known[c.Dimension] = c
		}
	}
	return known
}
