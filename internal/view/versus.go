package view

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report/versus"
	"github.com/fit-eval/fit/ledger"
)

// contest is a run directory read as a head to head. Its report is made once.
type contest struct {
	stamp  string
	source *versus.Source
	report func() ([]byte, error)
}

// contests keeps the one that was asked for last.
type contests struct {
	mu   sync.Mutex
	last map[string]*contest
}

// contest reads a run directory as a head to head.
func (s *Server) contest(ctx context.Context, at location) (*contest, error) {
	stamp := stampOf(at.path) + repliesStamp(at.path)
	s.contests.mu.Lock()
	defer s.contests.mu.Unlock()
	if known := s.contests.last[at.id]; known != nil && known.stamp == stamp {
		return known, nil
	}
	if err := irregular(at); err != nil {
		return nil, unreadable(err)
	}
	options := versus.Options{Dialects: s.cfg.Dialects, Prices: s.cfg.Prices, Allow: s.cfg.Allow}
	source, err := versus.Open(ctx, at.path, options)
	if err != nil {
		return nil, unreadable(fmt.Errorf("%s", plain(at, err)))
	}
	fresh := &contest{stamp: stamp, source: source, report: sync.OnceValues(func() ([]byte, error) {
		return robot(source)
	})}
	s.contests.last = map[string]*contest{at.id: fresh}
	return fresh, nil
}

// repliesStamp changes when judges have replied.
func repliesStamp(dir string) string {
	info, err := os.Lstat(filepath.Join(dir, "replies.jsonl"))
	if err != nil {
		return "-"
	}
	return fmt.Sprintf("%d.%d", info.Size(), info.ModTime().UnixNano())
}

// versusReport answers with the report of a head to head, as fit versus report --robot prints it.
func (s *Server) versusReport(r *http.Request, at location) (any, error) {
	content, err := s.contestReport(r.Context(), at)
	return map[string]any{"version": version, "report": content}, err
}

// contestReport returns the report of a head to head as JSON.
func (s *Server) contestReport(ctx context.Context, at location) (json.RawMessage, error) {
	c, err := s.contest(ctx, at)
	if err != nil {
		return nil, err
	}
	content, err := c.report()
	if err != nil {
		return nil, unreadable(err)
	}
	return content, nil
}

func robot(source *versus.Source) ([]byte, error) {
	built, err := source.Report()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = built.Robot(&out)
	return out.Bytes(), err
}

// labelled is the number of labels of a dimension.
type labelled struct {
	Name   string `json:"name"`
	Pass   int    `json:"pass"`
	Fail   int    `json:"fail"`
	Left   int    `json:"left"`
	Status string `json:"status"`
}

// blindItem is a run to be labelled. It names neither who did the work nor what judges say.
type blindItem struct {
	Item     string `json:"item"`
	Evidence string `json:"evidence"`
	Question string `json:"question"`
	Guide    string `json:"guide"` // how judges are told to answer it
}

// labelsAnswer is the answer of /api/experiments/{x}/labels.
type labelsAnswer struct {
	Version    int        `json:"version"`
	Dimensions []labelled `json:"dimensions"`
	Item       *blindItem `json:"item"`
}

func (s *Server) labels(r *http.Request, at location) (any, error) {
	skip := strings.Split(r.URL.Query().Get("skip"), ",")
	if r.URL.Query().Get("dimension") == dimensionSentences {
		return s.nextSentence(r.Context(), at, skip)
	}
	judgement, err := s.judgement(r.Context(), at)
	if err != nil {
		return nil, err
	}
	return s.nextLabel(judgement, r.URL.Query().Get("dimension"), skip)
}

// judgement reads the verdicts of a run directory's judges, and people's labels.
func (s *Server) judgement(ctx context.Context, at location) (*versus.Judgement, error) {
	c, err := s.contest(ctx, at)
	if err != nil {
		return nil, err
	}
	judgement, err := c.source.Judgement()
	switch {
	case err != nil:
		return nil, unreadable(err)
	case judgement == nil:
		return nil, conflict("nobody has judged "+at.shown+" yet",
			"fit versus judge "+shellQuote(at.shown)+" --panel panel.yaml")
	}
	return judgement, nil
}

func (s *Server) nextLabel(judgement *versus.Judgement, dimension string, skip []string) (*labelsAnswer, error) {
	if !slices.Contains(evidence.Dimensions(), dimension) {
		return nil, badRequest("dimension=" + quote(dimension) + ": must be one of " +
			strings.Join(evidence.Dimensions(), ", "))
	}
	answer := &labelsAnswer{Version: version, Dimensions: []labelled{}}
	for _, name := range evidence.Dimensions() {
		pass, fail := judgement.Labels.Count(name)
		one := labelled{
			Name:   name,
			Pass:   pass,
			Fail:   fail,
			Status: "uncalibrated",
		}
		for i := range judgement.Calibrations {
			if c := &judgement.Calibrations[i]; c.Dimension == name && c.Valid() {
				one.Status = "calibrated"
			}
		}
		for i := range judgement.Subjects {
			id := s.blindID(name, &judgement.Subjects[i])
			item, open := unlabelled(judgement, i, name)
			if !open {
				continue
			}
			one.Left++
			// In the order of these names: the order of the directory would reveal whose run it is.
			first := answer.Item == nil || id < answer.Item.Item
			if name == dimension && first && !slices.Contains(skip, id) {
				answer.Item = &blindItem{Item: id, Evidence: item.Evidence}
				answer.Item.Question, answer.Item.Guide = item.Asks()
			}
		}
		answer.Dimensions = append(answer.Dimensions, one)
	}
	return answer, nil
}

// unlabelled returns a run to be labelled, unless it has its label.
func unlabelled(judgement *versus.Judgement, i int, dimension string) (judge.Item, bool) {
	return judgement.Labels.Next(judgement.Subjects[i:i+1], judgement.Settings, dimension, 0)
}

// blindID names a run without identifying it.
func (s *Server) blindID(dimension string, subject *judge.Subject) string {
	mac := hmac.New(sha256.New, []byte(s.session))
	fmt.Fprintf(mac, "%q %s", dimension, subject.Run.Key)
	return hex.EncodeToString(mac.Sum(nil)[:12])
}

// label keeps a person's verdict and shows the next run.
func (s *Server) label(r *http.Request, at location) (any, error) {
	var given struct {
		Dimension string `json:"dimension"`
		Item      string `json:"item"`
		Pass      *bool  `json:"pass"`
	}
	if err := json.NewDecoder(r.Body).Decode(&given); err != nil || given.Pass == nil {
		return nil, badRequest(`want {"dimension":…,"item":…,"pass":true or false}`)
	}
	if given.Dimension == dimensionSentences {
		return s.labelSentence(r.Context(), at, given.Item, *given.Pass)
	}
	judgement, err := s.judgement(r.Context(), at)
	if err != nil {
		return nil, err
	}
	for i := range judgement.Subjects {
		if s.blindID(given.Dimension, &judgement.Subjects[i]) != given.Item {
			continue
		}
		item, open := unlabelled(judgement, i, given.Dimension)
		if !open {
			return nil, conflict("the run already has its label", "")
		}
		if err := judgement.Labels.Add(item, *given.Pass); err != nil {
			return nil, err
		}
		return s.nextLabel(judgement, given.Dimension, nil)
	}
	return nil, notFound("there is no such run to label", "reload the page")
}

// column is one agent's work in one run of a task.
type column struct {
	Arm  string          `json:"arm"`
	Cell json.RawMessage `json:"cell"` // as in the report
	Diff *diff           `json:"diff"` // nil where nothing was changed
}

// versusShow answers with the agents side by side in one run of a task.
func (s *Server) versusShow(r *http.Request, at location) (any, error) {
	run, err := strconv.Atoi(r.PathValue("run"))
	if err != nil {
		return nil, badRequest("run=" + quote(r.PathValue("run")) + ": want a number of at least 0")
	}
	content, err := s.contestReport(r.Context(), at)
	if err != nil {
		return nil, err
	}
	var built struct{ Cells []json.RawMessage }
	if err := json.Unmarshal(content, &built); err != nil {
		return nil, err
	}
	columns := []column{}
	for _, content := range built.Cells {
		var named struct {
			Task, Arm string
			Run       int
		}
		if err := json.Unmarshal(content, &named); err != nil {
			return nil, err
		}
		if named.Task != r.PathValue("task") || named.Run != run {
			continue
		}
		one := column{Arm: named.Arm, Cell: content}
		key := ledger.Cell{Arm: named.Arm, TaskID: named.Task, RunIndex: run}
		if known := s.snapshot(at).byKey[key]; known != nil {
			one.Diff = s.readDiff(at, path.Join(known.runDir(known.Attempt), "diff.patch"))
		}
		columns = append(columns, one)
	}
	if len(columns) == 0 {
		return nil, notFound(fmt.Sprintf("%s has no run %d of %s", at.shown, run, quote(r.PathValue("task"))), "")
	}
	return map[string]any{"version": version, "columns": columns}, nil
}
