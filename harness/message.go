package harness

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OrchestratorName is the sender of everything the harness itself says to a participant.
const OrchestratorName = "@orchestrator"

// Kind is what a message on the bus is.
type Kind string

// The kinds of messages.
const (
	KindTask      Kind = "task"      // what the session is about; only the lead gets it
	KindAsk       Kind = "ask"       // wants an answer
	KindAnswer    Kind = "answer"    // answers an ask
	KindAnnounce  Kind = "announce"  // to everybody, no answer expected
	KindSynthetic Kind = "synthetic" // said by the harness: reminders and nudges
	KindHuman     Kind = "human"     // said by a person in the discussion thread
)

// Message is one message on the bus.
type Message struct {
	ID   int64  `json:"id"`
	Kind Kind   `json:"kind"`
	From string `json:"from"`
	// To is the receiver; empty for everybody but the sender.
	To    string `json:"to"`
	AskID int64  `json:"askId,omitempty"` // of asks and answers
	// DeadlineMs is when an ask expires, in epoch milliseconds; 0 is never.
	DeadlineMs int64 `json:"deadlineMs,omitempty"`
	// InboxSeq is the place of a human message in the bridge's inbox.
	InboxSeq int64 `json:"inboxSeq,omitempty"`
	// Reminds lists the asks that a synthetic message reminds of.
	Reminds []int64 `json:"reminds,omitempty"`
	// Call identifies the tool call that sent the message, where the agent gave an id.
	Call string `json:"call,omitempty"`
	Text string `json:"text"`
}

// appendInboxLine writes the line under which a participant sees a message. Whatever is in the
// text, only its first line can begin with a tag: the lines after it are quoted.
func appendInboxLine(b []byte, m *Message) []byte {
	switch m.Kind {
	case KindTask:
		return append(b, m.Text...)
	case KindAsk:
		b = appendTag(b, "ask", m.AskID)
	case KindAnswer:
		b = appendTag(b, "answer", m.AskID)
	case KindAnnounce:
		b = append(b, "[shared] "...)
	case KindHuman:
		b = append(b, "[human] "...)
	default:
		b = append(b, "[system] "...)
	}
	b = append(b, m.From...)
	b = append(b, ": "...)
	return appendQuoted(b, m.Text)
}

func appendTag(b []byte, tag string, id int64) []byte {
	b = append(b, '[')
	b = append(b, tag...)
	b = append(b, '#')
	b = strconv.AppendInt(b, id, 10)
	return append(b, "] "...)
}

// quoteMark begins every line of a message but its first.
const quoteMark = "| "

// Quote marks every line of a text that somebody else wrote, as the lines of messages after their
// first are marked, so that none of them can be taken for a tag.
func Quote(text string) string { return string(appendQuoted([]byte(quoteMark), text)) }

// appendQuoted appends text with every kind of line break made into a newline and a quote mark.
func appendQuoted(b []byte, text string) []byte {
	if !hasLineBreak(text) {
		return append(b, text...)
	}
	for i := 0; i < len(text); {
		size := lineBreak(text[i:])
		if size == 0 {
			b = append(b, text[i])
			i++
			continue
		}
		i += size
		b = append(b, '\n')
		b = append(b, quoteMark...)
	}
	return b
}

func hasLineBreak(text string) bool {
	if strings.IndexByte(text, '\n') >= 0 || strings.IndexByte(text, '\r') >= 0 {
		return true
	}
	for i := range len(text) {
		if c := text[i]; (c < 0x20 || c >= utf8.RuneSelf) && lineBreak(text[i:]) > 0 {
			return true
		}
	}
	return false
}

// lineBreak returns the length of the line break at the start of text: the ASCII ones, and those of
// Unicode, which some models take for new lines.
func lineBreak(text string) int {
	switch {
	case strings.HasPrefix(text, "\r\n"):
		return 2
	case text[0] >= '\n' && text[0] <= '\r' || text[0] >= 0x1c && text[0] <= 0x1e:
		return 1
	case strings.HasPrefix(text, "\u0085"):
		return 2
	case strings.HasPrefix(text, "\u2028"), strings.HasPrefix(text, "\u2029"):
		return 3
	default:
		return 0
	}
}

// inboxText is what a batch of messages looks like to the participant.
func inboxText(batch []*Message) string { return string(appendInbox(nil, batch)) }

func appendInbox(b []byte, batch []*Message) []byte {
	for i, m := range batch {
		if i > 0 {
			b = append(b, '\n')
		}
		b = appendInboxLine(b, m)
	}
	return b
}

// maxAuthor is how much of a person's name is shown.
const maxAuthor = 80

// authorName makes the name of a person fit for an inbox line: one line, and nothing in it that
// could pass for a tag or end the name early.
func authorName(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError, strings.ContainsRune("[]:@#", r):
			return -1
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		default:
			return r
		}
	}, strings.ToValidUTF8(name, ""))
	runes := []rune(strings.Join(strings.Fields(clean), " "))
	if len(runes) == 0 {
		return "somebody"
	}
	return string(runes[:min(len(runes), maxAuthor)])
}
