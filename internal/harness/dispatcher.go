package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/trace"
)

// ToolResult is the result of a tool call for the model.
type ToolResult struct {
	Text    string
	IsError bool
}

// Dispatcher carries out tool calls. It is independent of the transport: a call is a participant, a
// tool and its arguments. It is safe for use from many goroutines.
type Dispatcher struct {
	hub *hub
	// surfaces are the tools that each role has, worked out once.
	leadTools, participantTools []string
}

// DispatcherConfig describes a session without a loop, for callers that drive the tools directly.
type DispatcherConfig struct {
	Mode Mode
	// Participants are the members other than the lead, whose name follows from the mode.
	Participants []AgentConfig
	Trace        *trace.Writer // nil records nothing
	Redactor     *redact.Redactor
	Options      Options
}

// NewDispatcher returns a dispatcher for a session whose rounds the caller manages.
func NewDispatcher(cfg DispatcherConfig) (*Dispatcher, error) {
	if err := checkNames(cfg.Participants); err != nil {
		return nil, err
	}
	lead := cfg.Mode.traits().lead
	members := append([]AgentConfig{{Name: lead, Role: lead}}, cfg.Participants...)
	s := newState(cfg.Mode, members, lead)
	s.settings = cfg.Options.settings()
	writer := cfg.Trace
	if writer == nil {
		writer = trace.NewWriter(io.Discard, trace.Config{})
	}
	return newDispatcher(&hub{state: s, trace: writer, redactor: cfg.Redactor}), nil
}

func newDispatcher(h *hub) *Dispatcher {
	advisor := h.advisor != nil
	return &Dispatcher{
		hub: h, leadTools: surface(h.state.mode, true, advisor),
		participantTools: surface(h.state.mode, false, advisor),
	}
}

// Delivered returns the messages that a participant was given in the round that it is in.
func (d *Dispatcher) Delivered(participant string) []Message {
	d.hub.mu.Lock()
	defer d.hub.mu.Unlock()
	m := d.hub.state.members[participant]
	if m == nil || m.round == nil {
		return nil
	}
	messages := make([]Message, len(m.round.batch))
	for i, message := range m.round.batch {
		messages[i] = *message
	}
	return messages
}

// call is one tool call on its way through the dispatcher.
type call struct {
	ctx     context.Context
	hub     *hub
	member  *member
	offered []string // the tools that the member has
	tool    string
	args    json.RawMessage
	id      string
	// changed says that the call has written lines to the trace.
	changed bool
	// refused is the refusal that the lead had seen when it made this call.
	refused *refusalEvent
}

// Call carries out a tool call. The result says what the caller did wrong, for the model to read;
// an error means that the session cannot continue. The line of the call is in the trace when it
// returns.
func (d *Dispatcher) Call(ctx context.Context, participant, tool string, arguments json.RawMessage) (ToolResult,
	error,
) {
	return d.CallOnce(ctx, "", participant, tool, arguments)
}

// CallOnce is Call for agents that can repeat a call after a crash: a call with the id, the tool
// and the arguments of one that was carried out in the same round is not carried out again, and
// gets the same result. The id alone does not make a repetition, because some models use one id for
// several calls. An empty id never repeats.
func (d *Dispatcher) CallOnce(ctx context.Context, id, participant, tool string, arguments json.RawMessage) (ToolResult,
	error,
) {
	m := d.hub.state.members[participant]
	if m == nil {
		return ToolResult{}, fmt.Errorf("call of %s: no participant is called %q", tool, participant)
	}
	c := &call{
		ctx:     ctx,
		hub:     d.hub,
		member:  m,
		offered: d.surface(m),
		tool:    tool,
		args:    arguments,
		id:      callKey(d.hub.clean(id), tool, arguments),
	}
	if m.active != nil {
		m.active()
	}
	c.begin()
	result := c.run()
	c.recordIdle(result)
	if err := d.hub.flush(); err != nil {
		return ToolResult{}, fmt.Errorf("call of %s by %s: %w", tool, participant, err)
	}
	c.returned(result)
	return result, nil
}

// callKey identifies a call within a round: by the model's id for it, the tool and the arguments,
// however they are spaced and ordered. Numbers count as they are written, because as floats two
// large ones would be equal. It is empty where the model gave no id.
func callKey(id, tool string, arguments json.RawMessage) string {
	if id == "" {
		return ""
	}
	var parsed any
	decoder := json.NewDecoder(bytes.NewReader(arguments))
	decoder.UseNumber()
	if decoder.Decode(&parsed) == nil {
		arguments, _ = json.Marshal(parsed) // it was just decoded
	}
	sum := sha256.Sum256(append([]byte(tool+"\x00"), arguments...))
	return id + "#" + hex.EncodeToString(sum[:8])
}

// Refused records that another process than a participant's agent tried to call tools in the
// participant's name. The line is in the trace when it returns.
func (d *Dispatcher) Refused(participant, text string) {
	d.hub.mu.Lock()
	d.hub.commit(noteEvent{Type: trace.TypeCallRefused, Agent: participant, Text: d.hub.clean(text)})
	d.hub.mu.Unlock()
	_ = d.hub.flush() // a broken trace is reported where it matters
}

// recordIdle writes the line of a call that changed nothing: it was refused, or it only asked for
// something.
func (c *call) recordIdle(result ToolResult) {
	if c.changed {
		return
	}
	e := toolCallEvent{
		Type:  typeToolCall,
		Agent: c.member.name,
		Tool:  c.tool,
		OK:    !result.IsError,
	}
	if result.IsError {
		e.Error = result.Text
	}
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	c.hub.commit(e)
}

func (c *call) run() ToolResult {
	if !slices.Contains(c.offered, c.tool) {
		c.tool = c.hub.clean(c.tool)
		return failed("%s has no tool %q; it has %s", c.member.name, c.tool, strings.Join(c.offered, ", "))
	}
	switch c.tool {
	case toolAsk:
		return c.ask()
	case toolAnswer:
		return c.answer()
	case toolAnnounce:
		return c.announce()
	case toolRollCall:
		return c.rollCall()
	case toolConclude:
		return c.conclude()
	case toolRequestForComment:
		return c.requestForComment()
	case toolAcknowledge:
		return c.acknowledge()
	case toolRecess:
		return c.recess()
	case toolAdjourn:
		return c.adjourn()
	default:
		return c.consult()
	}
}

// locked runs a tool under the lock of the session, unless the session is over or the call was
// carried out before.
func (c *call) locked(run func(s *state) ToolResult) ToolResult {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	s := c.hub.state
	if done, result := c.repeated(); done {
		return result
	}
	if refusal := c.closed(s); refusal != "" {
		return failed("%s", refusal)
	}
	before := c.hub.commits
	result := run(s)
	c.changed = c.changed || c.hub.commits > before
	return result
}

// closed returns the reason why nothing is accepted any more, if there is one.
func (c *call) closed(s *state) string {
	switch {
	case s.conclusion != nil:
		return fmt.Sprintf("The session was concluded (%s); %s was not carried out and nothing more is accepted.%s "+
			"End your turn.", s.conclusion.Verdict, c.tool, c.unanswered())
	case c.hub.stopped:
		return fmt.Sprintf("The session has ended; %s was not carried out.%s End your turn.", c.tool, c.unanswered())
	case c.member.gone != "":
		return fmt.Sprintf("You are no longer part of the session (%s %s); %s was not carried out.", c.member.name,
			c.member.gone, c.tool)
	default:
		return ""
	}
}

// unanswered says why the asks of a caller whose agent outlives the session get no answer: it will
// not read its inbox again.
func (c *call) unanswered() string {
	var b strings.Builder
	for _, m := range c.member.queue {
		if m.Kind == KindAnswer && m.From == OrchestratorName {
			fmt.Fprintf(&b, " Your ask #%d: %s.", m.AskID, strings.Trim(m.Text, "[]"))
		}
	}
	return b.String()
}

// before returns the record of the first time that the call was made, or nil.
func (c *call) before() *callRecord {
	if c.id == "" || c.member.round == nil {
		return nil
	}
	return c.member.round.calls[c.id]
}

// repeated answers a call that was carried out before.
func (c *call) repeated() (bool, ToolResult) {
	r := c.before()
	if r == nil || r.tool == "" {
		return false, ToolResult{}
	}
	switch {
	case r.refusal != nil:
		return true, c.refuse(c.hub.state, *r.refusal)
	case r.tool == toolAsk: // ask itself handles what is missing
		return c.closed(c.hub.state) != "", asked(r.askIDs, nil)
	case r.tool == toolAnswer:
		return true, answered(r.message)
	case r.tool == toolRequestForComment:
		return true, requested(r.id, "")
	default:
		return true, ToolResult{Text: r.tool + " was carried out."}
	}
}

// decode reads the arguments, leniently towards fields it does not know and strictly towards the
// types of those it does.
func (c *call) decode(into any) error {
	args := c.args
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	err := json.Unmarshal(args, into)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType) && wrongType.Field != "":
		return fmt.Errorf("%s: %q must be a %s, not a %s", c.tool, wrongType.Field, wrongType.Type, wrongType.Value)
	case wrongType != nil:
		return fmt.Errorf("%s: the arguments must be a JSON object, not a JSON %s", c.tool, wrongType.Value)
	case err != nil:
		return fmt.Errorf("%s: the arguments must be a JSON object: %w", c.tool, err)
	default:
		return nil
	}
}

// text checks and cleans a text that a member wants to send.
func (c *call) text(field, value string) (string, error) {
	if strings.TrimSpace(value) == "" {
		return "", fmt.Errorf("%s: %q is empty", c.tool, field)
	}
	if limit := c.hub.state.settings.MaxMessageBytes; len(value) > limit {
		return "", fmt.Errorf("%s: %q has %d bytes, and a message may have %d; write it to a file and send the path",
			c.tool, field, len(value), limit)
	}
	return c.hub.clean(value), nil
}

func failed(format string, args ...any) ToolResult {
	return ToolResult{Text: fmt.Sprintf(format, args...), IsError: true}
}

func failure(err error) ToolResult { return ToolResult{Text: err.Error(), IsError: true} }
