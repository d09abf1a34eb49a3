package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/query"
)

// shownResult is how many characters of a result are shown; the trace has the rest.
const shownResult = 4000

// Markdown writes the trace as a page to read: what was said as quotations, calls and results as
// code. Nothing that an agent has written can become markup of the page.
func Markdown(ctx context.Context, t *query.Trace, w io.Writer) error {
	if err := t.Spool(); err != nil {
		return err
	}
	overview, _, err := t.Overview(ctx)
	if err != nil {
		return err
	}
	if t.Nothing() {
		return fmt.Errorf("%s: %w", t.Name(), query.ErrNothing)
	}
	page := &markdownPage{w: bufio.NewWriterSize(w, 64<<10)}
	page.head(t.Name(), overview)
	if err := t.Filter(ctx, query.Criteria{}, page.entry); err != nil {
		return err
	}
	return page.w.Flush()
}

type markdownPage struct{ w *bufio.Writer }

func (p *markdownPage) linef(format string, args ...any) error {
	_, err := fmt.Fprintf(p.w, format+"\n", args...)
	return err
}

func (p *markdownPage) head(name string, o *query.Overview) {
	_ = p.linef("# Trace %s\n", inline(name)) // the writer keeps the error until it is flushed
	_ = p.linef("| | |\n| --- | --- |")
	row := func(key, value string) {
		if value != "" {
			_ = p.linef("| %s | %s |", key, inline(value))
		}
	}
	row("Session", textOf(o.Metadata.SessionID))
	row("Model", textOf(o.Metadata.Model))
	row("Result", o.Summary.Result)
	row("Verdict", o.Verdict)
	row("Turns", fmt.Sprint(o.TurnCount))
	if o.Summary.TotalCostUSD != nil {
		row("Cost", display.FineDollars(*o.Summary.TotalCostUSD))
	}
	for _, lane := range o.Lanes {
		row("Lane "+inline(lane.Lane), strings.TrimSpace(fmt.Sprintf("%s %s, %d turns", lane.Dialect, lane.Model,
			lane.Turns)))
	}
	_ = p.linef("")
}

func (p *markdownPage) entry(t *query.Entry) error {
	switch t.Role {
	case query.RoleSystem:
		return p.linef("*%d · %s · system: %s*\n", t.Index, inline(t.LaneName()), inline(textOf(t.Subtype)))
	case query.RoleToolResult:
		return p.result(t)
	}
	_ = p.linef("## %d · %s · %s\n", t.Index, inline(t.LaneName()), t.Role)
	for i := range t.Content {
		p.block(&t.Content[i])
	}
	return p.linef("")
}

func (p *markdownPage) block(b *query.Block) {
	switch b.Type {
	case query.BlockText:
		_ = p.linef("%s\n", quotation(b.Text))
	case query.BlockThinking:
		_ = p.linef("<details><summary>thinking</summary>\n\n%s\n\n</details>\n", quotation(b.Text))
	case query.BlockToolUse:
		input := jsonenc.Style{Indent: 2}.AppendJSON(nil, b.Input)
		_ = p.linef("**%s**\n\n%s\n", inline(b.Name), fenced("json", string(input)))
	default:
		_ = p.linef("*%s*\n", inline(b.Type))
	}
}

func (p *markdownPage) result(t *query.Entry) error {
	word := "result"
	if t.IsError {
		word = "error"
	}
	whole := textOf(t.Result)
	text := display.FirstRunes(whole, shownResult)
	if left := utf8.RuneCountInString(whole[len(text):]); left > 0 {
		text += fmt.Sprintf("\n… %d more characters", left)
	}
	return p.linef("<details><summary>%d · %s</summary>\n\n%s\n\n</details>\n", t.Index, word, fenced("", text))
}

var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "\n", " ", "\r", " ", "`", "'",
	"*", "\\*", "_", "\\_", "[", "\\[", "#", "\\#")

// inline is text that is in a line of the page.
func inline(text string) string { return markup.Replace(display.Line(text)) }

// quotation returns a text in which every line is quoted and tags are escaped.
func quotation(text string) string {
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(display.Text(text))
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// fenced returns a block of code whose fence is longer than any that the text contains.
func fenced(language, text string) string {
	text = display.Text(text)
	longest, run := 2, 0
	for _, r := range text {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + language + "\n" + text + "\n" + fence
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
