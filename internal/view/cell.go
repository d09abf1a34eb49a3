package view

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/patch"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/report/failure"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

const (
	maxDiff     = 1 << 20
	maxGrading  = 64 << 10
	maxGraders  = 50
	maxPerTurn  = 5000
	gradingPart = "grading"
)

// cellAnswer is the answer of /api/experiments/{x}/cells/{task}/{arm}/{run}.
type cellAnswer struct {
	Version    int                 `json:"version"`
	Experiment named               `json:"experiment"`
	Cell       cell                `json:"cell"`
	Previous   *cellName           `json:"previous"`
	Next       *cellName           `json:"next"`
	Attempts   []attempt           `json:"attempts"`
	Record     *ledger.Record      `json:"record"`
	Rows       []failure.Row       `json:"rows"`
	WayOut     string              `json:"wayOut,omitempty"` // of an attempt without a verdict
	Grading    []output            `json:"grading"`
	Answer     *output             `json:"answer,omitempty"` // the agent's last message
	Diff       *diff               `json:"diff"`
	Cited      []citation          `json:"cited,omitempty"` // by those who judged sentences
	Judge      *judgement          `json:"judge"`
	Flags      []cellFlag          `json:"flags"`
	Milestones []session.Milestone `json:"milestones"`
	PerTurn    []turnUsage         `json:"perTurn"`
	Traces     []traceRef          `json:"traces"`
	HasCalls   bool                `json:"hasCalls"`
	HasPrompts bool                `json:"hasPrompts"`
	HasPanel   bool                `json:"hasPanel"` // its votes are in versus/show
	Notes      []note              `json:"notes"`
	Problems   []string            `json:"problems"`
}

type named struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Running bool   `json:"running"`
}

// attempt is one try at a cell.
type attempt struct {
	Attempt      int      `json:"attempt"`
	Verdict      string   `json:"verdict"`
	ErrorClass   string   `json:"errorClass"`
	ErrorMessage string   `json:"errorMessage"`
	CostUSD      *float64 `json:"costUsd"`
	Turns        int      `json:"turns"`
	DurationMs   int64    `json:"durationMs"`
	StartMs      int64    `json:"startMs"`
	EndMs        int64    `json:"endMs"`
	Final        bool     `json:"final"`
	NotStarted   bool     `json:"notStarted,omitempty"`
}

// output is the output of a grader.
type output struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Bytes int64  `json:"bytes"`
	Cut   bool   `json:"cut"`
}

// diff is the agent's change. What tools generated is shown, and counts as Generated only.
type diff struct {
	Changes   []fileChange `json:"changes"`
	Bytes     int64        `json:"bytes"`
	Cut       bool         `json:"cut"`
	Files     int          `json:"files"`
	Added     int          `json:"added"`
	Removed   int          `json:"removed"`
	Generated int          `json:"generated"`
}

// fileChange is what a diff says about one file.
type fileChange struct {
	Name    string     `json:"name"`
	Note    string     `json:"note"` // what happened to it
	Lines   []diffLine `json:"lines"`
	Added   int        `json:"added"`
	Removed int        `json:"removed"`
}

// diffLine is a line of a hunk, or the beginning of one.
type diffLine struct {
	Sign   string `json:"sign"`
	Text   string `json:"text"`
	Before int    `json:"before,omitempty"`
	After  int    `json:"after,omitempty"`
}

// turnUsage is the usage of one message of the model.
type turnUsage struct {
	Turn  int    `json:"turn"`
	Index int    `json:"index"`
	Lane  string `json:"lane"`
	query.UsageJSON
	CostUSD *float64 `json:"costUsd"`
}

// traceRef names a trace of an attempt.
type traceRef struct {
	Role  string `json:"role"`
	Trace string `json:"trace"`
	Bytes int64  `json:"bytes"`
	Live  bool   `json:"live"`
}

// cell answers what is known about one cell.
func (s *Server) cell(r *http.Request, at location) (any, error) {
	snap := s.snapshot(at)
	run, err := strconv.Atoi(r.PathValue("run"))
	key := ledger.Cell{Arm: r.PathValue("arm"), TaskID: r.PathValue("task"), RunIndex: run}
	known := snap.byKey[key]
	if err != nil || known == nil {
		return nil, notFound(fmt.Sprintf("%s has no cell %s/%s/%s", at.shown, quote(key.TaskID), quote(key.Arm),
			quote(r.PathValue("run"))), "")
	}
	status := s.pollStatus(r.Context(), at)
	cells := snap.live(status)
	place := slices.Index(snap.cells, known)
	answer := &cellAnswer{
		Version:    version,
		Experiment: named{ID: at.id, Name: snap.at.name(), Running: status != nil},
		Cell:       cells[place],
		Attempts:   []attempt{},
		Rows:       []failure.Row{},
		Grading:    []output{},
		Flags:      []cellFlag{},
		Milestones: []session.Milestone{},
		PerTurn:    []turnUsage{},
		Traces:     []traceRef{},
		Problems:   []string{},
	}
	if place > 0 {
		answer.Previous = snap.cells[place-1].name()
	}
	if place+1 < len(snap.cells) {
		answer.Next = snap.cells[place+1].name()
	}
	wanted := known.Attempt
	if text := r.URL.Query().Get("attempt"); text != "" {
		if wanted, err = number(r, "attempt", 1<<20); err != nil {
			return nil, err
		}
	}
	for i := range snap.attempts[key] {
		record := &snap.attempts[key][i]
		answer.Attempts = append(answer.Attempts, attemptOf(record))
		if record.Attempt == wanted {
			answer.Record = record
			if cause := failure.CauseOf(record); cause != nil {
				answer.WayOut = cause.WayOut
			}
		}
	}
	if answer.Record == nil && wanted != known.Attempt {
		return nil, notFound(fmt.Sprintf("the cell has no attempt %d", wanted), "")
	}
	if answer.Notes, err = s.ofCell(at, key, snap.attempts[key]); err != nil {
		answer.Problems = append(answer.Problems, err.Error())
	}
	if at.path != "" {
		answer.HasPanel = repliesStamp(at.path) != "-"
		s.addFiles(r.Context(), answer, at, known.runDir(wanted))
	}
	if answer.Record != nil {
		s.addEvidence(r.Context(), answer, at)
		answer.Judge = judgementOf(answer, snap)
		answer.Cited = citedLines(answer.Record, answer.Diff)
	}
	return answer, nil
}

func (c *cell) name() *cellName { return &cellName{Task: c.Task, Arm: c.Arm, Run: c.Run} }

func attemptOf(r *ledger.Record) attempt {
	return attempt{
		Attempt:      r.Attempt,
		Verdict:      r.Verdict,
		ErrorClass:   r.ErrorClass,
		ErrorMessage: r.ErrorMessage,
		CostUSD:      r.CostUSD,
		Turns:        r.Turns,
		DurationMs:   r.DurationMs,
		StartMs:      r.StartMs,
		EndMs:        r.EndMs,
		Final:        r.Final,
		NotStarted:   notStarted(r),
	}
}

// cellFlag is an integrity flag, with its kind in words.
type cellFlag struct {
	session.IntegrityFlag
	Meaning string `json:"meaning"`
}

// addFiles adds the files in the directory of an attempt: traces, the diff, what graders printed.
func (s *Server) addFiles(ctx context.Context, answer *cellAnswer, at location, runDir string) {
	root, err := os.OpenRoot(at.path)
	if err != nil {
		return
	}
	defer root.Close()
	for _, name := range names(root, runDir) {
		if isTrace(name) {
			s.addTrace(answer, at, path.Join(runDir, name))
		}
		answer.HasCalls = answer.HasCalls || strings.HasSuffix(name, ".calls")
	}
	slices.SortStableFunc(answer.Traces, func(a, b traceRef) int { return roleOrder(a.Role) - roleOrder(b.Role) })
	for _, name := range names(root, path.Join(runDir, gradingPart)) {
		if len(answer.Grading) == maxGraders {
			answer.Problems = append(answer.Problems, fmt.Sprintf("more than %d files of graders", maxGraders))
			break
		}
		content, size, err := readContained(at.path, path.Join(runDir, gradingPart, name), maxGrading)
		if err != nil {
			continue // a directory of a grader, or a file that is gone
		}
		answer.Grading = append(answer.Grading, output{
			Name:  name,
			Text:  s.clean(content),
			Bytes: size,
			Cut:   size > int64(len(content)),
		})
	}
	if content, size, err := readContained(at.path, path.Join(runDir, experiment.AnswerFile), maxGrading); err == nil {
		answer.Answer = &output{
			Name:  experiment.AnswerFile,
			Text:  s.clean(content),
			Bytes: size,
			Cut:   size > int64(len(content)),
		}
	}
	answer.Diff = s.readDiff(at, path.Join(runDir, "diff.patch"))
	if len(answer.Traces) > 0 {
		answer.HasPrompts = true
		answer.PerTurn = s.perTurn(ctx, answer.Traces[0].Trace)
	}
}

// names lists the entries of a directory inside a root; a missing directory has none.
func names(root *os.Root, dir string) []string {
	file, err := root.Open(filepath.FromSlash(dir))
	if err != nil {
		return nil
	}
	defer file.Close()
	found, err := file.Readdirnames(10_000)
	if err != nil {
		return nil
	}
	slices.Sort(found)
	return found
}

func (s *Server) addTrace(answer *cellAnswer, at location, name string) {
	file, err := s.tracePath(at.id + "/" + name)
	if err != nil {
		return
	}
	info, err := os.Stat(file.path)
	if err != nil {
		return
	}
	file.modifiedMs = info.ModTime().UnixMilli()
	role, _, _ := strings.Cut(path.Base(name), ".")
	answer.Traces = append(answer.Traces, traceRef{
		Role:  role,
		Trace: file.id,
		Bytes: info.Size(),
		Live:  s.isLive(file),
	})
}

// roleOrder puts the agent's trace first.
func roleOrder(role string) int {
	return slices.Index([]string{"agent", "supervisor", "judge"}, role) & 0xff
}

// clean turns foreign bytes into text: valid, and without secrets.
func (s *Server) clean(content []byte) string {
	text := strings.ToValidUTF8(string(content), "\uFFFD")
	if s.cfg.Redactor != nil {
		text = s.cfg.Redactor.String(text)
	}
	return text
}

func (s *Server) readDiff(at location, name string) *diff {
	content, size, err := readContained(at.path, name, maxDiff)
	if err != nil {
		return nil
	}
	parsed := patch.Parse([]byte(s.clean(content)))
	shown := &diff{
		Changes: []fileChange{},
		Bytes:   size,
		Cut:     size > int64(len(content)),
	}
	for i := range parsed.Files {
		change := changeOf(&parsed.Files[i])
		shown.Changes = append(shown.Changes, change)
		if evidence.Generated(change.Name) {
			shown.Generated++
			continue
		}
		shown.Files++
		shown.Added, shown.Removed = shown.Added+change.Added, shown.Removed+change.Removed
	}
	return shown
}

func changeOf(file *patch.File) fileChange {
	change := fileChange{Name: file.Path(), Note: file.Status, Lines: []diffLine{}}
	change.Added, change.Removed = file.Counts()
	if file.Status == patch.Renamed {
		change.Note += " from " + file.Old
	}
	if file.Binary {
		change.Note += ", binary"
	}
	if file.OldMode != "" && file.NewMode != "" && file.OldMode != file.NewMode {
		change.Note += ", " + file.OldMode + " → " + file.NewMode
	}
	for _, hunk := range file.Hunks {
		change.Lines = append(change.Lines, diffLine{Sign: "@", Text: fmt.Sprintf("@@ -%d,%d +%d,%d @@",
			hunk.OldStart, hunk.OldCount, hunk.NewStart, hunk.NewCount)})
		for _, line := range hunk.Lines {
			change.Lines = append(change.Lines, diffLine{string(line.Op), line.Text, line.Old, line.New})
			if line.NoNewline {
				change.Lines = append(change.Lines, diffLine{Sign: `\`, Text: `\ No newline at end of file`})
			}
		}
	}
	return change
}

// addEvidence adds the evidence about an attempt.
func (s *Server) addEvidence(ctx context.Context, answer *cellAnswer, at location) {
	record := answer.Record
	if rows := failure.RowsOf(record); rows != nil {
		answer.Rows = rows
	}
	if at.path == "" {
		return
	}
	directory := &evidence.Directory{
		Root:     at.path,
		Dialects: s.cfg.Dialects,
		Prices:   s.cfg.Prices,
		NoCache:  true, // viewing writes nothing
	}
	task := evidence.Task{ID: record.TaskID, Cluster: record.Cluster}
	if tasks, err := evidence.ReadTasks(at.path, ""); err == nil {
		if i := slices.IndexFunc(tasks, func(t evidence.Task) bool { return t.ID == record.TaskID }); i >= 0 {
			task = tasks[i]
		}
	}
	run, err := directory.Run(ctx, task, record)
	if err != nil {
		answer.Problems = append(answer.Problems, plain(at, err))
		return
	}
	if run.Session.Milestones != nil {
		answer.Milestones = run.Session.Milestones
	}
	for _, flag := range run.Session.Integrity {
		answer.Flags = append(answer.Flags, cellFlag{flag, evidence.Meaning(flag.Kind)})
	}
	answer.HasCalls = answer.HasCalls || len(run.Session.ModelCalls) > 0
}

// perTurn returns what every message of the models consumed, as fit-trace stats has it, at the same
// prices as the costs.
func (s *Server) perTurn(ctx context.Context, id string) []turnUsage {
	turns := []turnUsage{}
	t, _, err := s.openNamed(ctx, id)
	if err != nil {
		return turns
	}
	stats, info, err := t.Stats(ctx)
	if err != nil {
		return turns
	}
	models, counts := map[string]string{}, map[string]int{}
	for _, lane := range info.Lanes {
		models[lane.Lane] = lane.Model
	}
	for _, row := range stats.PerTurn[:min(len(stats.PerTurn), maxPerTurn)] {
		lane := query.LaneName(row.Source)
		counts[lane]++
		turns = append(turns, turnUsage{
			Turn:      counts[lane],
			Index:     row.Index,
			Lane:      lane,
			UsageJSON: query.UsageJSON(row.TokenUsage),
			CostUSD:   s.priceOf(models[lane], row.TokenUsage, answerMs(info, lane)),
		})
	}
	return turns
}

// answerMs returns the time whose prices apply to the tokens of a lane.
func answerMs(info *query.Info, lane string) int64 {
	for _, known := range info.Lanes {
		if known.Lane == lane {
			return known.FirstMs
		}
	}
	return 0
}

// priceOf returns the price of tokens; nil is unknown.
func (s *Server) priceOf(model string, tokens session.TokenUsage, atMs int64) *float64 {
	if s.cfg.Prices == nil {
		return nil
	}
	usd, known := s.cfg.Prices(model, tokens, atMs)
	if !known {
		return nil
	}
	return &usd
}
