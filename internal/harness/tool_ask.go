package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (c *call) ask() ToolResult {
	var args struct {
		Question string `json:"question"`
		To       string `json:"to"`
		Deadline string `json:"deadline"`
	}
	if err := c.decode(&args); err != nil {
		return failure(err)
	}
	question, err := c.text("question", args.Question)
	if err != nil {
		return failure(err)
	}
	deadline := c.hub.state.settings.AskDeadline
	if args.Deadline != "" {
		if deadline, err = parseDuration(args.Deadline); err != nil {
			return failed("Ask: deadline: %v", err)
		}
	}
	return c.locked(func(s *state) ToolResult {
		before := c.before()
		if before != nil && (args.To != "" || c.member != s.lead) {
			return asked(before.askIDs, nil)
		}
		addressees, absent, err := c.addressees(s, strings.TrimSpace(args.To))
		if err != nil {
			return failed("Ask: %v", err)
		}
		if before == nil {
			return asked(c.openAll(addressees, question, deadline), absent)
		}
		// A crash may have come between the lines of an ask to everybody: members it did not reach
		// are asked now.
		done, missing := before.askIDs, slices.DeleteFunc(addressees,
			func(m *member) bool { return slices.Contains(before.asked, m.name) })
		return asked(append(slices.Clone(done), c.openAll(missing, question, deadline)...), absent)
	})
}

func (c *call) openAll(addressees []*member, question string, deadline time.Duration) []int64 {
	ids := make([]int64, 0, len(addressees))
	for _, to := range addressees {
		ids = append(ids, c.hub.open(c.member, to, question, deadline, c.id))
	}
	return ids
}

// addressees decides who receives an ask, before anything is registered.
func (c *call) addressees(s *state, to string) (list []*member, absent []string, err error) {
	if s.mode == ModeSupervise && to != "" {
		return nil, nil, errors.New("\"to\" is not accepted here: there are only two of you, and the question always " +
			"goes to the other side. Leave it out")
	}
	if to != "" {
		m, err := c.named(s, to)
		return []*member{m}, nil, err
	}
	if c.member != s.lead {
		return []*member{s.lead}, nil, nil
	}
	for _, m := range s.order {
		switch {
		case m == c.member:
		case m.gone != "":
			absent = append(absent, m.name)
		default:
			list = append(list, m)
		}
	}
	if len(list) == 0 {
		return nil, nil, errors.New("there is nobody else in the session to ask")
	}
	return list, absent, nil
}

func (c *call) named(s *state, to string) (*member, error) {
	m := s.members[to]
	switch {
	case m == nil:
		return nil, fmt.Errorf("there is no participant %q; present are %s", c.hub.clean(to),
			strings.Join(c.hub.present(c.member), ", "))
	case m == c.member:
		return nil, errors.New("you cannot ask yourself")
	case m.gone != "":
		return nil, fmt.Errorf("%s cannot be asked any more: it %s", m.name, m.gone)
	default:
		return m, nil
	}
}

func asked(ids []int64, absent []string) ToolResult {
	text, _ := json.Marshal(struct { // numbers and strings always marshal
		AskIDs []int64  `json:"askIds"`
		Absent []string `json:"absent,omitempty"`
	}{ids, absent})
	return ToolResult{Text: string(text)}
}

// askNumber is the id of an ask as models write it: a number, or a string that holds one, with or
// without its tag.
type askNumber struct {
	given bool
	id    int64
}

func (n *askNumber) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	if text == "null" || text == "" {
		return nil
	}
	text = strings.TrimPrefix(strings.Trim(text, "[] "), "ask#")
	id, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(text, "#"), ".0"), 10, 64)
	if err != nil {
		return fmt.Errorf("askId must be the number of an ask, not %s", data)
	}
	n.given, n.id = true, id
	return nil
}

// message reads the arguments of a tool that says something, perhaps in answer to an ask.
func (c *call) message() (text string, ask askNumber, err error) {
	var args struct {
		Message string    `json:"message"`
		AskID   askNumber `json:"askId"`
	}
	if err := c.decode(&args); err != nil {
		return "", ask, err
	}
	text, err = c.text("message", args.Message)
	return text, args.AskID, err
}

func (c *call) answer() ToolResult {
	message, ask, err := c.message()
	if err != nil {
		return failure(err)
	}
	return c.locked(func(s *state) ToolResult {
		if !ask.given {
			return c.answerOnly(s, message)
		}
		a := s.asks[ask.id]
		switch {
		case a == nil:
			return failed("Answer: ask #%d %s", ask.id, c.closedReason(s, ask.id))
		case a.addressee != c.member:
			return failed("Answer: ask #%d was put to %s, not to %s; it stays open", a.id, a.addressee.name,
				c.member.name)
		default:
			return c.answerAsk(s, a, message)
		}
	})
}

func (c *call) closedReason(s *state, id int64) string {
	switch s.endOf(id) {
	case askAnswered:
		return "has been answered already"
	case askCancelled:
		return "is not open any more: it was cancelled"
	default:
		return "does not exist; " + owedText(c.member)
	}
}

func owedText(m *member) string {
	if len(m.owed) == 0 {
		return "you owe no answer"
	}
	var ids []string
	for _, a := range m.owed[:min(len(m.owed), 20)] {
		ids = append(ids, fmt.Sprintf("#%d", a.id))
	}
	return "you owe answers to " + strings.Join(ids, ", ")
}

// answerOnly handles an Answer without id: it answers the only ask owed; otherwise it is announced
// to everybody.
func (c *call) answerOnly(s *state, message string) ToolResult {
	a, owed := impliedAsk(c.member)
	if a != nil {
		return c.answerAsk(s, a, message)
	}
	c.hub.post(&Message{
		Kind: KindAnnounce,
		From: c.member.name,
		Text: message,
		Call: c.id,
	})
	return ToolResult{Text: fmt.Sprintf("Sent to everybody as an announcement, because no askId was given and you "+
		"owe %d answers. To answer one ask, give its askId.", owed)}
}

// impliedAsk returns the only ask that an answer without id can mean, and how many the member owes.
// An ask that it has not seen is never meant, even if it is the only one.
func impliedAsk(m *member) (*ask, int) {
	seen := slices.DeleteFunc(slices.Clone(m.owed), func(a *ask) bool { return !a.delivered })
	if len(seen) == 1 {
		return seen[0], len(m.owed)
	}
	return nil, len(m.owed)
}

func (c *call) answerAsk(s *state, a *ask, message string) ToolResult {
	queued := !a.delivered
	m := c.hub.post(&Message{
		Kind:  KindAnswer,
		From:  c.member.name,
		To:    a.asker.name,
		AskID: a.id,
		Text:  message,
		Call:  c.id,
	})
	c.hub.noteDropped(a, queued)
	if s.mode == ModeDiscuss && a.asker == s.lead {
		c.hub.reply(&replyEvent{
			Type:    typeReply,
			Kind:    ReplyReply,
			Agent:   c.member.name,
			Message: m.ID,
		})
	}
	return answered(m)
}

func answered(m *Message) ToolResult {
	if m.Kind != KindAnswer {
		return ToolResult{Text: "Sent to everybody as an announcement."}
	}
	return ToolResult{Text: "Your answer to ask #" + strconv.FormatInt(m.AskID, 10) + " is on its way to " + m.To + "."}
}

func (c *call) announce() ToolResult {
	message, _, err := c.message()
	if err != nil {
		return failure(err)
	}
	return c.locked(func(*state) ToolResult {
		c.hub.post(&Message{
			Kind: KindAnnounce,
			From: c.member.name,
			Text: message,
			Call: c.id,
		})
		return ToolResult{Text: "Announced to everybody."}
	})
}

func (c *call) rollCall() ToolResult {
	return c.locked(func(s *state) ToolResult {
		type entry struct {
			Name string `json:"name"`
			Role string `json:"role"`
			Gone string `json:"gone,omitempty"`
		}
		list := make([]entry, len(s.order))
		for i, m := range s.order {
			list[i] = entry{m.name, m.role, m.gone}
		}
		text, _ := json.Marshal(list) // strings always marshal
		return ToolResult{Text: string(text)}
	})
}
