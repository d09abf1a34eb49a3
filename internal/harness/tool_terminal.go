package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

func (c *call) conclude() ToolResult {
	var args struct {
		Verdict string `json:"verdict"`
		Summary string `json:"summary"`
	}
	if err := c.decode(&args); err != nil {
		return failure(err)
	}
	e := conclusionEvent{Verdict: args.Verdict, Summary: args.Summary}
	return c.terminate(e, VerdictSuccess, VerdictFailure)
}

func (c *call) adjourn() ToolResult {
	var args struct {
		Verdict string `json:"verdict"`
		Summary string `json:"summary"`
		Outcome string `json:"outcome"`
	}
	if err := c.decode(&args); err != nil {
		return failure(err)
	}
	e := conclusionEvent{Verdict: args.Verdict, Summary: args.Summary, Outcome: c.hub.clean(args.Outcome)}
	return c.terminate(e, VerdictAdjourned, VerdictFailed)
}

func (c *call) recess() ToolResult {
	var args struct {
		Reason  string          `json:"reason"`
		Trigger json.RawMessage `json:"trigger"`
	}
	if err := c.decode(&args); err != nil {
		return failure(err)
	}
	trigger, err := parseTrigger(args.Trigger)
	if err != nil {
		return failed("Recess: %v", err)
	}
	trigger.Signal = c.hub.clean(trigger.Signal)
	return c.terminate(conclusionEvent{Verdict: VerdictRecessed, Summary: args.Reason, Trigger: trigger},
		VerdictRecessed)
}

// parseTrigger reads a trigger and rejects any that a bridge could not wait for.
func parseTrigger(data json.RawMessage) (*Trigger, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, errors.New("\"trigger\" is missing; give kind missing_input, escalation_needed or elapsed")
	}
	var t Trigger
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&t); err != nil {
		return nil, fmt.Errorf("\"trigger\": %w", err)
	}
	extra := Trigger{Kind: t.Kind}
	switch t.Kind {
	case TriggerMissingInput:
		if t.Replies < 1 {
			return nil, errors.New("trigger missing_input: \"replies\" must be at least 1")
		}
		extra.Replies = t.Replies
	case TriggerEscalationNeeded:
		if strings.TrimSpace(t.Signal) == "" {
			return nil, errors.New("trigger escalation_needed: \"signal\" is empty")
		}
		extra.Signal = t.Signal
	case TriggerElapsed:
		if _, err := parseDuration(t.Elapsed); err != nil {
			return nil, fmt.Errorf("trigger elapsed: %w", err)
		}
		extra.Elapsed = t.Elapsed
	default:
		return nil, fmt.Errorf("trigger kind %q is unknown; use missing_input, escalation_needed or elapsed", t.Kind)
	}
	if t != extra {
		return nil, fmt.Errorf("trigger %s: it has fields of another kind", t.Kind)
	}
	return &t, nil
}

// terminate ends the session, unless something is still open that the lead does not know about.
func (c *call) terminate(e conclusionEvent, verdicts ...string) ToolResult {
	if !slices.Contains(verdicts, e.Verdict) {
		return failed("%s: \"verdict\" must be %s, not %q", c.tool, strings.Join(verdicts, " or "),
			c.hub.clean(e.Verdict))
	}
	field := "summary"
	if c.tool == toolRecess {
		field = "reason"
	}
	var err error
	if e.Summary, err = c.text(field, e.Summary); err != nil {
		return failure(err)
	}
	e.Type, e.By, e.Tool, e.Call = typeConclusion, c.member.name, c.tool, c.id
	return c.locked(func(s *state) ToolResult {
		open := refusalEvent{
			Type:   typeRefusal,
			By:     c.member.name,
			Tool:   c.tool,
			AskIDs: s.openAsks(),
			Call:   c.id,
		}
		if s.mode == ModeDiscuss {
			open.Unread = s.unreadHumans()
		}
		if len(open.AskIDs)+len(open.Unread) > 0 && !c.warned(open) {
			c.hub.commit(open)
			return c.refuse(s, open)
		}
		before := s.lastMessage
		c.hub.commit(e)
		c.hub.cancelAll(cancelConcluded, concludedText(e))
		if c.hub.onConclude != nil {
			c.hub.onConclude(before)
		}
		return ToolResult{Text: fmt.Sprintf("The session is over: %s. End your turn now.", e.Verdict)}
	})
}

// warned reports whether the lead knows exactly what is open, in answer to the same
// tool.
func (c *call) warned(open refusalEvent) bool {
	before := c.refused
	return before != nil && before.Tool == open.Tool && slices.Equal(before.AskIDs, open.AskIDs) &&
		slices.Equal(before.Unread, open.Unread)
}

func (c *call) refuse(s *state, open refusalEvent) ToolResult {
	var reasons []string
	for _, id := range open.AskIDs {
		if a := s.asks[id]; a != nil {
			reasons = append(reasons, fmt.Sprintf("ask #%d from %s to %s is unanswered", id, a.asker.name,
				a.addressee.name))
		} else {
			reasons = append(reasons, fmt.Sprintf("ask #%d was unanswered", id))
		}
	}
	if n := len(open.Unread); n > 0 {
		reasons = append(reasons, fmt.Sprintf("%d human messages have arrived that you have not seen; end your turn "+
			"to get them", n))
	}
	return failed("%s was refused: %s. Wait by ending your turn, or call %s again to end the session all the same.",
		c.tool, strings.Join(reasons, "; "), c.tool)
}

func concludedText(e conclusionEvent) string {
	return fmt.Sprintf("%s ended the session with %s", e.By, e.Tool)
}

func (c *call) terminal() bool {
	return c.tool == toolConclude || c.tool == toolAdjourn || c.tool == toolRecess
}

// begin notes which refusal the lead knows of when it makes a terminal call.
func (c *call) begin() {
	if !c.terminal() {
		return
	}
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	c.refused = c.hub.refused
}

// returned notes that the lead has received its refusal: it makes further calls knowingly.
func (c *call) returned(result ToolResult) {
	if !result.IsError || !c.terminal() {
		return
	}
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	c.hub.refused = c.hub.state.refusal
}
