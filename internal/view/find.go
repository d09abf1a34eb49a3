package view

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/session"
)

const (
	maxFound    = 20_000
	maxExcerpts = 200
	maxPattern  = 1000
	maxBuckets  = 2000
)

// findAnswer is the answer of /api/trace/find.
type findAnswer struct {
	Version  int                 `json:"version"`
	Count    int                 `json:"count"`
	Indexes  []int               `json:"indexes"`
	Capped   bool                `json:"capped"`
	Excerpts map[string][]string `json:"excerpts"`
}

func (a *findAnswer) add(index int) {
	a.Count++
	if len(a.Indexes) < maxFound {
		a.Indexes = append(a.Indexes, index)
	} else {
		a.Capped = true
	}
}

// find answers which entries meet all criteria.
func (s *Server) traceFind(r *http.Request) (any, error) {
	values := r.URL.Query()
	pattern := values.Get("q")
	criteria := query.Criteria{
		Role:  query.Role(values.Get("role")),
		Tool:  values.Get("tool"),
		Error: values.Get("errors") == "1",
	}
	lane := values.Get("lane")
	switch {
	case pattern == "" && criteria == (query.Criteria{}) && lane == "":
		return nil, badRequest("name what to find: q, tool, lane, role or errors=1")
	case len(pattern) > maxPattern:
		return nil, badRequest(fmt.Sprintf("q has more than %d characters", maxPattern))
	case criteria.Role != "" && !criteria.Role.Known():
		return nil, badRequest("role=" + quote(string(criteria.Role)) + ": want system, assistant, user or tool_result")
	}
	if values.Get("regex") != "1" {
		pattern = regexp.QuoteMeta(pattern)
	} else if _, err := regexp.Compile("(?i)" + pattern); err != nil {
		return nil, badRequest("q is not a regular expression: " + err.Error())
	}
	var lanes []string
	if lane != "" {
		lanes = []string{lane}
	}
	t, _, err := s.openTrace(r, lanes...)
	if err != nil {
		return nil, err
	}
	answer := &findAnswer{Version: version, Indexes: []int{}, Excerpts: map[string][]string{}}
	if pattern == "" {
		err = t.Matching(r.Context(), criteria, answer.add)
	} else {
		err = t.Search(r.Context(), query.Search{Pattern: pattern}, func(hit *query.Hit) error {
			if !criteria.Match(hit.Turn) {
				return nil
			}
			answer.add(hit.Turn.Index)
			if len(answer.Excerpts) < maxExcerpts {
				answer.Excerpts[strconv.Itoa(hit.Turn.Index)] = hit.Matches
			}
			return nil
		})
	}
	if err != nil {
		return nil, traceProblem(t.Path, t.Label, err)
	}
	return answer, nil
}

type lanesAnswer struct {
	Version int          `json:"version"`
	Entries int          `json:"entries"`
	Size    int          `json:"size"`
	Lanes   []*laneMarks `json:"lanes"`
}

type alignedAnswer struct {
	Version   int              `json:"version"`
	Alignment *query.Alignment `json:"alignment"`
	EntriesA  []int            `json:"entriesA"`
	EntriesB  []int            `json:"entriesB"`
}

// laneMarks are the entries of one lane over the length of a trace.
type laneMarks struct {
	Lane       string `json:"lane"`
	Agent      string `json:"agent"`
	Model      string `json:"model"`
	Count      int    `json:"count"`
	Errors     int    `json:"errors"`
	Marks      []int  `json:"marks"`
	ErrorMarks []int  `json:"errorMarks"`
}

func (s *Server) traceLanes(r *http.Request, t *query.Trace, buckets int) (any, error) {
	if buckets == 0 {
		return nil, badRequest("buckets: want at least 1")
	}
	total, err := t.Count(r.Context())
	if err != nil {
		return nil, err
	}
	size := max(1, (total+buckets-1)/buckets)
	lanes, byName := []*laneMarks{}, map[string]*laneMarks{}
	info, err := t.Outline(r.Context(), func(e *query.Cursor) {
		name := query.LaneName(e.Lane())
		lane := byName[name]
		if lane == nil {
			lane = &laneMarks{Lane: name, Marks: make([]int, buckets), ErrorMarks: make([]int, buckets)}
			byName[name] = lane
			lanes = append(lanes, lane)
		}
		at := min(e.Index/size, buckets-1) // more when it grew meanwhile
		lane.Count++
		lane.Marks[at]++
		if e.IsError() {
			lane.Errors++
			lane.ErrorMarks[at]++
		}
	})
	if err != nil {
		return nil, err
	}
	for _, known := range info.Lanes {
		if lane := byName[known.Lane]; lane != nil {
			lane.Agent, lane.Model = known.Agent, known.Model
		}
	}
	return lanesAnswer{version, total, size, lanes}, nil
}

// placedMessage is a message with the entry at or after its line.
type placedMessage struct {
	query.Message
	Index   int            `json:"index"`
	Answers []placedAnswer `json:"answers"`
}

type placedAnswer struct {
	query.Answer
	Index int `json:"index"`
}

func (s *Server) traceMessages(r *http.Request, t *query.Trace) (any, error) {
	messages, err := t.Messages(r.Context())
	if err != nil {
		return nil, err
	}
	var lines []int64
	for i := range messages {
		lines = append(lines, messages[i].Line)
		for j := range messages[i].Answers {
			lines = append(lines, messages[i].Answers[j].Line)
		}
	}
	entries, err := entriesAt(r.Context(), t, lines)
	if err != nil {
		return nil, err
	}
	placed := []placedMessage{}
	for i := range messages {
		m := placedMessage{Message: messages[i], Index: entries[messages[i].Line], Answers: []placedAnswer{}}
		for _, answer := range messages[i].Answers {
			m.Answers = append(m.Answers, placedAnswer{Answer: answer, Index: entries[answer.Line]})
		}
		placed = append(placed, m)
	}
	return map[string]any{"version": version, "messages": placed}, nil
}

// entriesAt finds for every line the entry in it or, if there is none, the next one.
func entriesAt(ctx context.Context, t *query.Trace, lines []int64) (map[int64]int, error) {
	entries := map[int64]int{}
	if len(lines) == 0 {
		return entries, nil
	}
	lines = slices.Clone(lines)
	slices.Sort(lines)
	last := 0
	_, err := t.Outline(ctx, func(e *query.Cursor) {
		for len(lines) > 0 && lines[0] <= e.Line {
			entries[lines[0]] = e.Index
			lines = lines[1:]
		}
		last = e.Index
	})
	for _, line := range lines {
		entries[line] = last
	}
	return entries, err
}

func (s *Server) traceAlign(r *http.Request) (any, error) {
	a, _, err := s.openNamed(r.Context(), r.URL.Query().Get("a"))
	if err != nil {
		return nil, err
	}
	b, _, err := s.openNamed(r.Context(), r.URL.Query().Get("b"))
	if err != nil {
		return nil, err
	}
	alignment, err := query.Align(r.Context(), a, b)
	if err != nil {
		return nil, unreadable(err)
	}
	entriesA, err := actionEntries(r, a, alignment.A.Actions)
	if err != nil {
		return nil, err
	}
	entriesB, err := actionEntries(r, b, alignment.B.Actions)
	if err != nil {
		return nil, err
	}
	return alignedAnswer{version, alignment, entriesA, entriesB}, nil
}

func actionEntries(r *http.Request, t *query.Trace, actions []query.Action) ([]int, error) {
	lines := make([]int64, len(actions))
	for i := range actions {
		lines[i] = actions[i].Line
	}
	entries, err := entriesAt(r.Context(), t, lines)
	if err != nil {
		return nil, err
	}
	found := make([]int, len(actions))
	for i, line := range lines {
		found[i] = entries[line]
	}
	return found, nil
}

// callsAnswer is the answer of /api/trace/calls.
type callsAnswer struct {
	Version int               `json:"version"`
	Calls   []query.ModelCall `json:"calls"`
	Tools   []toolTime        `json:"tools"`
}

// toolTime says when a tool worked, as far as the trace knows.
type toolTime struct {
	Lane    string `json:"lane"`
	Name    string `json:"name"`
	Index   int    `json:"index"`
	StartMs int64  `json:"startMs"`
	EndMs   int64  `json:"endMs"`
	IsError bool   `json:"isError"`
}

// maxToolTimes bounds the calls of tools that a page draws.
const maxToolTimes = 2000

func (s *Server) traceCalls(r *http.Request, t *query.Trace) (any, error) {
	answer := callsAnswer{Version: version, Calls: []query.ModelCall{}, Tools: []toolTime{}}
	calls, err := t.ModelCalls(r.Context())
	if err != nil || len(calls) == 0 {
		return answer, err
	}
	answer.Calls = calls
	err = t.ToolUses(r.Context(), func(u *query.ToolUse) error {
		if u.TimestampMs > 0 && u.DurationMs != nil && len(answer.Tools) < maxToolTimes {
			answer.Tools = append(answer.Tools, toolTime{
				Lane:    query.LaneName(u.Source),
				Name:    u.Name,
				Index:   u.TurnIndex,
				StartMs: u.TimestampMs,
				EndMs:   u.TimestampMs + *u.DurationMs,
				IsError: u.Result != nil && u.Result.IsError,
			})
		}
		return nil
	})
	return answer, err
}

// maxExchange bounds what a page gets of a body.
const maxExchange = 2 << 20

// exchangeAnswer is the answer of /api/trace/call.
type exchangeAnswer struct {
	Version  int    `json:"version"`
	Request  body   `json:"request"`
	Response body   `json:"response"`
	Missing  string `json:"missing"`
}

// body is what was sent or came back.
type body struct {
	Text  string `json:"text"`
	Bytes int    `json:"bytes"`
	Cut   bool   `json:"cut"`
}

func (s *Server) traceCall(r *http.Request, t *query.Trace, n int) (any, error) {
	found, err := t.Exchange(r.Context(), n)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, notFound("the trace has no model call "+strconv.Itoa(n), "")
	}
	answer := exchangeAnswer{Version: version, Missing: found.Missing}
	answer.Request.Text, answer.Request.Bytes, answer.Request.Cut = cut(found.Request, maxExchange)
	answer.Response.Text, answer.Response.Bytes, answer.Response.Cut = cut(found.Response, maxExchange)
	return answer, nil
}

// promptsOf are the prompts of one lane.
type promptsOf struct {
	Lane    string                          `json:"lane"`
	Prompts []session.SystemPromptInjection `json:"prompts"`
}

func (s *Server) tracePrompts(r *http.Request) (any, error) {
	file, err := s.tracePath(r.URL.Query().Get("trace"))
	if err != nil {
		return nil, err
	}
	sessions, err := session.Load(file.path, s.cfg.Dialects, session.Options{Prices: s.cfg.Prices})
	if err != nil {
		return nil, traceProblem(file.path, file.shown, err)
	}
	lanes := []promptsOf{}
	for _, one := range sessions {
		prompts := []session.SystemPromptInjection{}
		for _, p := range one.SystemPrompts {
			if s.cfg.Redactor != nil {
				p.Content = s.cfg.Redactor.String(p.Content)
			}
			prompts = append(prompts, p)
		}
		lanes = append(lanes, promptsOf{Lane: one.Lane, Prompts: prompts})
	}
	return map[string]any{"version": version, "lanes": lanes}, nil
}

// traceImage answers with the bytes of an image.
func (s *Server) traceImage(r *http.Request, t *query.Trace, n int) (any, error) {
	at, err := number(r, "block", 1<<20)
	if err != nil {
		return nil, err
	}
	found, err := t.Entry(r.Context(), n)
	if err != nil {
		return nil, err
	}
	missing := notFound(fmt.Sprintf("entry %d has no image %d", n, at), "")
	if found == nil {
		return nil, missing
	}
	kind, data := "", ""
	if found.Result != nil {
		if parts := resultParts(*found.Result); at < len(parts) {
			kind, data = parts[at].kind, parts[at].data
		}
	} else if at < len(found.Content) {
		kind, data, _ = imageIn(found.Content[at].Raw)
	}
	content, err := base64.StdEncoding.DecodeString(data)
	if !imageKinds[kind] || len(content) == 0 || err != nil {
		return nil, missing
	}
	return raw{kind: kind, content: content}, nil
}
