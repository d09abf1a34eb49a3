package view

import (
	"net/http"
	"strconv"

	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/forecast"
	"github.com/fit-eval/fit/stats"
)

// forestRow is the difference of two arms on one task.
type forestRow struct {
	TaskID string   `json:"taskId"`
	NA     int      `json:"nA"`
	NB     int      `json:"nB"`
	Est    *float64 `json:"est"` // nil where an arm has no run
	Lo     *float64 `json:"lo"`
	Hi     *float64 `json:"hi"`
	Method string   `json:"method"`
}

// limits holds an estimate with its limits; nil if the data allow none.
type limits struct {
	Est float64  `json:"est"`
	Lo  *float64 `json:"lo"`
	Hi  *float64 `json:"hi"`
}

type forestAnswer struct {
	Version int         `json:"version"`
	A       string      `json:"a"`
	B       string      `json:"b"`
	Tasks   []forestRow `json:"tasks"`
	Overall limits      `json:"overall"`
}

// pair finds two groups of an experiment: those that the request names, else the first two.
func (s *Server) pair(r *http.Request) (a, b *report.Group, err error) {
	at, err := s.directory(r.PathValue("x"))
	if err != nil {
		return nil, nil, err
	}
	snap := s.snapshot(at)
	if snap.report == nil || len(snap.report.Groups) < 2 {
		return nil, nil, conflict(at.shown+" has fewer than two arms with results", "")
	}
	groups := [2]*report.Group{&snap.report.Groups[0], &snap.report.Groups[1]}
	for i, parameter := range []string{"a", "b"} {
		name := r.URL.Query().Get(parameter)
		for j := range snap.report.Groups {
			if snap.report.Groups[j].Name == name {
				groups[i] = &snap.report.Groups[j]
			}
		}
		if name != "" && groups[i].Name != name {
			return nil, nil, notFound(at.shown+" has no arm "+quote(name), "")
		}
	}
	if groups[0] == groups[1] {
		return nil, nil, badRequest("a and b: want two arms, not " + quote(groups[0].Name) + " twice")
	}
	return groups[0], groups[1], nil
}

// forest answers with the differences by task, for a plot. The limits of a task are Newcombe's,
// from those of its two rates in the report.
func (s *Server) forest(r *http.Request) (any, error) {
	a, b, err := s.pair(r)
	if err != nil {
		return nil, err
	}
	comparison, err := report.Compare(a, b, (&snapshot{allow: s.cfg.Allow}).compareConfig())
	if err != nil {
		return nil, conflict(err.Error(), "")
	}
	rates := func(g *report.Group) map[string]*stats.Interval {
		byTask := map[string]*stats.Interval{}
		for i := range g.Tasks {
			byTask[g.Tasks[i].TaskID] = g.Tasks[i].Rate
		}
		return byTask
	}
	ratesA, ratesB := rates(a), rates(b)
	rows := []forestRow{}
	for _, task := range comparison.Tasks {
		row := forestRow{
			TaskID: task.TaskID,
			NA:     task.NA,
			NB:     task.NB,
		}
		if task.NA > 0 && task.NB > 0 {
			row.Est = &task.Delta
		}
		if rateA, rateB := ratesA[task.TaskID], ratesB[task.TaskID]; rateA != nil && rateB != nil {
			difference := stats.NewcombeUnpaired(*rateB, *rateA)
			row.Lo, row.Hi, row.Method = &difference.Lo, &difference.Hi, difference.Method
		}
		rows = append(rows, row)
	}
	overall := limits{comparison.Decision.Effect, comparison.Decision.Lo, comparison.Decision.Hi}
	return forestAnswer{version, a.Name, b.Name, rows, overall}, nil
}

// plan answers with what a larger experiment would find and cost.
func (s *Server) plan(r *http.Request) (any, error) {
	a, b, err := s.pair(r)
	if err != nil {
		return nil, err
	}
	effect, err := strconv.ParseFloat(r.URL.Query().Get("effect"), 64)
	if err != nil || !(effect > 0 && effect < 1) {
		return nil, badRequest("effect: must be a difference between 0 and 1, e.g. 0.1")
	}
	runs, err := number(r, "runs", 10_000)
	if err == nil && runs == 0 {
		err = badRequest("runs: want at least 1")
	}
	if err != nil {
		return nil, err
	}
	needed := &forecast.Forecast{Effect: effect}
	if err := needed.UsePilot(a, b); err != nil {
		return nil, conflict(err.Error(), "")
	}
	if err := needed.Compute(forecast.Config{
		Runs:  runs,
		Alpha: stats.DefaultAlpha,
		Power: stats.DefaultPower,
	}); err != nil {
		return nil, conflict(err.Error(), "")
	}
	return needed, nil
}
