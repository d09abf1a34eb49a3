package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// Config says how events are shown.
type Config struct {
	Out io.Writer
	// Colour switches on the colours of the lanes.
	Colour bool
	// Dialects are what lanes may speak.
	Dialects session.Dialects
	// Prices computes the cost of what an agent does not price itself.
	Prices session.Prices
}

// Renderer shows a trace line by line. It is not safe for concurrent use.
type Renderer struct {
	cfg   Config
	lanes map[string]*lane
	order []string
	// labelled is true once it is clear that more than one lane speaks.
	labelled bool
	silent   bool // what comes was shown before
	live     bool // some line was not
	verdict  string
	err      error
}

// lane is what is known of one source.
type lane struct {
	name     string
	known    bool // a decoder was found
	decoder  session.Decoder
	fold     *session.Fold
	native   bool  // speaks the stream dialect, whose system events and totals are shown as they are
	duration int64 // as its results say, and before the session was resumed
	firstTs  int64 // of what the duration does not have yet
	lastTs   int64
}

// New returns a Renderer.
func New(cfg Config) *Renderer { return &Renderer{cfg: cfg, lanes: map[string]*lane{}} }

// Line shows one line of a trace.
func (r *Renderer) Line(env trace.Envelope) {
	r.live = r.live || !r.silent
	if env.Source == trace.Orchestrator {
		r.orchestrator(env)
		return
	}
	l := r.lane(env.Source)
	l.firstTs = cmp.Or(l.firstTs, env.Ts)
	l.lastTs = max(l.lastTs, env.Ts)
	if !l.known {
		dialect, ok := r.cfg.Dialects.Of(env.Event)
		if !ok {
			return
		}
		l.setDialect(dialect)
	}
	if l.native {
		r.nativeEvent(l, env.Event)
	}
	l.decoder.Decode(env.Event, session.Stamp{Ts: env.Ts, Lane: env.Source}, l.fold)
}

// Past takes a line that was shown before: what the last session of such lines took and cost counts
// as if this Renderer had shown it.
func (r *Renderer) Past(env trace.Envelope) {
	r.silent = true
	r.Line(env)
	r.silent = false
}

// Close prints the last line, if any agent came to an end and the past is not all there was, and
// returns the first error of the output.
func (r *Renderer) Close() error {
	if footer := r.footer(); footer != "" && r.live {
		r.print(footer + "\n")
	}
	return r.err
}

func (r *Renderer) lane(name string) *lane {
	l := r.lanes[name]
	if l != nil {
		return l
	}
	l = &lane{name: name}
	l.fold = session.NewFold(session.Options{
		Flat: true, Prices: r.cfg.Prices,
		OnEvent: func(event *session.EnrichedEvent) { r.show(l, event) },
	})
	r.lanes[name] = l
	r.order = append(r.order, name)
	r.labelled = r.labelled || len(r.order) > 1
	return l
}

func (l *lane) setDialect(dialect session.Dialect) {
	l.known, l.decoder, l.native = true, dialect.New(), dialect.Name == session.StreamDialectName
}

// show prints one canonical event.
func (r *Renderer) show(l *lane, event *session.EnrichedEvent) {
	switch event.Kind {
	case session.KindMessage:
		if event.Role == "assistant" {
			r.say(l, laneColour(l.name), event.Text)
		} else {
			r.say(l, laneColour(l.name), "[user] "+event.Text)
		}
	case session.KindToolCall:
		r.say(l, laneColour(l.name), toolLine(event.Tool))
	case session.KindToolResult:
		if event.Result.IsError {
			r.say(l, errorColour.start(), "Error: "+Preview(event.Result.Content, true))
		}
	case session.KindSystemPrompt:
		if !l.native {
			r.say(l, laneColour(l.name), "["+event.Label+"]")
		}
	case session.KindError:
		if !l.native || event.Error.Kind != session.ErrorRetry {
			r.say(l, errorColour.start(), fmt.Sprintf("Error: %s: %s", event.Error.Kind,
				Preview(event.Error.Message, true)))
		}
	case session.KindThinking, session.KindCost, session.KindMilestone:
	}
}

func toolLine(call *session.ToolCall) string {
	name := ToolName(call.NativeName)
	hint := Hint(call.NativeName, call.Args)
	if hint == "" && call.Command != "" {
		hint = sanitise(call.Command)
	}
	if hint == "" && len(call.Paths) > 0 {
		hint = sanitise(strings.Join(call.Paths, " "))
	}
	if hint == "" {
		return name
	}
	return name + ": " + hint
}

// nativeEvent shows what the stream dialect says beside the conversation.
func (r *Renderer) nativeEvent(l *lane, raw []byte) {
	if !bytes.Contains(raw, []byte(`"system"`)) && !bytes.Contains(raw, []byte(`"result"`)) {
		return // most lines are neither, and decoding each of them twice would show
	}
	var event struct {
		Type       string  `json:"type"`
		Subtype    string  `json:"subtype"`
		DurationMs float64 `json:"duration_ms"`
	}
	if json.Unmarshal(raw, &event) != nil {
		return
	}
	switch event.Type {
	case "system":
		r.say(l, laneColour(l.name), "["+cmp.Or(event.Subtype, "system")+"]")
	case "result":
		if event.DurationMs > 0 && event.DurationMs < 1<<53 { // larger ones overflow
			l.duration += int64(event.DurationMs)
			l.firstTs, l.lastTs = 0, 0
		}
	}
}

// orchestrator shows the harness's own events; most of them are only for programs.
func (r *Renderer) orchestrator(env trace.Envelope) {
	var event struct {
		Type     string `json:"type"`
		Mode     string `json:"mode"`
		Agent    string `json:"agent"`
		Protocol string `json:"protocol"`
		Verdict  string `json:"verdict"`
		AskID    int64  `json:"askId"`
		Limit    int64  `json:"limit"`
		Caller   string `json:"caller"`
		Torn     int64  `json:"tornBytes"`
		Text     string `json:"text"`
	}
	if json.Unmarshal(env.Event, &event) != nil {
		return
	}
	switch event.Type {
	case trace.TypeSessionStart:
		if r.silent {
			clear(r.lanes)
			r.order = nil
		}
		r.labelled = r.labelled || event.Mode != "run"
	case trace.TypeAgentStart:
		if dialect, ok := r.cfg.Dialects.Named(event.Protocol); ok {
			l := r.lane(event.Agent)
			l.setDialect(dialect)
			l.firstTs, l.lastTs = env.Ts, env.Ts // its first words may come a second later
		}
	case trace.TypeModelCall:
		var call calls.Call
		if json.Unmarshal(env.Event, &call) == nil {
			r.lane(event.Agent).fold.ModelCall(call)
		}
	case trace.TypeResumed:
		r.resumed()
	case trace.TypeSummary:
		r.verdict = event.Verdict
	case trace.TypeProtocolViolation:
		r.notice("[protocol_violation] %s did not answer ask %d", event.Agent, event.AskID)
	case trace.TypeLeadTurnLimit:
		r.notice("[lead_turn_limit] the lead has used its %d turns", event.Limit)
	case trace.TypeAdvisorConsult:
		r.notice("[advisor_consult] by %s", event.Caller)
	case trace.TypeCallRefused:
		r.notice("[call_refused] %s", event.Text)
	case trace.TypeRecovered:
		r.notice("[recovered] an earlier writer was cut off; %d bytes are torn", event.Torn)
	}
}

// resumed restarts the lanes' time: nobody worked between the end of a process and the next.
func (r *Renderer) resumed() {
	for _, l := range r.lanes {
		l.duration += l.lastTs - l.firstTs
		l.firstTs, l.lastTs = 0, 0
	}
}

func (r *Renderer) notice(format string, args ...any) {
	r.say(&lane{name: trace.Orchestrator}, errorColour.start(), fmt.Sprintf(format, args...))
}

// say prints text of a lane: the label outside the colour, the text made safe for a terminal.
func (r *Renderer) say(l *lane, start, text string) {
	label := ""
	if r.labelled && l.name != "" {
		label = display.Line(l.name) + ": "
	}
	text = display.Text(text)
	if r.cfg.Colour {
		text = start + text + reset
	}
	r.print(label + text + "\n")
}

func (r *Renderer) print(text string) {
	if r.err == nil && !r.silent {
		_, r.err = io.WriteString(r.cfg.Out, text)
	}
}
