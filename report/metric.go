package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// Metric is a group in one row, for control charts over many experiments.
type Metric struct {
	StartMs      int64    `json:"startMs"`
	Experiment   string   `json:"experiment"`
	Arm          string   `json:"arm"`
	Agent        string   `json:"agent"`
	AgentVersion string   `json:"agentVersion,omitempty"`
	Model        string   `json:"model,omitempty"`
	Revision     string   `json:"familyRevision"`
	SkillSetHash string   `json:"skillSetHash,omitempty"`
	Tasks        int      `json:"tasks"`
	Runs         int      `json:"runs"`
	Missing      int      `json:"missing"`
	PassRate     *float64 `json:"passRate"`
	Lo           *float64 `json:"lo"`
	Hi           *float64 `json:"hi"`
	CostUSD      *float64 `json:"costUsd"`
	DurationMs   int64    `json:"medianDurationMs"`
	Turns        int      `json:"medianTurns"`
}

// Metrics are the groups in rows.
func (r *Report) Metrics() []Metric {
	var rows []Metric
	for i := range r.Groups {
		g := &r.Groups[i]
		p := g.Provenance
		m := Metric{
			Experiment: p.Experiment, Arm: p.Arm, Agent: p.Agent, AgentVersion: p.AgentVersion, Model: p.Model, Revision: p.FamilyRevision, SkillSetHash: p.SkillSetHash,
			Tasks: g.Totals.Tasks, Runs: g.Totals.Runs, Missing: g.Totals.Missing, CostUSD: g.Totals.CostUSD, DurationMs: g.Totals.MedianDurationMs, Turns: g.Totals.MedianTurns,
		}
		for j := range g.records {
			if start := g.records[j].StartMs; m.StartMs == 0 || start < m.StartMs {
				m.StartMs = start
			}
		}
		if g.PassRate != nil {
			m.PassRate, m.Lo, m.Hi = &g.PassRate.Est, &g.PassRate.Lo, &g.PassRate.Hi
		}
		rows = append(rows, m)
	}
	return rows
}

// WriteMetrics writes one line of JSON per group, to be appended to a file over time.
func (r *Report) WriteMetrics(w io.Writer) error {
	for _, m := range r.Metrics() {
		line, err := json.Marshal(m)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}
