package query

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/session"
)

// ToolShare is the share of one tool.
type ToolShare struct {
	Tool         string  `json:"tool"`
	Turns        int     `json:"turns"`
	InputTokens  float64 `json:"inputTokens"`
	OutputTokens float64 `json:"outputTokens"`
	CostShare    float64 `json:"costShare"`
}

// ByTool splits the totals of a trace over its tools.
type ByTool struct {
	PerTool []ToolShare `json:"perTool"`
	Totals  Totals      `json:"totals"`
	// Missing names the lanes whose tools are not among them, because their agents report tokens,
	// if at all, for more than one message at a time.
	Missing []string `json:"-"`
}

// noTool is the bucket of messages that use no tool.
const noTool = "(no-tool)"

// messageShare is one message of the model: its usage counts once, whatever the number of events it
// was streamed in.
type messageShare struct {
	usage session.TokenUsage
	tools []string
	turn  laneTurn
}

// laneTurn is a turn of a lane's model.
type laneTurn struct {
	lane *laneState
	turn int
}

// modelTurn returns the turn of the model that an assistant's entry belongs to. A document does not
// say, so each of its entries counts as one.
func (e *Cursor) modelTurn() laneTurn {
	switch l := e.lane; {
	case l.decoded != nil:
		return laneTurn{l, l.decoded.fold.Turns()}
	case l.account != nil:
		return laneTurn{l, l.account.fold.Turns()}
	}
	return laneTurn{e.lane, e.Index}
}

// ByTool attributes the tokens of every message to the tools it calls, in equal parts. The columns
// are then scaled so that they add up to the totals of Stats exactly; the first row takes the
// rounding. A tool's turns are the model's turns that call it.
func (t *Trace) ByTool(ctx context.Context) (*ByTool, error) {
	book := t.newUsageBook()
	var messages ordered[messageShare]
	reports := map[string]bool{} // of the lanes that use tools, those that say what a message took
	info, err := t.walk(ctx, plan{accounts: true, visit: func(e *Cursor) error {
		id, usage, ok := e.Usage()
		if ok || e.usesAny() {
			lane := LaneName(e.Lane())
			reports[lane] = reports[lane] || ok
		}
		if !ok {
			return nil
		}
		book.add(e)
		m, isNew := messages.row(id)
		if isNew {
			m.turn = e.modelTurn()
		}
		m.usage = m.usage.Max(usage)
		e.Tools(func(name string) { m.tools = append(m.tools, name) })
		return nil
	}})
	if err != nil {
		return nil, err
	}
	totals := newStats(info, book).Totals
	maps.DeleteFunc(reports, func(_ string, reports bool) bool { return reports })
	missing := slices.Sorted(maps.Keys(reports))
	return &ByTool{PerTool: shares(messages.rows, totals), Totals: totals, Missing: missing}, nil
}

// shareBook sums up by tool. The cost share of a row is first the number of all its tokens, the
// cached ones included: they are paid for too.
type shareBook struct {
	ordered[ToolShare]
	turns map[toolTurn]bool
}

// toolTurn is a turn that calls a tool.
type toolTurn struct {
	tool string
	laneTurn
}

func (b *shareBook) add(tool string, usage session.TokenUsage, turn laneTurn, part float64) {
	row, _ := b.row(&tool)
	row.Tool = tool
	if key := (toolTurn{tool, turn}); !b.turns[key] {
		b.turns[key] = true
		row.Turns++
	}
	row.InputTokens += float64(usage.InputTokens) * part
	row.OutputTokens += float64(usage.OutputTokens) * part
	row.CostShare += float64(usage.Total()) * part
}

func shares(messages []messageShare, totals Totals) []ToolShare {
	book := &shareBook{turns: map[toolTurn]bool{}}
	for _, m := range messages {
		tools := m.tools
		if len(tools) == 0 {
			tools = []string{noTool}
		}
		for _, tool := range tools {
			book.add(tool, m.usage, m.turn, 1/float64(len(tools)))
		}
	}
	book.scale(totals)
	slices.SortStableFunc(book.rows, func(a, b ToolShare) int {
		return cmp.Or(cmp.Compare(b.CostShare, a.CostShare), strings.Compare(a.Tool, b.Tool))
	})
	if book.rows == nil {
		return []ToolShare{}
	}
	reconcile(book.rows, totals)
	return book.rows
}

func (b *shareBook) scale(totals Totals) {
	var in, out, weight float64
	for _, row := range b.rows {
		in, out, weight = in+row.InputTokens, out+row.OutputTokens, weight+row.CostShare
	}
	for i := range b.rows {
		row := &b.rows[i]
		row.InputTokens *= ratio(float64(totals.InputTokens), in)
		row.OutputTokens *= ratio(float64(totals.OutputTokens), out)
		row.CostShare = ratio(row.CostShare, weight)
	}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// reconcile adds the rounding errors to the first row, until the columns add up from top to bottom.
func reconcile(rows []ToolShare, totals Totals) {
	for _, column := range []struct {
		of    func(*ToolShare) *float64
		total float64
	}{
		{func(r *ToolShare) *float64 { return &r.InputTokens }, float64(totals.InputTokens)},
		{func(r *ToolShare) *float64 { return &r.OutputTokens }, float64(totals.OutputTokens)},
		{func(r *ToolShare) *float64 { return &r.CostShare }, 1},
	} {
		first, last := column.of(&rows[0]), column.of(&rows[len(rows)-1])
		for range 4 {
			*first += column.total - columnSum(rows, column.of)
		}
		// The last unit of the last place can go back and forth forever; in the smallest row it
		// settles.
		*last += column.total - columnSum(rows, column.of)
	}
}

func columnSum(rows []ToolShare, of func(*ToolShare) *float64) float64 {
	sum := 0.0
	for i := range rows {
		sum += *of(&rows[i])
	}
	return sum
}
