package query

import "context"

// Count returns the number of entries.
func (t *Trace) Count(ctx context.Context) (int, error) {
	info, err := t.walk(ctx, plan{})
	if err != nil {
		return 0, err
	}
	return info.TurnCount, nil
}

// Overview is a trace at a glance.
type Overview struct {
	Metadata         Metadata        `json:"metadata"`
	Summary          Summary         `json:"summary"`
	TurnCount        int             `json:"turnCount"`
	ResultEventTurns *int64          `json:"resultEventTurns"`
	TurnPopulations  TurnPopulations `json:"turnPopulations"`
	Tools            []ToolCount     `json:"tools"`
	TaskPrompt       *string         `json:"taskPrompt"`
	// What follows is additional.
	Verdict      string     `json:"verdict,omitempty"`
	Closing      string     `json:"closing,omitempty"`
	DiscussionID string     `json:"discussionId,omitempty"`
	Turns        int        `json:"turns"` // the models' turns
	Lanes        []LaneInfo `json:"lanes"`
	Problems     Problems   `json:"problems"`
}

// TurnPopulations says what the two numbers count.
type TurnPopulations struct {
	TurnCount        string `json:"turnCount"`
	ResultEventTurns string `json:"resultEventTurns"`
}

// Overview summarises the trace.
func (t *Trace) Overview(ctx context.Context) (*Overview, *Info, error) {
	var tools counter
	info, err := t.countTools(ctx, &tools, true)
	if err != nil {
		return nil, nil, err
	}
	o := &Overview{
		Metadata:        info.Metadata,
		Summary:         info.Summary,
		TurnCount:       info.TurnCount,
		Tools:           tools.sorted(),
		TaskPrompt:      info.TaskPrompt,
		TurnPopulations: TurnPopulations{"rendered-trace-turns", "result-event-turns"},
		Verdict:         info.Verdict,
		Closing:         info.Closing,
		DiscussionID:    info.DiscussionID,
		Turns:           info.Turns,
		Lanes:           info.Lanes,
		Problems:        info.Problems,
	}
	if o.Lanes == nil {
		o.Lanes = []LaneInfo{}
	}
	o.ResultEventTurns = new(info.Summary.NumTurns)
	return o, info, nil
}

// Range shows the entries at the positions [from, to) among the wanted entries. Negative positions
// count from the end.
func (t *Trace) Range(ctx context.Context, from, to int, visit func(*Entry) error) error {
	if from < 0 || to < 0 {
		total, err := t.Count(ctx)
		if err != nil {
			return err
		}
		from, to = fromEnd(from, total), fromEnd(to, total)
	}
	var start checkpoint
	if len(t.opts.Lanes) == 0 { // else positions are not the numbers of entries
		start = t.before(from)
	}
	position := start.entry
	_, err := t.walk(ctx, plan{start: start, visit: func(e *Cursor) error {
		at := position
		position++
		if at >= to {
			return errStop
		}
		if at < from {
			return nil
		}
		return visit(e.Entry())
	}})
	return err
}

func fromEnd(position, total int) int {
	if position < 0 {
		return max(0, total+position)
	}
	return position
}

// Tail shows the last n entries.
func (t *Trace) Tail(ctx context.Context, n int, visit func(*Entry) error) error {
	// The places of the last entries go round in a ring: a file of any length leaves only n of them
	// in memory, and only those are decoded.
	ring := make([]entryPosition, 0, min(n, 1024))
	at := 0
	_, err := t.walk(ctx, plan{visit: func(e *Cursor) error {
		if len(ring) < n {
			ring = append(ring, t.position(e))
			return nil
		}
		if n > 0 {
			ring[at] = t.position(e)
			at = (at + 1) % n
		}
		return nil
	}})
	if err != nil {
		return err
	}
	reader, err := t.positionReader()
	if err != nil {
		return err
	}
	defer reader.close()
	for i := range ring {
		entry, err := reader.entry(&ring[(at+i)%len(ring)])
		if err != nil {
			return err
		}
		if err := visit(entry); err != nil {
			return err
		}
	}
	return nil
}

// Entry returns the entry of an index, nil if there is none.
func (t *Trace) Entry(ctx context.Context, n int) (*Entry, error) {
	var found *Entry
	_, err := t.walk(ctx, plan{
		start: t.before(n),
		visit: func(e *Cursor) error {
			if e.Index != n {
				return nil
			}
			found = e.Entry()
			return errStop
		},
	})
	return found, err
}

// Criteria select entries; an entry must meet all that are set.
type Criteria struct {
	Role  Role
	Tool  string // an assistant entry that uses it
	Error bool   // a tool result that failed
}

func (c Criteria) match(e *Cursor) bool {
	return (c.Role == "" || e.Role == c.Role) && (c.Tool == "" || e.uses(c.Tool)) && (!c.Error || e.IsError())
}

// Filter shows the entries that meet the criteria.
func (t *Trace) Filter(ctx context.Context, c Criteria, visit func(*Entry) error) error {
	return t.matching(ctx, c, func(e *Cursor) error { return visit(e.Entry()) })
}

func (t *Trace) matching(ctx context.Context, c Criteria, visit func(*Cursor) error) error {
	_, err := t.walk(ctx, plan{
		visit: func(e *Cursor) error {
			if !c.match(e) {
				return nil
			}
			return visit(e)
		},
	})
	return err
}

// Outline shows where the entries of all lanes are, without counting turns, tokens and cost.
func (t *Trace) Outline(ctx context.Context, visit func(*Cursor)) (*Info, error) {
	return t.walk(ctx, plan{visit: func(e *Cursor) error { visit(e); return nil }})
}

// Matching shows the numbers of the entries that meet the criteria.
func (t *Trace) Matching(ctx context.Context, c Criteria, visit func(index int)) error {
	return t.matching(ctx, c, func(e *Cursor) error { visit(e.Index); return nil })
}

// Match reports whether an entry meets the criteria.
func (c Criteria) Match(entry *Entry) bool {
	return c.match(&Cursor{Index: entry.Index, Role: entry.Role, entry: entry})
}

// Reasoning is the text of an agent in one entry.
type Reasoning struct {
	Index  int     `json:"index"`
	Text   string  `json:"text"`
	Source *string `json:"source"`
}

// Reasoning shows the text of assistant entries with an index of at least from and, unless to is
// negative, below to.
func (t *Trace) Reasoning(ctx context.Context, from, to int, visit func(Reasoning) error) error {
	_, err := t.walk(ctx, plan{
		visit: func(e *Cursor) error {
			if e.Role != RoleAssistant || e.Index < from || to >= 0 && e.Index >= to {
				return nil
			}
			entry := e.Entry()
			if !entry.Has(BlockText) {
				return nil
			}
			return visit(Reasoning{e.Index, entry.Text("\n"), entry.Lane})
		},
	})
	return err
}

// Step is one line of a timeline.
type Step struct {
	Index       int      `json:"index"`
	Tools       []string `json:"tools"`
	InputTokens int64    `json:"inputTokens"` // cache reads included
	Output      int64    `json:"outputTokens"`
	Text        string   `json:"text"`
	Source      *string  `json:"source"`
	TimestampMs int64    `json:"timestampMs,omitempty"`
}

// Timeline shows what the agents did, entry by entry; entries with only thinking are left out.
func (t *Trace) Timeline(ctx context.Context, visit func(Step) error) error {
	_, err := t.walk(ctx, plan{
		visit: func(e *Cursor) error {
			if e.Role != RoleAssistant {
				return nil
			}
			entry := e.Entry()
			step := Step{
				Index:       e.Index,
				Tools:       []string{},
				Text:        entry.Text(" "),
				Source:      entry.Lane,
				TimestampMs: entry.TimestampMs,
			}
			e.Tools(func(name string) { step.Tools = append(step.Tools, name) })
			if entry.Has(BlockThinking) && len(step.Tools) == 0 && !entry.Has(BlockText) {
				return nil
			}
			if used := entry.Usage; used != nil {
				step.InputTokens, step.Output = used.InputTokens+used.CacheReadTokens, used.OutputTokens
			}
			return visit(step)
		},
	})
	return err
}

// Init returns the init event without its type, nil if there was none.
func (t *Trace) Init(ctx context.Context) (*Info, error) {
	return t.walk(ctx, plan{})
}
