package tracecli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/render"
)

func (a *app) searchVerbs() []*cobra.Command { return []*cobra.Command{a.search()} }

func (a *app) search() *cobra.Command {
	limit, around := console.Count{Value: 50}, console.Count{}
	var full bool
	command := a.verb("search FILE PATTERN",
		"Find text in what was said, thought, called, returned or noted by the system",
		`  fit trace search run.ndjson 'permission denied'
  fit trace search --context 2 run.ndjson 'exit status [1-9]'
  fit trace search --limit 0 --full --format ndjson run.ndjson deprecated`,
		cobra.ExactArgs(2), func(ctx context.Context, out *output, args []string) error {
			a.fileFirst(args)
			if args[1] == "" {
				return console.Usagef("the pattern is empty")
			}
			if _, err := optionalPattern(args[1]); err != nil {
				return err
			}
			t, err := a.open(args[0])
			if err != nil {
				return err
			}
			q := query.Search{
				Pattern: args[1],
				Limit:   limit.Value,
				Context: around.Value,
				Full:    full,
			}
			if err := t.Search(ctx, q, func(h *query.Hit) error {
				return out.record(t.Name(), h,
					func() { out.hit(h) })
			}); err != nil {
				return err
			}
			return out.end()
		})
	command.Long = `Find text in what was said, thought, called, returned or noted by the system. Case is ignored.

A pattern that requires a plain word is fast at any size: only the lines that contain the word are decoded. Patterns
without one (such as '\d+' or 'a.c') decode every line, on all cores.`
	command.Flags().Var(&limit, "limit", "stop after `N` entries; 0 means never")
	command.Flags().Var(&around, "context", "show `N` entries before and after each hit")
	command.Flags().BoolVar(&full, "full", false, "whole blocks instead of excerpts")
	return command
}

// hit prints the matches of one entry, with the entries around it if they were asked for.
func (o *output) hit(h *query.Hit) {
	around := slices.Clone(h.Context)
	slices.SortStableFunc(around, func(a, b *query.Entry) int { return a.Index - b.Index })
	shown := false
	show := func() {
		for _, match := range h.Matches {
			o.line(o.index(h.Turn.Index) + " " + o.lane(h.Turn.Lane) + display.Line(match))
		}
		shown = true
	}
	for _, entry := range around {
		if !shown && entry.Index > h.Turn.Index {
			show()
		}
		o.line(o.paint(dim, "  ") + o.index(entry.Index) + " " + o.lane(entry.Lane) + o.paint(dim, inBrief(entry)))
	}
	if !shown {
		show()
	}
	if len(around) > 0 {
		o.line("--")
	}
}

// inBrief is an entry in a few words.
func inBrief(t *query.Entry) string {
	switch t.Role {
	case query.RoleSystem:
		return "system " + textOf(t.Subtype)
	case query.RoleToolResult:
		word := "result"
		if t.IsError {
			word = "error"
		}
		return word + ": " + render.Preview(textOf(t.Result), t.IsError)
	case query.RoleUser:
		return "user: " + display.FirstRunes(display.Line(t.Text(" ")), 100)
	}
	for _, b := range t.Content {
		if b.Type == query.BlockToolUse {
			return render.ToolName(b.Name) + ": " + render.Hint(b.Name, b.Input)
		}
	}
	if t.Has(query.BlockText) {
		return "text: " + display.FirstRunes(display.Line(t.Text(" ")), 100)
	}
	return "thinking"
}
