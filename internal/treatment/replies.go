package treatment

import (
	"bytes"
	"path"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
)

// Turn is what an agent shows of one reply of its model.
type Turn struct {
	Text  string
	Calls []ToolUse
}

// ToolUse is a tool call of a turn: its id, and the texts in its arguments.
type ToolUse struct {
	ID    string
	Texts []string
}

// leastSaid is how many letters a text has that does not occur in other replies by accident.
const leastSaid = 8

// Unsaid returns the first turn that no reply in the record contains, as a text; empty if the
// record has them all, or does not have the replies. Letters and digits count, so that it does not
// matter how a stream cuts them and how an agent sets them. At least half of a text must be there,
// or one of the calls: agents put paths and more into these.
func Unsaid(calls string, turns []Turn) (string, error) {
	r, _, err := open(calls, 0, "")
	if r == nil || err != nil {
		return "", err
	}
	defer r.record.Close()
	var said strings.Builder
	for _, call := range r.own {
		body, err := r.record.Body(call.Response)
		if err != nil && reached(call) {
			return "", nil //nolint:nilerr // nobody can know what it said
		}
		r.reply(&said, body)
		said.WriteByte('\n')
	}
	for _, turn := range turns {
		if !turn.isIn(said.String()) {
			return turn.shown(), nil
		}
	}
	return "", nil
}

// reply writes the letters of what a model says in the body of a response: JSON, or a stream of it.
func (r *reader) reply(said *strings.Builder, body []byte) {
	for line := range bytes.Lines(body) {
		event, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if !ok {
			continue
		}
		if value, ok := r.parser.Parse(bytes.TrimSpace(event)); ok {
			saidIn(said, value, false)
		}
	}
	if value, ok := r.parser.Parse(body); ok {
		saidIn(said, value, false)
	}
}

// saidIn writes the letters of texts, arguments and ids of calls, whichever protocol a value has.
func saidIn(said *strings.Builder, value jsontape.Value, whole bool) {
	switch value.Kind() {
	case jsontape.String:
		if whole {
			letters(said, value.Text())
		}
	case jsontape.Array:
		for element := range value.Elements() {
			saidIn(said, element, whole)
		}
	case jsontape.Object:
		for name, member := range value.Members() {
			switch name {
			case "text", "content", "delta", "partial_json", "arguments", "refusal", "summary", "input", "args":
				saidIn(said, member, whole || member.Kind() == jsontape.String || name == "input" || name == "args")
			case "id", "call_id":
				said.WriteByte('\n')
				letters(said, member.Text())
				said.WriteByte('\n')
			default:
				saidIn(said, member, whole)
			}
		}
	}
}

func letters(to *strings.Builder, text string) {
	for _, c := range text {
		if isWordRune(c) {
			to.WriteRune(c)
		}
	}
}

func lettersOf(text string) string {
	var found strings.Builder
	letters(&found, text)
	return found.String()
}

// isIn reports whether the replies contain the turn.
func (t Turn) isIn(said string) bool {
	all, found := 0, 0
	for line := range strings.Lines(t.Text) {
		line = lettersOf(line)
		all += len(line)
		if strings.Contains(said, line) {
			found += len(line)
		}
	}
	if all >= leastSaid {
		return 2*found >= all
	}
	for _, call := range t.Calls {
		known := len(call.Texts) == 0
		for _, text := range append(call.Texts, call.ID) {
			for line := range strings.Lines(text) {
				whole, base := lettersOf(line), lettersOf(path.Base(strings.TrimSpace(line)))
				known = known || len(whole) < leastSaid || strings.Contains(said, whole) ||
					len(base) >= leastSaid/2 && strings.Contains(said, base)
			}
		}
		if !known {
			return false
		}
	}
	return true
}

func (t Turn) shown() string {
	shown := []string{t.Text}
	for _, call := range t.Calls {
		shown = append(shown, call.Texts...)
	}
	return strings.TrimSpace(strings.Join(shown, " "))
}
