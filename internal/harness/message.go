package harness

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OrchestratorName is the sender of everything the harness itself says to a participant.
const OrchestratorName = "@orchestrator"

// Kind is the kind of a message on the bus.
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

// inboxLine returns a message as a participant sees it. Only the first line of the text can begin
// with a tag: the lines after it are quoted.
func inboxLine(m *Message) string {
	tag := "[system]"
	switch m.Kind {
	case KindTask:
		return m.Text
	case KindAsk:
		tag = "[ask#" + strconv.FormatInt(m.AskID, 10) + "]"
	case KindAnswer:
		tag = "[answer#" + strconv.FormatInt(m.AskID, 10) + "]"
	case KindAnnounce:
		tag = "[shared]"
	case KindHuman:
		tag = "[human]"
	}
	return tag + " " + m.From + ": " + quotes.Replace(m.Text)
}

// quoteMark begins every line of a message but its first.
const quoteMark = "| "

// Quote marks every line of a text that somebody else wrote, like the lines of a message after its
// first, so that none of them can be taken for a tag.
func Quote(text string) string { return quoteMark + quotes.Replace(text) }

// quotes turns every kind of line break into a newline and a quote mark: the ASCII ones, and those
// of Unicode, which some models take for new lines.
var quotes = func() *strings.Replacer {
	var pairs []string
	for _, lineBreak := range []string{
		"\r\n", "\n", "\v", "\f", "\r", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029",
	} {
		pairs = append(pairs, lineBreak, "\n"+quoteMark)
	}
	return strings.NewReplacer(pairs...)
}()

// inboxText returns a batch of messages as the participant sees it.
func inboxText(batch []*Message) string {
	lines := make([]string, len(batch))
	for i, m := range batch {
		lines[i] = inboxLine(m)
	}
	return strings.Join(lines, "\n")
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
