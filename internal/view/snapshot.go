package view

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/ledger"
)

// snapshot is a run directory as it was when its files had a stamp. It does not change.
type snapshot struct {
	at    location
	stamp string
	allow []string // the reasons to withhold claims that the user accepts
	found *results.Results
	// signers say who signed the ledgers.
	signers []ledger.Signer
	plan    *experiment.Plan    // nil where there is none that can be read
	process *experiment.Process // the last one that worked here; nil is unknown
	// report has the single runs; comparison and family are its answer.
	report     *report.Report
	comparison *report.Comparison
	family     *report.MultiComparison
	// problem says what is wrong with the directory as a whole, compareProblem why there is no
	// comparison.
	problem        string
	compareProblem string
	cells          []*cell
	byKey          map[ledger.Cell]*cell
	attempts       map[ledger.Cell][]ledger.Record
}

// shownK are the k of pass@k, as fit-benchmark report has them by default.
var shownK = []int{1, 3, 5}

// stampOf changes whenever a file that a snapshot is made from does.
func stampOf(dir string) string {
	var stamp strings.Builder
	for _, name := range []string{
		experiment.LedgerFile, ledger.NoteFile(experiment.LedgerFile), experiment.PlanFile,
		experiment.AttemptsFile, experiment.LabelsFile, evidence.TasksFile, evidence.ReviewsFile,
		judge.SentencesFile,
	} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			fmt.Fprintf(&stamp, "%d.%d.%s ", info.Size(), info.ModTime().UnixNano(), info.Mode().Type())
		} else {
			stamp.WriteString("- ")
		}
	}
	return stamp.String()
}

// load reads a run directory. Problems are part of the answer.
func (server *Server) load(at location) *snapshot {
	if len(at.sides) > 0 {
		return server.loadComparison(at)
	}
	allow := server.cfg.Allow
	s := &snapshot{
		at:       at,
		allow:    allow,
		stamp:    stampOf(at.path),
		byKey:    map[ledger.Cell]*cell{},
		attempts: map[ledger.Cell][]ledger.Record{},
	}
	err := irregular(at)
	if err != nil {
		s.found, s.problem = &results.Results{}, err.Error()
		return s
	}
	if s.plan, err = experiment.ReadPlan(at.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.problem = plain(at, err)
	}
	if s.found, err = results.Load([]string{at.path}, true, nil); err != nil {
		s.found = &results.Results{}
		s.problem = plain(at, err)
	}
	for _, r := range s.found.Records {
		s.attempts[r.Cell()] = append(s.attempts[r.Cell()], r)
	}
	s.found.Allow, s.signers = allow, s.found.Signers(server.key())
	if len(s.found.Records) > 0 || s.found.NothingPlanned() {
		if s.report, err = s.found.Build(server.ctx, server.auditor(), shownK, true); err != nil {
			s.problem = plain(at, err)
		}
	}
	if s.report != nil {
		s.answer()
	}
	started, err := experiment.ReadStarts(at.path)
	if err != nil && s.problem == "" {
		s.problem = plain(at, err)
	}
	if s.process, err = experiment.ReadProcess(at.path); err != nil && s.problem == "" {
		s.problem = plain(at, err)
	}
	s.grid(started)
	return s
}

// compare makes an experiment of groups that were measured in several run directories.
func compare(groups []*report.Group, allow []string) *snapshot {
	names := make([]string, len(groups))
	whole := &report.Report{Version: report.Version}
	s := &snapshot{
		allow:    allow,
		found:    &results.Results{},
		report:   whole,
		byKey:    map[ledger.Cell]*cell{},
		attempts: map[ledger.Cell][]ledger.Record{},
	}
	for i, g := range groups {
		names[i] = g.Name
		for _, r := range g.Records() {
			r.Arm = g.Name
			s.found.Records = append(s.found.Records, r)
			s.attempts[r.Cell()] = append(s.attempts[r.Cell()], r)
		}
		whole.Groups = append(whole.Groups, *g)
	}
	s.at = location{
		id:    locationID("compare\x00" + strings.Join(names, "\x00")),
		shown: strings.Join(names, " against "),
	}
	s.answer()
	for i := range whole.Groups { // the cells are found by the names that are shown
		whole.Groups[i].Provenance.Arm = whole.Groups[i].Name
	}
	s.grid(nil)
	return s
}

// answer compares the arms.
func (s *snapshot) answer() {
	var err error
	s.comparison, s.family, err = results.Answer(s.report, s.compareConfig())
	if err != nil {
		s.compareProblem = plain(s.at, err)
	}
}

// compareConfig says how arms are compared.
func (s *snapshot) compareConfig() report.CompareConfig {
	return report.CompareConfig{Seed: 1, Allow: s.allow}
}

// plain returns the first line of an error, with the run directory named as people know it; the
// other lines are advice for the terminal.
func plain(at location, err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return shown(at, text)
}

// shown names a run directory in a text as people know it.
func shown(at location, text string) string { return strings.ReplaceAll(text, at.path, at.shown) }

// compact returns the report without the single runs, as report --detail compact prints it.
func (s *snapshot) compact() *report.Report {
	if s.report == nil {
		return nil
	}
	short := *s.report
	short.Groups = slices.Clone(short.Groups)
	for i := range short.Groups {
		short.Groups[i].Tasks = withoutRuns(short.Groups[i].Tasks)
	}
	short.Tasks = withoutRuns(short.Tasks)
	return &short
}

func withoutRuns(tasks []report.Task) []report.Task {
	tasks = slices.Clone(tasks)
	for i := range tasks {
		tasks[i].Runs = nil
	}
	return tasks
}

// cache keeps what was read last.
type cache struct {
	mu        sync.Mutex
	places    map[string]location
	snapshots []*snapshot // the newest last
	listed    map[string]listed
	reading   map[string]*sync.Mutex
}

// keptSnapshots bounds how many run directories are kept in memory.
const keptSnapshots = 4

// listed is an entry of the list of experiments.
type listed struct {
	stamp string
	entry listEntry
}

func (c *cache) location(id string) (location, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.places[id]
	return at, ok
}

func (c *cache) remember(found []location) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places = map[string]location{}
	for _, at := range found {
		c.places[at.id] = at
	}
}

// snapshot returns the run directory that was read when its files had a stamp; nil if it was not.
func (c *cache) snapshot(id, stamp string) *snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, known := range c.snapshots {
		if known.at.id == id && known.stamp == stamp {
			return known
		}
	}
	return nil
}

// loading is held while a run directory is read.
func (c *cache) loading(id string) *sync.Mutex {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading == nil {
		c.reading = map[string]*sync.Mutex{}
	}
	if c.reading[id] == nil {
		c.reading[id] = &sync.Mutex{}
	}
	return c.reading[id]
}

// snapshot returns a run directory as it is now.
func (s *Server) snapshot(at location) *snapshot {
	if s.compared != nil && at.id == s.compared.at.id {
		return s.compared
	}
	stamp := at.stamp()
	c := &s.cache
	if known := c.snapshot(at.id, stamp); known != nil {
		return known
	}
	loading := c.loading(at.id) // many pages at once read it once
	loading.Lock()
	defer loading.Unlock()
	if known := c.snapshot(at.id, stamp); known != nil {
		return known
	}
	fresh := s.load(at)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snapshots = slices.DeleteFunc(c.snapshots, func(known *snapshot) bool { return known.at.id == at.id })
	c.snapshots = append(c.snapshots, fresh)
	if len(c.snapshots) > keptSnapshots {
		c.snapshots = slices.Delete(c.snapshots, 0, 1)
	}
	return fresh
}
