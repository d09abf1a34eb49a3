package versus

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/stats"
)

// agent returns the agent behind the name of an arm.
func (b *builder) agent(of *arm) Agent {
	provenance := of.Provenance
	agent := Agent{
		ID:      provenance.Agent,
		Arm:     of.Name,
		Version: provenance.AgentVersion,
		Model:   provenance.Model,
		Argv:    []string{},
	}
	if s := b.source.plan; s != nil {
		for _, arm := range s.Arms {
			if arm.Name == provenance.Arm {
				agent.ID = cmp.Or(agent.ID, arm.Agent)
				agent.Version = cmp.Or(agent.Version, arm.AgentVersion)
				agent.Model = cmp.Or(agent.Model, arm.Model)
				agent.AuthMode = arm.Auth
			}
		}
	}
	for _, run := range of.runs {
		session := &run.attempt.Run.Session
		agent.Model = cmp.Or(agent.Model, session.Model)
		if process := session.Process; process != nil && agent.Binary == "" && process.Binary != "" {
			agent.Binary, agent.SHA256, agent.Argv = process.Binary, process.BinarySHA256, orEmpty(process.Argv)
			agent.AuthMode = cmp.Or(process.Auth, agent.AuthMode)
		}
	}
	return agent
}

// summary returns one arm over all its runs.
func (b *builder) summary(g *arm) (AgentSummary, error) {
	s := AgentSummary{
		Agent:     g.Provenance.Agent,
		Arm:       g.Name,
		NTasks:    len(g.Tasks),
		NRuns:     g.Totals.Runs,
		Planned:   g.Totals.Planned,
		Missing:   g.Totals.Missing,
		Retried:   g.Totals.Retried,
		Limits:    g.Limits,
		PassRate:  g.PassRate,
		Bounds:    g.Bounds,
		Score:     g.MeanScore,
		PassAtK:   g.PassAtK,
		PassHatK:  map[string]stats.AtK{},
		BoundsOf:  maps.Clone(g.BoundsOf),
		CostUSD:   g.Totals.CostUSD,
		Integrity: map[string]int{},
		Errors:    map[string]int{},
		Judging:   map[string]Judged{},
		Differs:   g.Differs,
		Treatment: g.Treatment,
		Withheld:  g.Withheld,
		Warnings:  orEmpty(g.Warnings),
	}
	var err error
	if s.Corrected, err = b.corrections(g); err != nil {
		return AgentSummary{}, err
	}
	var tallies []stats.Tally
	for i := range g.Tasks {
		if task := &g.Tasks[i]; task.N > 0 {
			tallies = append(tallies, stats.Tally{N: task.N, C: task.C})
		}
	}
	if len(tallies) > 0 {
		for _, k := range b.ks() {
			at, err := stats.OverTasks(tallies, k, stats.DefaultLevel, stats.PassHatK)
			if err != nil {
				return AgentSummary{}, err
			}
			s.PassHatK[strconv.Itoa(k)] = at
			bounds, err := report.BoundsAtK(g.Passes(), func(tasks [][]float64) (stats.AtK, error) {
				return stats.OverTasks(report.TalliesOf(tasks), k, stats.DefaultLevel, stats.PassHatK)
			})
			if err != nil {
				return AgentSummary{}, err
			}
			if bounds != nil {
				s.BoundsOf["pass^"+strconv.Itoa(k)] = *bounds
			}
		}
	}
	g.addUp(&s)
	return s, nil
}

// addUp counts over the cells of an arm.
func (a *arm) addUp(s *AgentSummary) {
	var coverages []float64
	for _, cell := range a.runs {
		switch cell.Status {
		case evidence.StatusEnvError:
			s.ExcludedEnv++
		case evidence.StatusDisqualified:
			s.Disqualified++
		case evidence.StatusTimeout:
			s.Timeouts++
		case evidence.StatusOK:
		}
		for _, flag := range cell.Integrity {
			s.Integrity[flag.Kind]++
		}
		for _, cause := range cell.Errors {
			s.Errors[cause.Category]++
		}
		s.DroppedClaims += cell.DroppedClaims
		s.UnseenEdits += len(cell.Unseen)
		if cell.scored() {
			coverages = append(coverages, cell.Coverage)
		}
		for j := range cell.Verdicts {
			s.judged(&cell.Verdicts[j])
		}
	}
	s.Coverage = ofSome(coverages, stats.Mean)
	s.Blended, s.BlendedBounds = a.blended()
	s.Efficiency = a.efficiency()
}

// blended returns the mean score, and what it would be for all that runs without an outcome and
// dimensions that the panel left undecided could have been.
func (a *arm) blended() (mean *float64, bounds *report.Bounds) {
	over := func(score func(*Cell) *float64) (*float64, *report.Bounds) {
		return report.MeanOverRuns(a.Outcomes(func(i int) report.Observation {
			value := score(a.runs[i].Cell)
			if value == nil || a.runs[i].Status == evidence.StatusEnvError {
				return report.Observation{}
			}
			return report.Observation{Value: *value, Known: true}
		}))
	}
	mean, bounds = over(func(c *Cell) *float64 { return c.Blended })
	if !slices.ContainsFunc(a.runs, func(r run) bool { return r.undecided }) {
		return mean, bounds
	}
	worst, low := over(func(c *Cell) *float64 { return c.least })
	best, high := over(func(c *Cell) *float64 { return c.most })
	bounds = &report.Bounds{Worst: *worst, Best: *best}
	if low != nil {
		bounds.Worst, bounds.Best = low.Worst, high.Best
	}
	bounds.Lo, bounds.Hi = bounds.Worst, bounds.Best
	return mean, bounds
}

// scored reports whether the cell has a score. A disqualified one has 0; missing data have none.
func (c *Cell) scored() bool { return c.Blended != nil && c.Status != evidence.StatusEnvError }

func (s *AgentSummary) judged(verdict *judge.PanelVerdict) {
	j := s.Judging[verdict.Dimension]
	switch {
	case verdict.Result == nil:
		j.Undecided++
	case *verdict.Result == judge.Pass:
		j.Pass++
	default:
		j.Fail++
	}
	j.Abstained += verdict.Abstained
	s.Judging[verdict.Dimension] = j
}

// efficiency has the medians over the runs with a verdict.
func (a *arm) efficiency() AgentEfficiency {
	e := AgentEfficiency{ToolCalls: map[string]float64{}}
	var runs []*evidence.Efficiency
	for _, run := range a.runs {
		if run.Resolved != nil {
			runs = append(runs, &run.attempt.Run.Efficiency)
		}
	}
	over := func(value func(*evidence.Efficiency) *float64) *float64 {
		var known []float64
		for _, run := range runs {
			if v := value(run); v != nil {
				known = append(known, *v)
			}
		}
		return ofSome(known, stats.Median)
	}
	whole := func(value func(*evidence.Efficiency) int64) *float64 {
		return over(func(e *evidence.Efficiency) *float64 { return new(float64(value(e))) })
	}
	e.WallClockMs = whole(func(e *evidence.Efficiency) int64 { return e.WallClockMs })
	e.Turns = whole(func(e *evidence.Efficiency) int64 { return int64(e.Turns) })
	e.CostUSD = over(func(e *evidence.Efficiency) *float64 { return e.Usage.CostUSD })
	e.InputTokens = whole(func(e *evidence.Efficiency) int64 { return e.Usage.InputTokens })
	e.OutputTokens = whole(func(e *evidence.Efficiency) int64 { return e.Usage.OutputTokens })
	e.CacheReadTokens = whole(func(e *evidence.Efficiency) int64 { return e.Usage.CacheReadTokens })
	e.CacheWriteTokens = whole(func(e *evidence.Efficiency) int64 { return e.Usage.CacheWriteTokens })
	e.CacheHitRatio = over(func(e *evidence.Efficiency) *float64 { return e.CacheHitRatio })
	e.EditsAttempted = whole(func(e *evidence.Efficiency) int64 { return int64(e.EditsAttempted) })
	e.EditsFailed = whole(func(e *evidence.Efficiency) int64 { return int64(e.EditsFailed) })
	e.ExplorationShare = over(func(e *evidence.Efficiency) *float64 { return e.ExplorationShare })
	e.FirstEditMs = over(func(e *evidence.Efficiency) *float64 { return asFloat(e.FirstEditMs) })
	e.GreenMs = over(func(e *evidence.Efficiency) *float64 { return asFloat(e.GreenMs) })
	for _, run := range runs {
		for kind, calls := range run.ToolCalls {
			e.ToolCalls[kind] += float64(calls) / float64(len(runs))
		}
	}
	return e
}

func asFloat(value *int64) *float64 {
	if value == nil {
		return nil
	}
	return new(float64(*value))
}

// ofSome is a mean or a median, nil of nothing.
func ofSome(values []float64, of func([]float64) float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	return new(of(values))
}
