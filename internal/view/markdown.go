package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/query"
)

// traceMarkdown answers with one entry as Markdown, for people who quote it: the same text that the
// pages copy. A call comes with its result.
func (s *Server) traceMarkdown(r *http.Request, t *query.Trace, n int) (any, error) {
	items, err := window(r.Context(), t, n, n+1)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, notFound("the trace has no entry "+strconv.Itoa(n), "")
	}
	found, err := t.Entry(r.Context(), n) // whole, while a page has the beginning
	if err != nil {
		return nil, err
	}
	shown := items[0]
	if found != nil {
		shown = show(found, 0)
		for i := range min(len(shown.Blocks), len(items[0].Blocks)) {
			shown.Blocks[i].Result = items[0].Blocks[i].Result
		}
	}
	return raw{kind: "text/plain; charset=utf-8", content: []byte(markdownOf(&shown))}, nil
}

// roleWords name the roles beside a participant, who is the assistant otherwise.
var roleWords = map[query.Role]string{
	query.RoleSystem: "system", query.RoleUser: "user", query.RoleToolResult: "result",
}

func markdownOf(e *entry) string {
	lane := cmp.Or(e.Lane, "agent")
	parts := []string{strings.TrimSpace(fmt.Sprintf("**%d %s** %s", e.Index, display.Text(lane), roleWords[e.Role]))}
	if e.Role == query.RoleSystem {
		var data bytes.Buffer
		if json.Indent(&data, []byte(e.Data), "", "  ") != nil {
			data.Reset()
			data.WriteString(e.Data)
		}
		parts = append(parts, display.Text(e.Subtype), fenced(data.String()))
	}
	for i := range e.Blocks {
		parts = append(parts, blockMarkdown(e, &e.Blocks[i])...)
	}
	return strings.Join(parts, "\n\n") + "\n"
}

func blockMarkdown(e *entry, b *block) []string {
	switch b.Type {
	case query.BlockText:
		if e.Role == query.RoleToolResult {
			return []string{fenced(b.Text)}
		}
		return []string{display.Text(b.Text)}
	case query.BlockThinking:
		return []string{"> " + strings.ReplaceAll(display.Text(b.Text), "\n", "\n> ")}
	case query.BlockToolUse:
		parts := []string{display.Text(b.Name) + ":", fenced(b.Input)}
		if b.Result == nil {
			return parts
		}
		word := "Result:"
		if b.Result.IsError {
			word = "Error:"
		}
		return append(parts, word, fenced(b.Result.Text))
	}
	return []string{"(" + b.Type + ")"}
}

// fenced puts a text between fences that are longer than any run of backticks in it.
func fenced(text string) string {
	longest, run := 2, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + "\n" + display.Text(text) + "\n" + fence
}
