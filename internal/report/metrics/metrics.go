// Package metrics keeps a report as one line of JSON per arm, for control charts over many
// experiments.
package metrics

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/fit-eval/fit/internal/jsonlines"
	"github.com/fit-eval/fit/internal/report"
)

// row is an arm in one line.
type row struct {
	StartMs      int64          `json:"startMs"`
	Experiment   string         `json:"experiment"`
	Arm          string         `json:"arm"`
	Agent        string         `json:"agent"`
	AgentVersion string         `json:"agentVersion,omitempty"`
	Model        string         `json:"model,omitempty"`
	Revision     string         `json:"familyRevision"`
	SkillSetHash string         `json:"skillSetHash,omitempty"`
	Tasks        int            `json:"tasks"`
	Runs         int            `json:"runs"`
	Missing      int            `json:"missing"`
	PassRate     *float64       `json:"passRate"`
	Lo           *float64       `json:"lo"`
	Hi           *float64       `json:"hi"`
	Bounds       *report.Bounds `json:"bounds,omitempty"`
	CostUSD      *float64       `json:"costUsd"`
	DurationMs   int64          `json:"medianDurationMs"`
	Turns        int            `json:"medianTurns"`
	// CostPerPass is the cost of a run that passes, all runs paid; Judge is the judge's pass rate
	// on the runs it was asked about.
	CostPerPass *float64 `json:"costPerPass,omitempty"`
	Judge       *float64 `json:"judgePassRate,omitempty"`
}

// rowsOf returns the groups in rows.
func rowsOf(r *report.Report) []row {
	var rows []row
	for i := range r.Groups {
		g := &r.Groups[i]
		p := g.Provenance
		m := row{
			Experiment:   p.Experiment,
			Arm:          p.Arm,
			Agent:        p.Agent,
			AgentVersion: p.AgentVersion,
			Model:        p.Model,
			Revision:     p.FamilyRevision,
			SkillSetHash: p.SkillSetHash,
			Tasks:        g.Totals.Tasks,
			Runs:         g.Totals.Runs,
			Missing:      g.Totals.Missing,
			Bounds:       g.Bounds,
			CostUSD:      g.Totals.CostUSD,
			DurationMs:   g.Totals.MedianDurationMs,
			Turns:        g.Totals.MedianTurns,
		}
		for _, record := range g.Records() {
			if start := record.StartMs; m.StartMs == 0 || start < m.StartMs {
				m.StartMs = start
			}
		}
		if t := g.Totals.CostPerPass; t != nil {
			m.CostPerPass = &t.Est
		}
		if j := g.Judge; j != nil && j.Passed+j.Failed > 0 {
			rate := float64(j.Passed) / float64(j.Passed+j.Failed)
			m.Judge = &rate
		}
		if g.PassRate != nil {
			m.PassRate, m.Lo, m.Hi = &g.PassRate.Est, &g.PassRate.Lo, &g.PassRate.Hi
		}
		rows = append(rows, m)
	}
	return rows
}

// Write writes one line of JSON per group, to be appended to a file over time.
func Write(w io.Writer, r *report.Report) error {
	lines, err := linesOf(r)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

func linesOf(r *report.Report) ([][]byte, error) {
	var lines [][]byte
	for _, m := range rowsOf(r) {
		line, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// Append adds the lines to a file of metrics, each once: reporting the same results again
// adds nothing, and an experiment that has continued since adds lines that replace its earlier
// ones.
func Append(path string, r *report.Report) error {
	lines, err := linesOf(r)
	if err != nil {
		return err
	}
	if err := jsonlines.AppendNew(path, lines); err != nil {
		return fmt.Errorf("append metrics: %w", err)
	}
	return nil
}
