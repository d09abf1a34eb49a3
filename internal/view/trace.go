package view

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/ledger"
)

// openTrace prepares the trace that a request names for questions.
func (s *Server) openTrace(r *http.Request, lanes ...string) (*query.Trace, traceFile, error) {
	return s.openNamed(r.Context(), r.URL.Query().Get("trace"), lanes...)
}

func (s *Server) openNamed(ctx context.Context, id string, lanes ...string) (*query.Trace, traceFile, error) {
	file, err := s.tracePath(id)
	if err != nil {
		return nil, file, err
	}
	path := file.path
	info, err := os.Stat(path)
	if err != nil {
		return nil, file, err
	}
	file.bytes, file.modifiedMs = info.Size(), info.ModTime().UnixMilli()
	if isPacked(path) && info.Size() >= unpackFrom {
		if path, err = s.unpack.open(ctx, path, info); err != nil {
			return nil, file, traceProblem(file.path, file.shown, err)
		}
	}
	t, err := query.Open(path, query.Options{
		Dialects: s.cfg.Dialects,
		Prices:   s.cfg.Prices,
		Redactor: s.cfg.Redactor,
		Lanes:    lanes,
		Known:    s.known(file),
	})
	if err != nil {
		return nil, file, traceProblem(path, file.shown, err)
	}
	t.Label = file.shown
	return t, file, nil
}

// traceProblem describes an error of a trace, and names the trace as people know it. A problem of
// the request stays as it is.
func traceProblem(path, shown string, err error) error {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &problem{status: http.StatusGone, message: shown + " no longer exists"}
	}
	text := strings.ReplaceAll(err.Error(), path, shown)
	text = strings.ReplaceAll(text, shown+": "+shown, shown)
	if !strings.Contains(text, shown) {
		text = shown + ": " + text
	}
	return unreadable(errors.New(text))
}

func isPacked(path string) bool {
	return strings.HasSuffix(path, ".zst") || strings.HasSuffix(path, ".gz")
}

// ask waits for a place among the questions in flight: many at once would only slow each other
// down.
func (s *Server) ask(answer endpoint) endpoint {
	return func(r *http.Request) (any, error) {
		select {
		case s.busy <- struct{}{}:
			defer func() { <-s.busy }()
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		return answer(r)
	}
}

// indexing holds the large traces that are read in the background: of each, a glance is kept, and
// where its pages are.
type indexing struct {
	mu   sync.Mutex
	jobs map[string]*scan // by path
}

// scan is the result of a pass over a large trace.
type scan struct {
	stamp    string // the size and time of the file
	done     chan struct{}
	before   *scan // the last pass, when the trace was shorter
	overview *query.Overview
	trace    *query.Trace // as it was read, which knows where its entries are
	err      error
}

// indexFrom is the size from which a trace is read in the background.
const indexFrom = 64 << 20

// known returns the trace of a complete pass over a file that has not changed since.
func (s *Server) known(file traceFile) *query.Trace {
	s.indexing.mu.Lock()
	defer s.indexing.mu.Unlock()
	job := s.indexing.jobs[file.path]
	if job == nil || job.stamp != file.stamp() {
		return nil
	}
	select {
	case <-job.done:
		return job.trace
	default:
		return nil
	}
}

// patience is how long an answer waits for a large trace to be read.
const patience = 300 * time.Millisecond

// scanTrace returns the glance of a large trace, and reads the trace in the background if
// necessary. Meanwhile the answer is the last one, or nil.
func (s *Server) scanTrace(ctx context.Context, file traceFile) (*scan, error) {
	job := s.startScan(file)
	select {
	case <-job.done:
		return job, job.err
	case <-time.After(patience):
		s.indexing.mu.Lock()
		defer s.indexing.mu.Unlock()
		return job.before, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// startScan returns the pass over a trace in progress, else the one that knows it as it is
// now, and begins it if need be: one at a time, however often a trace grows.
func (s *Server) startScan(file traceFile) *scan {
	stamp := file.stamp()
	s.indexing.mu.Lock()
	defer s.indexing.mu.Unlock()
	job := &scan{stamp: stamp, done: make(chan struct{})}
	if known := s.indexing.jobs[file.path]; known != nil {
		select {
		case <-known.done:
			if known.stamp == stamp && known.err == nil {
				return known
			}
			if known.err == nil {
				job.before, known.before = known, nil
			}
		default:
			return known
		}
	}
	if s.indexing.jobs == nil {
		s.indexing.jobs = map[string]*scan{}
	}
	s.indexing.jobs[file.path] = job
	s.work.Go(func() {
		defer close(job.done)
		job.err = s.readAll(s.ctx, file.id, job)
	})
	return job
}

// readAll reads a large trace.
func (s *Server) readAll(ctx context.Context, id string, job *scan) (err error) {
	if job.trace, _, err = s.openNamed(ctx, id); err == nil {
		job.overview, _, err = job.trace.Overview(ctx)
	}
	return err
}

// overviewAnswer is the answer of /api/trace/overview.
type overviewAnswer struct {
	Version    int       `json:"version"`
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Path       string    `json:"path"`
	Bytes      int64     `json:"bytes"`
	ModifiedMs int64     `json:"modifiedMs"`
	Live       bool      `json:"live"`
	Indexing   bool      `json:"indexing"`
	Entries    *int      `json:"entries"`
	Experiment string    `json:"experiment"`
	Cell       *cellName `json:"cell"`
	Verdict    string    `json:"verdict,omitempty"` // of the graders; empty without a record
	// Given is what the model of the attempt was given; nil is unknown.
	Given    *ledger.Treatment `json:"given,omitempty"`
	Overview *query.Overview   `json:"overview"`
	Cost     *query.Cost       `json:"cost"`
	Stats    *statsAnswer      `json:"stats"`
}

// statsAnswer is what fit-trace stats prints, without its row for every message.
type statsAnswer struct {
	Totals     query.Totals      `json:"totals"`
	ModelUsage *query.ModelUsage `json:"modelUsage"`
	Divergence *query.Divergence `json:"divergence"`
}

// cellName names a cell.
type cellName struct {
	Task string `json:"task"`
	Arm  string `json:"arm"`
	Run  int    `json:"run"`
}

func (s *Server) traceOverview(r *http.Request) (any, error) {
	t, file, err := s.openTrace(r)
	if err != nil {
		return nil, err
	}
	answer := overviewAnswer{
		Version:    version,
		ID:         file.id,
		Name:       file.name,
		Path:       file.shown,
		Bytes:      file.bytes,
		ModifiedMs: file.modifiedMs,
		Experiment: file.dir.id,
		Live:       s.isLive(file),
	}
	if file.dir.id != "" {
		var record *ledger.Record
		if answer.Cell, record = s.cellOf(file); record != nil {
			answer.Verdict, answer.Given = record.Verdict, record.Treatment
		}
	}
	if info, err := os.Stat(t.Path); err == nil && info.Size() >= indexFrom && !isPacked(t.Path) {
		return s.largeOverview(r, &answer, file)
	}
	overview, info, err := t.Overview(r.Context())
	if err != nil {
		return nil, traceProblem(t.Path, t.Label, err)
	}
	answer.Overview, answer.Entries = overview, &info.TurnCount
	answer.Live = answer.Live && !hasEnded(overview)
	cost, err := t.Cost(r.Context())
	if err != nil {
		return nil, traceProblem(t.Path, t.Label, err)
	}
	stats, _, err := t.Stats(r.Context())
	if err != nil {
		return nil, traceProblem(t.Path, t.Label, err)
	}
	answer.Cost = cost
	answer.Stats = &statsAnswer{Totals: stats.Totals, ModelUsage: stats.ModelUsage, Divergence: stats.Divergence}
	return answer, nil
}

// largeOverview answers immediately, with what is known about a large trace.
func (s *Server) largeOverview(r *http.Request, answer *overviewAnswer, file traceFile) (any, error) {
	known, err := s.scanTrace(r.Context(), file)
	switch {
	case err != nil:
		return nil, traceProblem(file.path, file.shown, err)
	case known != nil:
		answer.Overview, answer.Entries = known.overview, &known.overview.TurnCount
		return *answer, nil
	}
	answer.Indexing = true // the page asks again
	return *answer, nil
}

// cellOf finds the cell whose attempt left a trace, and the record of that attempt; nil if there is
// none.
func (s *Server) cellOf(file traceFile) (*cellName, *ledger.Record) {
	_, name, _ := strings.Cut(file.id, "/")
	dir := name[:strings.LastIndexByte(name, '/')]
	snap := s.snapshot(file.dir)
	for _, c := range snap.cells {
		for attempt := 1; attempt <= max(1, c.Attempts); attempt++ {
			if c.runDir(attempt) != dir {
				continue
			}
			records := snap.attempts[ledger.Cell{Arm: c.Arm, TaskID: c.Task, RunIndex: c.Run}]
			if i := slices.IndexFunc(records, func(r ledger.Record) bool { return r.Attempt == attempt }); i >= 0 {
				return c.name(), &records[i]
			}
			return c.name(), nil
		}
	}
	return nil, nil
}

// live traces are written to: the last event is not the end of the session. A trace that has not
// grown for a while is not live, however it ended.
const liveFor = 10 * time.Minute

func (s *Server) isLive(file traceFile) bool {
	if isPacked(file.path) || time.Since(time.UnixMilli(file.modifiedMs)) > liveFor {
		return false
	}
	if file.dir.id != "" && !s.isRunning(file.dir) { // nobody writes the traces of a run that has ended
		return false
	}
	return !hasSummary(file.path)
}

// hasEnded reports whether the only lane of a trace says how it ended, as vendors' own traces do:
// they have no summary.
func hasEnded(o *query.Overview) bool { return o.Summary.Result != "unknown" && len(o.Lanes) < 2 }

// hasSummary reports whether the last lines of a trace hold the end of its session.
func hasSummary(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false
	}
	end := make([]byte, min(8<<10, info.Size()))
	if _, err := file.ReadAt(end, info.Size()-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	return strings.Contains(string(end), `"type":"summary"`)
}

// pageSize is the number of entries on a page.
const pageSize = 100

// pageAnswer is the answer of /api/trace/page.
type pageAnswer struct {
	Version int     `json:"version"`
	Page    int     `json:"page"`
	Items   []entry `json:"items"`
}

func (s *Server) tracePage(r *http.Request, t *query.Trace, page int) (any, error) {
	items, err := window(r.Context(), t, page*pageSize, (page+1)*pageSize)
	return pageAnswer{Version: version, Page: page, Items: items}, err
}

// number returns a parameter that is a number from 0 on.
func number(r *http.Request, name string, limit int) (int, error) {
	text := r.URL.Query().Get(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > limit {
		return 0, badRequest(name + "=" + quote(text) + ": want a number from 0 to " + strconv.Itoa(limit))
	}
	return n, nil
}

func (s *Server) traceEntry(r *http.Request, t *query.Trace, n int) (any, error) {
	found, err := t.Entry(r.Context(), n)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, notFound("the trace has no entry "+strconv.Itoa(n), "")
	}
	return map[string]any{"version": version, "item": show(found, 0)}, nil
}

// traceEntries answers with single entries, for views that leave others out.
func (s *Server) traceEntries(r *http.Request) (any, error) {
	var wanted []int
	for text := range strings.SplitSeq(r.URL.Query().Get("n"), ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || len(wanted) >= pageSize {
			return nil, badRequest("n: want at most " + strconv.Itoa(pageSize) +
				" numbers of entries, with commas between")
		}
		wanted = append(wanted, n)
	}
	t, _, err := s.openTrace(r)
	if err != nil {
		return nil, err
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	items := []entry{}
	for len(wanted) > 0 { // neighbours are read together
		run := 1
		for run < len(wanted) && wanted[run] < wanted[0]+pageSize {
			run++
		}
		part, err := window(r.Context(), t, wanted[0], wanted[run-1]+1)
		if err != nil {
			return nil, traceProblem(t.Path, t.Label, err)
		}
		for i := range part {
			if slices.Contains(wanted[:run], part[i].Index) {
				items = append(items, part[i])
			}
		}
		wanted = wanted[run:]
	}
	return map[string]any{"version": version, "items": items}, nil
}
