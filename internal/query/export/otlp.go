package export

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/session"
)

// OTLP writes the trace as OpenTelemetry spans in the JSON form of OTLP, by the conventions
// for generative models: one span for the session, one for every lane, one for every message of a
// model, one for every tool call.
func OTLP(ctx context.Context, t *query.Trace, w io.Writer) error {
	if err := t.Spool(); err != nil {
		return err
	}
	messages, info, err := spanMessages(ctx, t)
	if err != nil {
		return err
	}
	if t.Nothing() {
		return fmt.Errorf("%s: %w", t.Name(), query.ErrNothing)
	}
	out := &spanWriter{w: bufio.NewWriterSize(w, 64<<10), lanes: map[string]string{}}
	out.open(t, info)
	for _, m := range messages {
		out.message(m)
	}
	if err := t.ToolUses(ctx, out.call); err != nil {
		return err
	}
	out.text("]}]}]}\n")
	return out.w.Flush()
}

// spanMessage is one message of a model, from its first entry to its last.
type spanMessage struct {
	id          string
	lane        string
	parent      string
	first, last int64
	usage       session.TokenUsage
	hasUsage    bool
}

func spanMessages(ctx context.Context, t *query.Trace) ([]spanMessage, *query.Info, error) {
	var messages []spanMessage
	places := map[string]int{}
	info, err := t.Walk(ctx, func(e *query.Cursor) error {
		if e.Role != query.RoleAssistant {
			return nil
		}
		entry := e.Entry()
		lane, id := entry.LaneName(), textOf(entry.MessageID)
		n, again := places[lane+"\x00"+id] // several lanes may share ids
		if !again || id == "" {
			n = len(messages)
			if id == "" {
				id = "turn-" + strconv.Itoa(entry.Index)
			}
			places[lane+"\x00"+id] = n
			messages = append(messages, spanMessage{
				id:     id,
				lane:   lane,
				parent: entry.Parent,
				first:  entry.TimestampMs,
			})
		}
		m := &messages[n]
		m.last = max(m.last, entry.TimestampMs)
		if entry.Usage != nil {
			m.usage, m.hasUsage = m.usage.Max(*entry.Usage), true
		}
		return nil
	})
	return messages, info, err
}

type spanWriter struct {
	w       *bufio.Writer
	traceID string
	root    string
	lanes   map[string]string
	count   int
	start   int64 // of the session, for what has no time of its own
}

// otlpSpan is one span in the JSON form of OTLP: ids in hexadecimal, times as decimal strings.
type otlpSpan struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	Parent     string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes,omitempty"`
	Status     *spanStatus `json:"status,omitempty"`
}

type spanStatus struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

type attribute struct {
	Key   string         `json:"key"`
	Value map[string]any `json:"value"`
}

func textAttribute(key, value string) attribute {
	return attribute{key, map[string]any{"stringValue": value}}
}

func intAttribute(key string, value int64) attribute {
	return attribute{key, map[string]any{"intValue": strconv.FormatInt(value, 10)}}
}

// The kinds and the status of spans.
const (
	spanInternal = 1
	spanClient   = 3
	statusOK     = 1
	statusError  = 2
)

func spanID(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = io.WriteString(h, part+"\x00") // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// the writer keeps the error until it is flushed
func (s *spanWriter) text(text string) { _, _ = s.w.WriteString(text) }

func (s *spanWriter) open(t *query.Trace, info *query.Info) {
	sum := sha256.Sum256([]byte(t.Name() + "\x00" + textOf(info.Metadata.SessionID)))
	s.traceID = hex.EncodeToString(sum[:16])
	s.root = spanID(s.traceID, "session")
	end := int64(0)
	for _, lane := range info.Lanes {
		if lane.FirstMs != 0 && (s.start == 0 || lane.FirstMs < s.start) {
			s.start = lane.FirstMs
		}
		end = max(end, lane.LastMs)
	}
	s.text(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"fit"}}]},"scopeSpans":[{"scope":{"name":"fit.trace"},"spans":[`)
	s.write(otlpSpan{
		SpanID:     s.root,
		Name:       "session",
		Kind:       spanInternal,
		Attributes: []attribute{textAttribute("fit.file", t.Name()), textAttribute("fit.result", info.Summary.Result)},
		Status:     status(info.Summary.IsError, ""),
	}, s.start, end)
	for _, lane := range info.Lanes {
		id := spanID(s.traceID, "lane", lane.Lane)
		s.lanes[lane.Lane] = id
		s.write(otlpSpan{
			SpanID: id,
			Parent: s.root,
			Name:   "invoke_agent " + lane.Lane,
			Kind:   spanInternal,
			Attributes: []attribute{
				textAttribute("gen_ai.operation.name", "invoke_agent"), textAttribute("gen_ai.agent.name", lane.Lane),
				textAttribute("gen_ai.request.model", lane.Model),
			},
		}, lane.FirstMs, lane.LastMs)
	}
}

func status(failed bool, message string) *spanStatus {
	if failed {
		return &spanStatus{statusError, message}
	}
	return &spanStatus{Code: statusOK}
}

func (s *spanWriter) message(m spanMessage) {
	attributes := []attribute{textAttribute("gen_ai.operation.name", "chat"), textAttribute("gen_ai.response.id", m.id)}
	if m.hasUsage {
		attributes = append(attributes,
			intAttribute("gen_ai.usage.input_tokens", m.usage.Prompt()),
			intAttribute("gen_ai.usage.output_tokens", m.usage.OutputTokens))
	}
	s.write(otlpSpan{
		SpanID:     spanID(s.traceID, "message", m.lane, m.id),
		Parent:     s.parent(m.lane, m.parent),
		Name:       "chat",
		Kind:       spanClient,
		Attributes: attributes,
	}, m.first, m.last)
}

// parent returns the tool call that started the sub-agent, else the lane.
func (s *spanWriter) parent(lane, call string) string {
	if call != "" {
		return spanID(s.traceID, "call", lane, call)
	}
	return s.lanes[lane]
}

func (s *spanWriter) call(c *query.ToolUse) error {
	end := c.TimestampMs
	if c.DurationMs != nil {
		end += *c.DurationMs
	}
	lane := query.LaneName(c.Source)
	sp := otlpSpan{
		SpanID: spanID(s.traceID, "call", lane, c.ToolUseID),
		Parent: s.parent(lane, c.Parent),
		Name:   "execute_tool " + c.Name,
		Kind:   spanInternal,
		Attributes: []attribute{
			textAttribute("gen_ai.operation.name", "execute_tool"),
			textAttribute("gen_ai.tool.name", c.Name), textAttribute("gen_ai.tool.call.id", c.ToolUseID),
		},
	}
	if c.Result != nil {
		sp.Status = status(c.Result.IsError, firstLineOf(textOf(c.Result.Content)))
	}
	s.write(sp, c.TimestampMs, end)
	_, err := s.w.Write(nil)
	return err
}

func firstLineOf(text string) string {
	return display.FirstRunes(display.Line(text), 120)
}

// write prints a span. What has no time is put at the start of the session.
func (s *spanWriter) write(sp otlpSpan, startMs, endMs int64) {
	startMs = cmp.Or(startMs, s.start)
	sp.TraceID, sp.Start, sp.End = s.traceID, nanos(startMs), nanos(max(startMs, endMs))
	raw, err := json.Marshal(sp)
	if err != nil {
		return // strings and numbers always marshal
	}
	if s.count > 0 {
		s.text(",")
	}
	s.count++
	_, _ = s.w.Write(display.JSON(raw))
}

func nanos(ms int64) string { return strconv.FormatInt(ms*1e6, 10) }
