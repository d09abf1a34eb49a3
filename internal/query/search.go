package query

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/query/internal/literal"
	"github.com/fit-eval/fit/internal/query/internal/scan"
)

// Search is a question for text.
type Search struct {
	// Pattern is a regular expression in RE2 syntax. Case does not matter.
	Pattern string
	// Limit is the number of entries after which to stop; 0 means no limit.
	Limit int
	// Context is the number of entries before and after a hit to show with it.
	Context int
	// Full shows whole blocks instead of excerpts.
	Full bool
}

// Hit is one entry in which something was found.
type Hit struct {
	Turn    *Entry   `json:"turn"`
	Matches []string `json:"matches"`
	Context []*Entry `json:"context,omitempty"`
	// withContext keeps an empty context in the output when one was asked for.
	withContext bool
}

// MarshalJSON writes the context whenever one was asked for.
func (h *Hit) MarshalJSON() ([]byte, error) {
	type plainHit Hit
	if !h.withContext || len(h.Context) > 0 {
		return json.Marshal((*plainHit)(h))
	}
	return json.Marshal(struct {
		*plainHit
		Context []*Entry `json:"context"`
	}{(*plainHit)(h), []*Entry{}})
}

// excerptMargin is how many characters are shown on both sides of a match.
const excerptMargin = 40

// Search shows the entries that contain a match in what was said, thought, called, returned, or
// noted by the system.
func (t *Trace) Search(ctx context.Context, q Search, visit func(*Hit) error) error {
	expr, err := regexp.Compile("(?i)" + q.Pattern)
	if err != nil {
		return fmt.Errorf("pattern %q: %w", q.Pattern, err)
	}
	s := &searcher{query: q, expr: expr, visit: visit}
	p := plan{visit: s.look}
	if q.Context == 0 { // else the neighbours of a hit must be seen too
		rare := literal.NewFilter(q.Pattern)
		p.keep = func(ev *scan.Event) bool { return (rare == nil || rare(ev)) && s.matchesEvent(ev) }
	}
	if _, err := t.walk(ctx, p); err != nil {
		return err
	}
	return s.flush(len(s.waiting))
}

// searcher holds back hits until the entries after them are known.
type searcher struct {
	query   Search
	expr    *regexp.Regexp
	visit   func(*Hit) error
	found   int
	before  []*Entry
	waiting []*Hit
}

// matchesEvent decodes an event on the core that scans it, so that all cores share the slow
// matching.
func (s *searcher) matchesEvent(ev *scan.Event) bool {
	for role, part := range entriesOf(ev) {
		e := Cursor{ev: ev, Role: role, part: part}
		if len(s.matches(e.decode())) > 0 {
			return true
		}
	}
	return false
}

func (s *searcher) look(e *Cursor) error {
	if s.query.Limit > 0 && s.found >= s.query.Limit && len(s.waiting) == 0 {
		return errStop
	}
	entry := e.Entry()
	n := s.query.Context
	ready := 0
	for _, hit := range s.waiting {
		if entry.Index > hit.Turn.Index+n {
			ready++
			continue
		}
		hit.Context = append(hit.Context, entry)
	}
	if err := s.flush(ready); err != nil {
		return err
	}
	if s.query.Limit == 0 || s.found < s.query.Limit {
		if err := s.match(entry); err != nil {
			return err
		}
	}
	s.remember(entry)
	return nil
}

func (s *searcher) match(entry *Entry) error {
	matches := s.matches(entry)
	if len(matches) == 0 {
		return nil
	}
	s.found++
	hit := &Hit{Turn: entry, Matches: matches, withContext: s.query.Context > 0}
	if s.query.Context == 0 {
		return s.visit(hit)
	}
	for _, earlier := range s.before {
		if earlier.Index >= entry.Index-s.query.Context {
			hit.Context = append(hit.Context, earlier)
		}
	}
	s.waiting = append(s.waiting, hit)
	return nil
}

func (s *searcher) remember(entry *Entry) {
	if s.query.Context == 0 {
		return
	}
	s.before = append(s.before, entry)
	if len(s.before) > s.query.Context {
		s.before = s.before[1:]
	}
}

func (s *searcher) flush(n int) error {
	for _, hit := range s.waiting[:n] {
		if err := s.visit(hit); err != nil {
			return err
		}
	}
	s.waiting = s.waiting[n:]
	return nil
}

// matches returns one line for every block of the entry that contains a match.
func (s *searcher) matches(entry *Entry) []string {
	var matches []string
	try := func(label, text string) {
		if excerpt, ok := s.excerpt(text); ok {
			matches = append(matches, label+": "+excerpt)
		}
	}
	switch entry.Role {
	case RoleAssistant:
		for i := range entry.Content {
			searchBlock(&entry.Content[i], try)
		}
	case RoleUser:
		for _, b := range entry.Content {
			try("user_text", b.Text)
		}
	case RoleToolResult:
		if entry.Result != nil {
			try("result", *entry.Result)
		}
	case RoleSystem:
		try("system", string(entry.Data))
	}
	return matches
}

func searchBlock(b *Block, try func(label, text string)) {
	switch b.Type {
	case BlockText:
		try("text", b.Text)
	case BlockThinking:
		try("thinking", b.Text)
	case BlockToolUse:
		try("tool_name", b.Name)
		if b.Input != nil {
			try("tool_input("+b.Name+")", string(b.Input))
		}
	}
}

// excerpt returns the first match with its surroundings, or the whole text.
func (s *searcher) excerpt(text string) (string, bool) {
	at := s.expr.FindStringIndex(text)
	if at == nil {
		return "", false
	}
	if s.query.Full {
		return text, true
	}
	start, end := at[0], at[1]
	for n := 0; n < excerptMargin && start > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	for n := 0; n < excerptMargin && end < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	excerpt := text[start:end]
	if start > 0 {
		excerpt = "..." + excerpt
	}
	if end < len(text) {
		excerpt += "..."
	}
	return excerpt, true
}
