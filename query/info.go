package query

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

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

// Info is what a pass over a trace learns about the whole of it.
type Info struct {
	// Metadata and InitEvent are those of the last init event of the first lane that has one.
	Metadata  Metadata
	InitEvent json.RawMessage // nil if there was none
	Summary   Summary
	// Results tells whether there was any result event.
	Results   bool
	TurnCount int
	// Verdict, Closing and DiscussionID come from the orchestrator.
	Verdict      string
	Closing      string
	DiscussionID string
	// TaskPrompt is the text of the first user turn, else the first prompt that the orchestrator
	// noted.
	TaskPrompt *string
	Lanes      []LaneInfo
	Problems   Problems
	// Version is set for a structured document.
	Version *string

	wants    func(lane string) bool
	lanes    map[string]*laneState
	order    []*laneState
	results  *results
	prompt   *string
	initLane *laneState
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
}

// Problems counts what could not be read.
type Problems struct {
	Skipped int  `json:"skippedLines"`
	Torn    bool `json:"torn,omitempty"`
	// BrokenBlocks counts content blocks that are no objects.
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
func (p *Problems) take(b *batch, linesBefore int64) {
	for i := range b.problems {
		found := &b.problems[i]
		p.add(linesBefore+int64(found.line)+1, found.reason, found.torn)
	}
}

// laneState is what a pass remembers about a lane.
type laneState struct {
	LaneInfo
	bare   bool
	wanted bool
	stream bool // it has produced events of the stream dialect
	init   json.RawMessage
	initTs int64
	other  *foreignLane
}

func newInfo(wants func(lane string) bool) *Info {
	return &Info{wants: wants, lanes: map[string]*laneState{}, results: newResults()}
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

func (l *laneState) saw(ms int64) {
	if ms == 0 {
		return
	}
	if l.FirstMs == 0 {
		l.FirstMs = ms
	}
	l.LastMs = max(l.LastMs, ms)
}

// init notes an init event.
func (in *Info) init(l *laneState, event []byte, ts int64) {
	l.init, l.initTs = withoutMember(event, "type"), ts
	l.Model = memberText(event, "model")
	if in.initLane == nil {
		in.initLane = l
	}
}

// lifecycle notes an event of the orchestrator.
func (in *Info) lifecycle(event []byte) {
	switch memberText(event, "type") {
	case trace.TypeSummary:
		in.Verdict = memberText(event, "verdict")
		in.Closing = memberText(event, "summary")
	case trace.TypeMeta:
		if id := memberText(event, "discussion_id"); id != "" {
			in.DiscussionID = id
		}
	case trace.TypePrompt:
		if text := memberText(event, "text"); in.prompt == nil && text != "" {
			in.prompt = &text
		}
	case trace.TypeAgentStart:
		in.agentStart(event)
	}
}

func (in *Info) agentStart(event []byte) {
	name := memberText(event, "agent")
	if name == "" {
		return
	}
	l := in.lane(name, false)
	if runtime := memberText(event, "runtime"); runtime != "" {
		l.Agent = runtime
	}
	if protocol := memberText(event, "protocol"); protocol != "" {
		l.Dialect = protocol
	}
	if model := memberText(event, "model"); model != "" && l.Model == "" {
		l.Model = model
	}
	if l.other != nil {
		l.other.restart()
	}
}

// finish computes what follows from the whole.
func (in *Info) finish() {
	for _, l := range in.order {
		if !l.wanted {
			continue
		}
		if l.other != nil {
			l.other.finish(in)
		}
		if res := in.results.lanes[l.Lane]; res != nil && res.priced && !res.unpriced {
			cost := res.cost
			l.CostUSD = &cost
		}
		in.Lanes = append(in.Lanes, l.LaneInfo)
	}
	in.Summary, in.Results = in.results.total(), in.results.seen
	if in.TaskPrompt == nil {
		in.TaskPrompt = in.prompt
	}
	in.Metadata.Tools = json.RawMessage("[]")
	if l := in.initLane; l != nil {
		in.InitEvent = l.init
		in.Metadata = metadataOf(l.init, l.initTs)
	}
}

func metadataOf(init []byte, ts int64) Metadata {
	m := Metadata{
		Timestamp:         memberOptional(init, "timestamp"),
		SessionID:         memberOptional(init, "session_id"),
		Model:             memberOptional(init, "model"),
		ClaudeCodeVersion: memberOptional(init, "claude_code_version"),
		PermissionMode:    memberOptional(init, "permissionMode"),
		Tools:             json.RawMessage("[]"),
	}
	if tools := memberOf(init, "tools"); len(tools) > 0 && tools[0] == '[' {
		m.Tools = cloneRaw(tools)
	}
	if m.Timestamp == nil && ts != 0 {
		at := time.UnixMilli(ts).UTC().Format("2006-01-02T15:04:05.000Z")
		m.Timestamp = &at
	}
	return m
}

// memberOptional is the text of a string member, nil if there is none.
func memberOptional(object []byte, name string) *string {
	raw := memberOf(object, name)
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	text := unescape(raw[1 : len(raw)-1])
	return &text
}
