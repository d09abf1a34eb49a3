package view

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/notes"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// The states of a run directory.
const (
	runRunning    = "running"
	runComplete   = "complete"
	runIncomplete = "incomplete"
	runDamaged    = "damaged"
	runEmpty      = "empty"
)

// The kinds of run directories.
const (
	kindBenchmark = "benchmark"
	kindVersus    = "versus"
	kindCompared  = "comparison" // of two experiments
)

// listEntry is one run directory in the list of experiments.
type listEntry struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Dir          string    `json:"dir"`
	Kind         string    `json:"kind"`
	State        string    `json:"state"`
	Problem      string    `json:"problem,omitempty"`
	Stopped      string    `json:"stopped,omitempty"` // why its last process ended before it was complete
	CreatedMs    int64     `json:"createdMs"`
	UpdatedMs    int64     `json:"updatedMs"`
	Family       string    `json:"family"`
	Model        string    `json:"model"`
	Tasks        int       `json:"tasks"`
	Runs         int       `json:"runs"`
	Planned      int       `json:"planned"`
	Done         int       `json:"done"`
	Passed       int       `json:"passed"`
	Failed       int       `json:"failed"`
	Errors       int       `json:"errors"`
	InFlight     int       `json:"inFlight"`
	CostUSD      *float64  `json:"costUsd"`
	KnownCostUSD float64   `json:"knownCostUsd"`
	ElapsedMs    int64     `json:"elapsedMs"`
	Arms         []listArm `json:"arms"`
	Claim        string    `json:"claim"`
	Sentence     string    `json:"sentence"`
}

// listArm is an arm in the list of experiments.
type listArm struct {
	Name    string          `json:"name"`
	Runs    int             `json:"runs"`
	Passed  int             `json:"passed"`
	Rate    *stats.Interval `json:"rate"`
	CostUSD *float64        `json:"costUsd"`
}

// listTrace is a trace outside of run directories.
type listTrace struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Path       string `json:"path"`
	Bytes      int64  `json:"bytes"`
	ModifiedMs int64  `json:"modifiedMs"`
}

// experimentsAnswer is the answer of /api/experiments.
type experimentsAnswer struct {
	Version     int         `json:"version"`
	Roots       []string    `json:"roots"`
	Experiments []listEntry `json:"experiments"`
	Traces      []listTrace `json:"traces"`
}

func (s *Server) experiments(*http.Request) (any, error) {
	answer := experimentsAnswer{
		Version:     version,
		Roots:       []string{},
		Experiments: []listEntry{},
		Traces:      []listTrace{},
	}
	for _, r := range s.roots {
		answer.Roots = append(answer.Roots, r.given)
	}
	directories, traces := s.locations()
	s.cache.remember(directories)
	for _, at := range directories {
		answer.Experiments = append(answer.Experiments, s.entry(at))
	}
	slices.SortStableFunc(answer.Experiments, func(a, b listEntry) int { return cmp.Compare(b.UpdatedMs, a.UpdatedMs) })
	for _, at := range traces {
		one := listTrace{ID: at.id, Name: filepath.Base(at.path), Path: at.shown}
		if info, err := os.Stat(at.path); err == nil {
			one.Bytes, one.ModifiedMs = info.Size(), info.ModTime().UnixMilli()
		}
		answer.Traces = append(answer.Traces, one)
	}
	return answer, nil
}

// entry returns a run directory in the list, as it is now.
func (s *Server) entry(at location) listEntry {
	stamp := at.stamp()
	status := s.pollStatus(context.Background(), at)
	s.cache.mu.Lock()
	known, ok := s.cache.listed[at.id]
	s.cache.mu.Unlock()
	if !ok || known.stamp != stamp {
		known = listed{stamp: stamp, entry: s.snapshot(at).entry()}
		s.cache.mu.Lock()
		if s.cache.listed == nil {
			s.cache.listed = map[string]listed{}
		}
		s.cache.listed[at.id] = known
		s.cache.mu.Unlock()
	}
	entry := known.entry
	if status != nil {
		entry.State, entry.Problem, entry.Stopped, entry.InFlight = runRunning, "", "", len(status.Running)
	}
	return entry
}

// entry makes the entry of a directory in which no process works.
func (s *snapshot) entry() listEntry {
	entry := listEntry{
		ID:      s.at.id,
		Name:    s.at.name(),
		Dir:     s.at.shown,
		Kind:    s.kind(),
		Problem: s.problem,
		Arms:    []listArm{},
		Planned: len(s.cells),
	}
	if s.plan != nil {
		entry.CreatedMs, entry.Family = s.plan.CreatedMs, s.plan.Family.Name
		entry.Tasks, entry.Runs = len(s.plan.Tasks), s.plan.Runs
	}
	s.countCells(&entry)
	s.addTimes(&entry)
	if s.report != nil {
		entry.CostUSD, entry.KnownCostUSD = s.report.Totals.CostUSD, s.report.Totals.KnownCostUSD
		models := map[string]bool{}
		for i := range s.report.Groups {
			group := &s.report.Groups[i]
			models[group.Provenance.Model] = true
			entry.Model = group.Provenance.Model
			entry.Arms = append(entry.Arms, listArm{
				Name:    group.Name,
				Runs:    group.Totals.Runs,
				Passed:  group.Totals.Passed,
				Rate:    group.PassRate,
				CostUSD: group.Totals.CostUSD,
			})
		}
		if len(models) > 1 {
			entry.Model = ""
		}
	}
	if s.comparison != nil {
		entry.Claim, entry.Sentence = string(s.comparison.Decision.Claim), s.comparison.Decision.Sentence
	}
	entry.State = s.state(&entry)
	if s.process != nil && entry.State != runComplete {
		entry.Stopped = s.process.Why()
	}
	return entry
}

// name returns the last part of the directory.
func (at *location) name() string {
	if at.path == "" {
		return at.shown
	}
	return filepath.Base(at.path)
}

// state returns the state of a directory in which no process works.
func (s *snapshot) state(entry *listEntry) string {
	switch {
	case s.problem != "":
		return runDamaged
	case len(s.found.Problems) > 0:
		entry.Problem = "the ledger fails verification: " + report.Count(len(s.found.Problems), "line") +
			" left out; the numbers are those of the lines that are left"
		return runDamaged
	case len(s.found.Records) == 0:
		entry.Problem = "nothing is recorded yet"
		return runEmpty
	case s.plan != nil && entry.Done < entry.Planned || entry.Errors > 0:
		return runIncomplete
	}
	return runComplete
}

func (s *snapshot) countCells(entry *listEntry) {
	for _, c := range s.cells {
		switch c.State {
		case statePass:
			entry.Passed++
		case stateFail:
			entry.Failed++
		case stateError:
			entry.Errors++
		}
	}
	entry.Done = entry.Passed + entry.Failed + entry.Errors
}

func (s *snapshot) addTimes(entry *listEntry) {
	first := int64(0)
	for i := range s.found.Records {
		r := &s.found.Records[i]
		if first == 0 || r.StartMs > 0 && r.StartMs < first {
			first = r.StartMs
		}
		entry.UpdatedMs = max(entry.UpdatedMs, r.EndMs)
	}
	if first > 0 && entry.UpdatedMs > first {
		entry.ElapsedMs = entry.UpdatedMs - first
	}
	entry.UpdatedMs = max(entry.UpdatedMs, entry.CreatedMs)
}

// kind recognises a head to head by the tasks beside its results, which its judges read.
func (s *snapshot) kind() string {
	if len(s.at.sides) > 0 {
		return kindCompared
	}
	if _, err := os.Lstat(filepath.Join(s.at.path, evidence.TasksFile)); err == nil && s.at.path != "" {
		return kindVersus
	}
	return kindBenchmark
}

// experimentAnswer is the answer of /api/experiments/{x}.
type experimentAnswer struct {
	Version         int                     `json:"version"`
	Experiment      listEntry               `json:"experiment"`
	Problems        []ledger.Problem        `json:"problems"`
	Notes           []string                `json:"notes"`
	Report          *report.Report          `json:"report"`
	Comparison      *report.Comparison      `json:"comparison"`
	Family          *report.MultiComparison `json:"family"`
	ComparisonError string                  `json:"comparisonError"`
	Plan            *planAnswer             `json:"plan"`
	FirstLines      []string                `json:"firstLines,omitempty"` // below the sentence, as reports have them
	Repeat          string                  `json:"repeat"`
	Continue        string                  `json:"continue,omitempty"` // the command, where it stopped
	Live            *liveStatus             `json:"live"`
	Views           []note                  `json:"views"`           // that somebody saved
	Skill           string                  `json:"skill,omitempty"` // that is tested
}

// planAnswer is the part of a plan that a page shows.
type planAnswer struct {
	ID        string    `json:"id"`
	Seed      uint64    `json:"seed"`
	Runs      int       `json:"runs"`
	Tasks     []string  `json:"tasks"`
	Arms      []planArm `json:"arms"`
	Isolation string    `json:"isolation"`
	Network   string    `json:"network"`
	Judge     string    `json:"judge"`
	Family    string    `json:"family"`
	Origin    string    `json:"origin"`
	Revision  string    `json:"revision"`
}

type planArm struct {
	Name         string `json:"name"`
	Agent        string `json:"agent"`
	AgentVersion string `json:"agentVersion"`
	Model        string `json:"model"`
	Hash         string `json:"hash"`
	Skills       string `json:"skills"`
	Profile      string `json:"profile"`
}

func (s *Server) experiment(r *http.Request, at location) (any, error) {
	snap := s.snapshot(at)
	answer := experimentAnswer{
		Version:         version,
		Experiment:      s.entry(at),
		Problems:        []ledger.Problem{},
		Report:          snap.compact(),
		Comparison:      snap.comparison,
		Family:          snap.family,
		ComparisonError: snap.compareProblem,
		Plan:            snap.planned(),
		FirstLines:      snap.firstLines(),
		Repeat:          snap.repeat(),
		Skill:           testedSkill(at),
	}
	for _, p := range snap.found.Problems {
		answer.Problems = append(answer.Problems, p.Problem)
	}
	answer.Continue = snap.continuation(&answer.Experiment)
	answer.Notes = snap.notes()
	answer.Live = s.status(r.Context(), at)
	views, err := s.notesOf(at, func(n *notes.Note) bool { return n.View != "" })
	if err != nil {
		answer.Notes = append(answer.Notes, err.Error())
	}
	answer.Views = views
	return answer, nil
}

// firstLines returns what the commands print right below their sentence.
func (s *snapshot) firstLines() []string {
	switch {
	case s.comparison != nil:
		return s.comparison.FirstLines
	case s.family != nil:
		return s.family.FirstLines
	case s.report != nil && len(s.report.Groups) == 1:
		return report.FirstLines(&s.report.Groups[0])
	}
	return nil
}

// notes lists the results that are not signed by the user, as the commands do.
func (s *snapshot) notes() []string {
	notes := []string{}
	for _, found := range s.signers {
		if found.Note != "" {
			notes = append(notes, shown(s.at, found.Note))
		}
	}
	return notes
}

func (s *snapshot) planned() *planAnswer {
	p := s.plan
	if p == nil {
		return nil
	}
	answer := &planAnswer{
		ID:        p.ID,
		Seed:      p.Seed,
		Runs:      p.Runs,
		Tasks:     []string{},
		Arms:      []planArm{},
		Isolation: p.Isolation,
		Network:   p.Network,
		Judge:     strings.TrimSpace(p.Judge.Agent + " " + p.Judge.Model),
		Family:    p.Family.Name,
		Origin:    p.Family.Origin,
		Revision:  p.Family.Revision,
	}
	for i := range p.Tasks {
		answer.Tasks = append(answer.Tasks, p.Tasks[i].ID)
	}
	for i := range p.Arms {
		arm := &p.Arms[i]
		answer.Arms = append(answer.Arms, planArm{
			Name:         arm.Name,
			Agent:        arm.Agent,
			AgentVersion: arm.AgentVersion,
			Model:        arm.Model,
			Hash:         arm.Hash,
			Skills:       arm.Skills,
			Profile:      arm.Profile,
		})
	}
	if s.report != nil && len(s.report.Groups) > 0 { // the actual values win over the command's
		answer.Isolation = cmp.Or(answer.Isolation, s.report.Groups[0].Provenance.Isolation)
		answer.Network = cmp.Or(answer.Network, s.report.Groups[0].Provenance.Network)
	}
	return answer
}
