package redact

import (
	"bytes"
	"encoding/json"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// A Lane redacts the lines of one event source of a trace. On top of what
// [Redactor.JSON] does it follows the pieces in which agents stream a message,
// one event for each: a secret that is cut over several events is in none of them, but it is in the
// joined text.
//
// Lines come out one for one, in order and whole; none waits for the next. When
// a piece ends with what may be the beginning of a secret, from the fourth
// character on, that end is moved into the next piece of the same message. The
// joined text stays the same, with a placeholder in the place of a secret. If
// the message ends there, the moved end is left out: no event is left to carry
// it, and the event with the whole message, which agents send at the end, has
// it. Up to three characters of a secret that came in pieces may remain before
// its placeholder.
//
// A piece is the string value of a key "delta", or a string inside its object:
// the shapes of Anthropic's content_block_delta, of OpenAI's responses and chat
// completions, and of the agents' own protocols, whose events are called
// assistantMessageEvent or item/…/delta. Other strings of such an event, which
// may be the message so far, lose their end if it is half a secret or eight characters of one.
//
// A Lane is for one goroutine.
type Lane struct {
	r *Redactor
	// messages are those whose last piece ended in doubt.
	messages map[string]*message
	fresh    message    // one that has just begun; most pieces leave no doubt
	event    deltaEvent // the last one that was read
}

// Lane returns a Lane for a new source.
func (r *Redactor) Lane() *Lane { return &Lane{r: r, messages: map[string]*message{}} }

// Line redacts one line of JSON, with or without its line break. It returns p
// itself when nothing changes.
func (l *Lane) Line(p []byte) []byte {
	if !l.r.Enabled() {
		return p
	}
	if bytes.Contains(p, []byte(`"delta`)) && json.Valid(p) {
		p = l.pieces(p)
	} else if len(l.messages) > 0 {
		l.close(p)
	}
	return l.r.JSON(p)
}

// pieces rewrites the pieces in a line.
func (l *Lane) pieces(p []byte) []byte {
	event := l.read(p)
	var edits []edit
	for _, s := range event.strings {
		old, ok := unquote(p[s.start:s.end])
		if !ok {
			continue
		}
		var text string
		if s.piece != "" {
			text = l.piece(event, s.piece, old)
		} else {
			text = l.r.index.withoutOpenEnd(old)
		}
		if text != old {
			edits = append(edits, edit{s.start, s.end, jsonenc.String(text)})
		}
	}
	if len(edits) == 0 {
		return p
	}
	return splice(p, edits)
}

func (l *Lane) piece(event *deltaEvent, name, text string) string {
	const most = 64
	key := append(append(event.identity, 0), name...)
	m, known := l.messages[string(key)]
	if !known {
		m = &l.fresh
		*m = message{owner: event.owner}
	}
	text = m.push(l.r.index, text)
	switch {
	case m.idle() && known:
		delete(l.messages, string(key))
	case !m.idle() && !known && len(l.messages) < most:
		kept := *m
		l.messages[string(key)] = &kept
	}
	return text
}

// close forgets messages that have ended or start over.
func (l *Lane) close(p []byte) {
	boundary := false
	for _, end := range []string{`_start"`, `_stop"`, `_end"`, `"start"`, `"done"`, `.done"`, `completed"`} {
		boundary = boundary || bytes.Contains(p, []byte(end))
	}
	if !boundary || !json.Valid(p) {
		return
	}
	owner := l.read(p).owner
	for key, m := range l.messages {
		if m.owner == owner {
			delete(l.messages, key)
		}
	}
}

// deltaEvent holds the needed parts of an event that carries a piece.
type deltaEvent struct {
	strings []deltaString
	// identity distinguishes messages that are streamed at the same time, owner
	// only those of different agents and threads.
	identity []byte
	owner    string
}

// deltaString is a string value with its quotes; piece is the path that the values of consecutive
// pieces have in common, or empty.
type deltaString struct {
	start, end int
	piece      string
}

// read walks through a valid JSON document. The result is valid until the next call.
func (l *Lane) read(p []byte) *deltaEvent {
	e := &l.event
	*e = deltaEvent{strings: e.strings[:0], identity: e.identity[:0]}
	walk(p, func(found scalar) {
		if !found.isKey {
			e.scalar(found, p[found.start:found.end])
		}
	})
	return e
}

func (e *deltaEvent) scalar(found scalar, value []byte) {
	switch string(found.key) {
	case "type", "method", "role", "id", "uuid", "name", "model":
		if name := string(found.key); !found.inArray && (name == "type" || name == "method") {
			e.identity = append(append(e.identity, found.key...), value...)
		}
		return
	case "parent_tool_use_id", "session_id", "threadId":
		e.owner += string(value)
		e.identity = append(e.identity, value...)
		return
	case "index", "item_id", "itemId", "output_index", "content_index", "contentIndex", "summary_index", "summaryIndex":
		e.identity = append(append(e.identity, found.key...), value...)
		return
	}
	if value[0] != '"' {
		return
	}
	s := deltaString{start: found.start, end: found.end}
	if found.inDelta || string(found.key) == "delta" {
		s.piece = string(found.key)
	}
	e.strings = append(e.strings, s)
}

func unquote(quoted []byte) (string, bool) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), true
	}
	var s string
	err := json.Unmarshal(quoted, &s)
	return s, err == nil
}
