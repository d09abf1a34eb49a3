package tracecli

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/near"
	"github.com/fit-eval/fit/internal/query"
)

func (a *app) toolVerbs() []*cobra.Command {
	return []*cobra.Command{a.tools(), a.tool(), a.toolCalls(), a.commands(), a.paths(), a.compare()}
}

// toolTotal is the use of a tool over several files.
type toolTotal struct {
	query.ToolCount
	Sources []string `json:"sources,omitempty"`
}

func (a *app) tools() *cobra.Command {
	return a.fileVerb("tools", "Count how often each tool was used", `  fit trace tools run.ndjson`,
		func(ctx context.Context, out *output, traces []*query.Trace) error {
			lists, users, err := gather(traces, func(t *query.Trace) ([]query.ToolCount, error) {
				tools, _, err := t.Tools(ctx)
				return tools, err
			}, func(tool query.ToolCount) string { return tool.Tool })
			if err != nil {
				return err
			}
			for _, tool := range query.MergeTools(lists...) {
				total := toolTotal{ToolCount: tool}
				if out.multi {
					total.Sources = sortedUnique(users[tool.Tool])
				}
				if err := out.record("", total, nil); err != nil {
					return err
				}
			}
			return out.end()
		})
}

func sortedUnique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

func (a *app) tool() *cobra.Command {
	return a.verb("tool FILE NAME", "Show the entries that use a tool, and its results", `  fit trace tool run.ndjson Bash`,
		cobra.ExactArgs(2),
		func(ctx context.Context, out *output, args []string) error {
			a.fileFirst(args)
			t, err := a.open(args[0])
			if err != nil {
				return err
			}
			found, show := 0, out.entry(t)
			err = t.Tool(ctx, args[1], func(entry *query.Entry) error {
				found++
				return show(entry)
			})
			if err == nil && found == 0 && t.Path != "-" {
				out.explained, err = true, a.sayTools(ctx, t, args[1])
			}
			if err != nil {
				return err
			}
			return out.end()
		})
}

// sayTools says that nothing uses a tool, and which tools there are.
func (a *app) sayTools(ctx context.Context, t *query.Trace, typed string) error {
	tools, _, err := t.Tools(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Tool)
	}
	list := "no tool is used"
	if len(names) > 0 {
		list = "the tools are " + strings.Join(names, ", ")
	}
	message := fmt.Sprintf("nothing uses %s%s; %s", typed, near.Question(typed, names), list)
	fmt.Fprintln(a.con.Stderr, display.Text(message))
	return nil
}

func (a *app) toolCalls() *cobra.Command {
	return a.eachVerb("tool-calls", "Show every tool call with its result", `  fit trace tool-calls run.ndjson
  fit trace tool-calls --format ndjson run.ndjson | jq -c 'select(.result.isError)'`,
		func(ctx context.Context, out *output, t *query.Trace) error {
			return t.ToolUses(ctx, func(c *query.ToolUse) error {
				return out.record(t.Name(), c, func() { out.call(c) })
			})
		})
}

// call prints one tool call.
func (o *output) call(c *query.ToolUse) {
	o.line(o.index(c.TurnIndex) + " " + o.lane(c.Source) + display.Text(c.Name) + " " + display.Text(c.ToolUseID))
	input := "undefined"
	if c.Input != nil {
		input = o.plain(c.Input)
	}
	o.line("  in: " + input)
	switch {
	case c.Result == nil:
		o.line("  out: (no result)")
	case c.Result.IsError:
		o.line("  " + o.paint(red, "error:") + " " + display.Line(textOf(c.Result.Content)))
	default:
		o.line("  out: " + display.Line(textOf(c.Result.Content)))
	}
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (a *app) commands() *cobra.Command {
	var match string
	command := a.eachVerb("commands", "Show the shell commands", `  fit trace commands run.ndjson
  fit trace commands --match '^git ' run.ndjson`,
		func(ctx context.Context, out *output, t *query.Trace) error {
			expr, err := optionalPattern(match)
			if err != nil {
				return err
			}
			return t.Commands(ctx, expr, func(c query.Command) error {
				return out.record(t.Name(), c, func() {
					file := ""
					if out.multi { // the line stands for itself
						file = t.Name() + ":"
					}
					out.line(file + out.index(c.TurnIndex) + " " + out.lane(c.Source) + display.Line(c.Command))
				})
			})
		})
	command.Flags().StringVar(&match, "match", "", "only commands that match the `REGEX`; case matters")
	return command
}

func optionalPattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	expr, err := regexp.Compile(text)
	if err != nil {
		return nil, console.Usagef("pattern %q: %w", text, err)
	}
	return expr, nil
}

// pathTotal is the use of a file over several traces.
type pathTotal struct {
	query.PathCount
	Sources []string `json:"sources,omitempty"`
}

// gather asks every trace for a list, and notes in which traces each name occurs.
func gather[T any](traces []*query.Trace, ask func(*query.Trace) ([]T, error), name func(T) string) (lists [][]T,
	users map[string][]string, err error,
) {
	users = map[string][]string{}
	for _, t := range traces {
		list, err := ask(t)
		if err != nil {
			return nil, nil, err
		}
		lists = append(lists, list)
		for _, item := range list {
			users[name(item)] = append(users[name(item)], t.Name())
		}
	}
	return lists, users, nil
}

func (a *app) paths() *cobra.Command {
	var prefix string
	command := a.fileVerb("paths", "Count the files that were read, edited and written",
		`  fit trace paths --prefix /repo/src run.ndjson`,
		func(ctx context.Context, out *output, traces []*query.Trace) error {
			lists, users, err := gather(traces,
				func(t *query.Trace) ([]query.PathCount, error) { return t.Paths(ctx, prefix) },
				func(path query.PathCount) string { return path.Path })
			if err != nil {
				return err
			}
			for _, path := range query.MergePaths(lists...) {
				total := pathTotal{PathCount: path}
				if out.multi {
					total.Sources = sortedUnique(users[path.Path])
				}
				if err := out.record("", total,
					func() { out.line(strconv.Itoa(path.Count) + "\t" + display.Text(path.Path)) }); err != nil {
					return err
				}
			}
			return out.end()
		})
	command.Flags().StringVar(&prefix, "prefix", "", "only paths that start with `TEXT`")
	return command
}

func (a *app) compare() *cobra.Command {
	return pairVerb(a, "compare", "Compare two traces: entries, tools, paths, cost",
		`  fit trace compare before.ndjson after.ndjson`, query.Compare, (*output).comparison)
}

// pairVerb is a verb that asks a question about two traces.
func pairVerb[T any](a *app, name, short, example string,
	ask func(ctx context.Context, x, y *query.Trace) (*T, error), show func(*output, *T),
) *cobra.Command {
	return a.verb(name+" FILE-A FILE-B", short, example, cobra.ExactArgs(2),
		func(ctx context.Context, out *output, args []string) error {
			x, err := a.open(args[0])
			if err != nil {
				return err
			}
			y, err := a.open(args[1])
			if err != nil {
				return err
			}
			out.mayLack = true
			answer, err := ask(ctx, x, y)
			if err != nil {
				return err
			}
			return out.object("", answer, func() { show(out, answer) })
		})
}

func (o *output) comparison(c *query.Comparison) {
	o.line("A: " + identity(c.A.Metadata))
	o.line("B: " + identity(c.B.Metadata))
	o.line("")
	o.linef("turns    | %d | %d", c.A.TurnCount, c.B.TurnCount)
	o.linef("tools    | %d | %d", len(c.A.Tools), len(c.B.Tools))
	o.linef("paths    | %d | %d", c.A.PathCount, c.B.PathCount)
	o.linef("cost     | %s | %s", numberOrNull(c.A.Cost), numberOrNull(c.B.Cost))
	for _, table := range []struct {
		name  string
		delta []query.Delta
	}{{"Tool", c.ToolDelta}, {"Path", c.PathDelta}} {
		o.line("")
		o.line(table.name + " | A | B | Δ")
		for _, d := range table.delta {
			o.linef("%s | %d | %d | %d", display.Text(d.Name()), d.A, d.B, d.Diff)
		}
	}
}

func identity(m query.SideMetadata) string {
	participant := "(none)"
	if m.Participant != nil {
		participant = *m.Participant
	}
	text := m.CaseName + " / " + participant
	if m.Marker != "" {
		text += " " + m.Marker
	}
	return display.Text(text)
}

// numberOrNull writes a number as JSON does.
func numberOrNull(cost *float64) string {
	if cost == nil {
		return "null"
	}
	return strconv.FormatFloat(*cost, 'f', -1, 64)
}
