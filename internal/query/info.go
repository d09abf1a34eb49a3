package query

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/query/internal/scan"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// Metadata is what the agent says about itself when it starts.
type Metadata struct {
	Timestamp         *string         `json:"timestamp"`
	SessionID         *string         `json:"sessionId"`
	Model             *string         `json:"model"`
	ClaudeCodeVersion *string         `json:"claudeCodeVersion"`
	Tools             json.RawMessage `json:"tools"`
	PermissionMode    *string         `json:"permissionMode"`
}

// Info is what a pass over a trace learns about it.
type Info struct {
	// Metadata and InitEvent are those of the last init event of the first lane that has one.
	Metadata  Metadata
	InitEvent json.RawMessage // nil if there was none
	Summary   Summary
	// Results reports whether there was any result event.
	Results bool
	// TurnCount is the number of entries, Turns that of the models' turns.
	TurnCount int
	Turns     int
	// Verdict, Closing and DiscussionID come from the orchestrator.
	Verdict      string
	Closing      string
	DiscussionID string
	// TaskPrompt is the text of the first user entry, else the first prompt that the orchestrator
	// noted.
	TaskPrompt *string
	Lanes      []LaneInfo
	Problems   Problems

	wants    func(lane string) bool
	prices   session.Prices
	redactor Redactor
	lanes    map[string]*laneState
	order    []*laneState
	working  map[string]bool // the participants whose turn has not ended
	prompt   *string
	initLane *laneState
	parser   jsontape.Parser

	used          session.TokenUsage
	original      *float64 // what replayed calls cost when they were recorded
	usageReported bool     // by a result
	unpriced      []string // lanes some of whose cost is unknown
	models        ModelUsage
}

// LaneInfo is one participant of a session.
type LaneInfo struct {
	Lane    string   `json:"lane"`
	Dialect string   `json:"dialect,omitempty"`
	Agent   string   `json:"agent,omitempty"`
	Model   string   `json:"model,omitempty"`
	Turns   int      `json:"turns"`
	CostUSD *float64 `json:"costUsd"`
	FirstMs int64    `json:"firstMs,omitempty"`
	LastMs  int64    `json:"lastMs,omitempty"`
	// Working is set where a turn of the participant has begun and not ended.
	Working bool `json:"working,omitempty"`
}

// Problems counts what could not be read.
type Problems struct {
	Skipped int  `json:"skippedLines"`
	Torn    bool `json:"torn,omitempty"`
	// NoEnd is set where a session began and its summary is not there: it is still running, or the
	// trace was cut off.
	NoEnd bool `json:"noEnd,omitempty"`
	// BrokenBlocks counts content blocks that are not objects.
	BrokenBlocks int `json:"brokenBlocks,omitempty"`
	// Dropped counts the deltas that the writer left out because later events repeat them.
	Dropped int64 `json:"droppedDeltas,omitempty"`
	// First says what was wrong with the first few skipped lines.
	First []Problem `json:"first,omitempty"`
}

// Problem is one line that was skipped.
type Problem struct {
	Line   int64  `json:"line"`
	Reason string `json:"reason"`
}

func (p Problem) String() string { return fmt.Sprintf("line %d: %s", p.Line, p.Reason) }

// shownProblems is how many skipped lines are described; the rest are only counted.
const shownProblems = 20

func (p *Problems) add(line int64, reason string, torn bool) {
	p.Skipped++
	p.Torn = p.Torn || torn
	if len(p.First) < shownProblems {
		p.First = append(p.First, Problem{line, reason})
	}
}

// take adds the problems of a block of lines.
func (p *Problems) take(b *scan.Batch) {
	for _, found := range b.Problems {
		p.add(found.Line, found.Reason, found.Torn)
	}
}

// laneState is the state of a lane during a pass.
type laneState struct {
	LaneInfo
	bare    bool
	wanted  bool
	init    json.RawMessage
	initTs  int64
	stream  bool         // it speaks the stream dialect
	account *account     // if it does, and a question needs it
	decoded *decodedLane // if it speaks another
	calls   []calls.Call // that the gateway saw
	word    *float64     // the cost that the agent reports, if CostUSD comes from the gateway
	byWire  bool
}

// source returns the name of the lane in envelopes, nil for bare events.
func (l *laneState) source() *string {
	if l == nil || l.bare {
		return nil
	}
	return &l.Lane
}

func newInfo(opts *Options) *Info {
	return &Info{
		wants:    opts.wants,
		prices:   opts.Prices,
		redactor: opts.Redactor,
		lanes:    map[string]*laneState{},
		working:  map[string]bool{},
	}
}

// lane returns the state of a lane; bare events share the lane "agent" with envelopes of that name.
func (in *Info) lane(name string, bare bool) *laneState {
	if bare {
		name = bareLane
	}
	l := in.lanes[name]
	if l == nil {
		l = &laneState{LaneInfo: LaneInfo{Lane: strings.Clone(name)}, bare: bare, wanted: in.wants(name)}
		in.lanes[l.Lane] = l
		if name != trace.Orchestrator {
			in.order = append(in.order, l)
		}
	}
	return l
}

func (l *laneState) noteTime(ms int64) {
	if ms == 0 {
		return
	}
	l.FirstMs = cmp.Or(l.FirstMs, ms)
	l.LastMs = max(l.LastMs, ms)
}

// init notes an init event.
func (in *Info) init(l *laneState, ev *scan.Event) {
	l.init, l.initTs = in.redactor.JSON(jsonenc.Without(ev.Native, "type")), ev.Ts
	v, _ := in.parser.Parse(ev.Native)
	l.Model = unescape(v.Get("model").Inner())
	if in.initLane == nil {
		in.initLane = l
	}
}

// lifecycle notes an event of the orchestrator.
func (in *Info) lifecycle(event []byte) {
	v, _ := in.parser.Parse(event)
	switch v.TextOf("type") {
	case trace.TypeSessionStart:
		in.Problems.NoEnd = true
	case trace.TypeSummary:
		in.Problems.NoEnd = false
		in.Verdict = in.redactor.String(unescape(v.Get("verdict").Inner()))
		in.Closing = in.redactor.String(unescape(v.Get("summary").Inner()))
		clear(in.working)
	case trace.TypeTurnStart: // before its agent is
		in.working[unescape(v.Get("agent").Inner())] = true
	case trace.TypeTurnEnd:
		delete(in.working, unescape(v.Get("agent").Inner()))
	case trace.TypeMeta:
		in.DiscussionID = cmp.Or(unescape(v.Get("discussion_id").Inner()), in.DiscussionID)
	case trace.TypePrompt:
		if text := optional(v.Get("text").Inner()); in.prompt == nil && text != nil {
			in.prompt = redactOptional(in.redactor, text)
		}
	case trace.TypeAgentStart:
		in.agentStart(v)
	case trace.TypeModelCall:
		if call, lane, ok := modelCall(event, v); ok {
			l := in.lane(lane, false)
			l.calls = append(l.calls, call)
		}
	}
}

func (in *Info) agentStart(v jsontape.Value) {
	name := unescape(v.Get("agent").Inner())
	if name == "" {
		return
	}
	l := in.lane(name, false)
	l.Agent = cmp.Or(unescape(v.Get("runtime").Inner()), l.Agent)
	l.Dialect = cmp.Or(unescape(v.Get("protocol").Inner()), l.Dialect)
	l.Model = cmp.Or(l.Model, unescape(v.Get("model").Inner()))
	if l.decoded != nil {
		l.decoded.restart()
	}
}

// finish computes what follows from the whole.
func (in *Info) finish() {
	in.Metadata.Tools = json.RawMessage("[]")
	for _, l := range in.order {
		if !l.wanted {
			continue
		}
		l.Working = in.working[l.Lane]
		if l.decoded == nil && l.account == nil && len(l.calls) > 0 {
			l.account = newAccount(l, in.prices) // an agent with an unknown dialect
		}
		switch {
		case l.decoded != nil:
			l.took(l.decoded.fold)
			l.decoded.finish(in)
		case l.account != nil:
			l.took(l.account.fold)
			in.add(l, l.account.fold.Session())
		}
		in.Lanes = append(in.Lanes, l.LaneInfo)
	}
	in.settle()
	in.TaskPrompt = cmp.Or(in.TaskPrompt, in.prompt)
	if l := in.initLane; l != nil {
		in.InitEvent = l.init
		in.Metadata = in.metadata(l)
	}
}

func (in *Info) metadata(l *laneState) Metadata {
	init, _ := in.parser.Parse(l.init)
	m := Metadata{
		Timestamp:         textMember(init, "timestamp"),
		SessionID:         textMember(init, "session_id"),
		Model:             textMember(init, "model"),
		ClaudeCodeVersion: textMember(init, "claude_code_version"),
		PermissionMode:    textMember(init, "permissionMode"),
		Tools:             json.RawMessage("[]"),
	}
	if tools := init.Get("tools"); tools.Kind() == jsontape.Array {
		m.Tools = jsonenc.Compact(tools.Raw())
	}
	if m.Timestamp == nil && l.initTs != 0 {
		m.Timestamp = new(time.UnixMilli(l.initTs).UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	return m
}
