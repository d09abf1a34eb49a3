package session

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/display"
)

// Show writes a session as one readable page: how it ended, what it cost, its milestones, tools,
// errors and messages. What the agent said is made harmless for a terminal.
func Show(w io.Writer, s *EnrichedSession) error {
	page := &page{}
	page.head(s)
	page.milestones(s)
	page.tools(s)
	page.errors(s)
	page.prompts(s)
	page.messages(s)
	page.counts(s)
	_, err := io.WriteString(w, page.String())
	return err
}

type page struct{ strings.Builder }

func (p *page) linef(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// table writes rows of tab-separated cells in columns.
func (p *page) table(title string, rows []string) {
	if len(rows) == 0 {
		return
	}
	p.linef("\n%s", title)
	tw := tabwriter.NewWriter(p, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(tw, "  %s\n", row)
	}
	_ = tw.Flush() // a Builder does not fail
}

func (p *page) head(s *EnrichedSession) {
	who := strings.TrimSpace(fmt.Sprintf("%s %s", s.Agent, s.AgentVersion))
	p.linef("session  %s", orDash(shown(s.SessionID, 80)))
	p.linef("agent    %s · model %s · dialect %s", shown(who, 80), orDash(shown(s.Model, 80)),
		orDash(s.Dialect))
	if s.Cwd != "" {
		p.linef("in       %s", shown(s.Cwd, 200))
	}
	outcome := cmp.Or(string(s.Outcome), "no final event")
	turns := "1 turn"
	if s.Turns != 1 {
		turns = fmt.Sprintf("%d turns", s.Turns)
	}
	p.linef("ended    %s · %s · %s", outcome, turns, seconds(s.WallClockMs))
	p.linef("cost     %s · %s", costOf(s.Usage), tokens(s.Usage))
	if len(s.ModelUsage) > 1 {
		for _, name := range slices.Sorted(maps.Keys(s.ModelUsage)) {
			p.linef("         %s: %s · %s", orDash(shown(name, 60)), costOf(s.ModelUsage[name]),
				tokens(s.ModelUsage[name]))
		}
	}
}

func (p *page) milestones(s *EnrichedSession) {
	var rows []string
	for _, m := range s.Milestones {
		rows = append(rows, fmt.Sprintf("+%s\tturn %d\t%s", seconds(m.ElapsedMs), m.TurnIndex, m.Kind))
	}
	p.table("milestones", rows)
}

// toolCount counts the uses of a kind of tool.
type toolCount struct {
	effective    string
	calls, fails int
	names        []string
}

func countTools(s *EnrichedSession) []toolCount {
	var counts []toolCount
	byCall := map[string]int{}
	for _, event := range s.Events {
		switch {
		case event.Tool != nil:
			i := slices.IndexFunc(counts, func(c toolCount) bool { return c.effective == event.Tool.Effective() })
			if i < 0 {
				i = len(counts)
				counts = append(counts, toolCount{effective: event.Tool.Effective()})
			}
			counts[i].calls++
			if !slices.Contains(counts[i].names, event.Tool.NativeName) {
				counts[i].names = append(counts[i].names, event.Tool.NativeName)
			}
			byCall[event.Tool.CallID] = i
		case event.Result != nil:
			failed := event.Result.IsError || (event.Result.ExitCode != nil && *event.Result.ExitCode != 0)
			if i, known := byCall[event.Result.CallID]; known && failed {
				counts[i].fails++
			}
		}
	}
	return counts
}

func (p *page) tools(s *EnrichedSession) {
	var rows []string
	for _, c := range countTools(s) {
		failed := ""
		if c.fails > 0 {
			failed = fmt.Sprintf("%d failed", c.fails)
		}
		rows = append(rows, fmt.Sprintf("%s\t%d\t%s\t%s", c.effective, c.calls, failed,
			shown(strings.Join(c.names, ", "), 120)))
	}
	p.table("tools", rows)
	rows = nil
	for _, event := range s.Events {
		if event.Tool == nil {
			continue
		}
		what := cmp.Or(event.Tool.Command, strings.Join(event.Tool.Paths, ", "), string(event.Tool.Args))
		inner := ""
		if event.Parent != "" {
			inner = "sub-agent "
		}
		rows = append(rows, fmt.Sprintf("turn %d\t%s%s\t%s", event.TurnIndex, inner,
			shown(event.Tool.NativeName, 40), shown(what, 100)))
	}
	p.table("calls", shorten(rows, 40))
}

func (p *page) errors(s *EnrichedSession) {
	var rows []string
	for _, event := range s.Events {
		if event.Error == nil {
			continue
		}
		status := ""
		if event.Error.Status != 0 {
			status = fmt.Sprint(event.Error.Status)
		}
		rows = append(rows, fmt.Sprintf("turn %d\t%s\t%s\t%s", event.TurnIndex, event.Error.Kind, status,
			shown(event.Error.Message, 140)))
	}
	p.table("errors", shorten(rows, 20))
}

func (p *page) prompts(s *EnrichedSession) {
	var rows []string
	for _, prompt := range s.SystemPrompts {
		rows = append(rows, fmt.Sprintf("turn %d\t%s\t%s\t%d characters", prompt.TurnIndex,
			shown(prompt.Source, 30), shown(prompt.Label, 30),
			utf8.RuneCountInString(prompt.Content)))
	}
	p.table("system prompts", shorten(rows, 20))
}

func (p *page) messages(s *EnrichedSession) {
	var rows []string
	for _, m := range s.Messages {
		rows = append(rows, fmt.Sprintf("turn %d\t%s\t%s", m.TurnIndex, m.Role, shown(m.Text, 200)))
	}
	p.table("messages", shorten(rows, 40))
}

func (p *page) counts(s *EnrichedSession) {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{{s.ParseErrors, "broken lines"}, {s.Unknown, "events of unknown type"}, {s.Skipped, "lines too long"}, {
		s.Dropped,
		"repeating deltas left out",
	}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if len(parts) > 0 {
		p.linef("\nnot shown: %s", strings.Join(parts, ", "))
	}
}

// shorten keeps the beginning and the end of a long list.
func shorten(rows []string, limit int) []string {
	if len(rows) <= limit {
		return rows
	}
	half := limit / 2
	gap := fmt.Sprintf("… %d more", len(rows)-2*half)
	return slices.Concat(rows[:half], []string{gap}, rows[len(rows)-half:])
}

func seconds(ms int64) string { return fmt.Sprintf("%.3fs", float64(ms)/1000) }

func costOf(u TokenUsage) string {
	if u.CostUSD == nil {
		return display.FineCost(nil)
	}
	return display.FineDollars(*u.CostUSD) + " " + u.CostSource
}

// tokens formats what was consumed. Every run consumes something: if nothing was reported, it is
// unknown.
func tokens(u TokenUsage) string {
	if u.TotalTokens == 0 && u.CostUSD == nil {
		return "tokens unknown"
	}
	text := fmt.Sprintf("%d input, %d output, %d cache read, %d cache write", u.InputTokens, u.OutputTokens,
		u.CacheReadTokens, u.CacheWriteTokens)
	if u.Partial {
		text += " (at least)"
	}
	return text
}

func orDash(text string) string { return cmp.Or(text, "-") }

// shown makes one line of a text, of at most limit characters and an ellipsis.
func shown(text string, limit int) string { return display.CutRunes(display.Line(text), limit) }
