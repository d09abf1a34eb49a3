package tracecli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/query"
)

func (a *app) readVerbs() []*cobra.Command {
	return []*cobra.Command{
		a.overview(), a.countVerb(), a.batch(), a.headVerb(), a.tail(), a.entry(), a.initVerb(), a.filter(), a.errors(),
		a.reasoning(), a.timeline(),
	}
}

func (a *app) overview() *cobra.Command {
	return a.fileVerb("overview", "Show an overview: metadata, totals, tools, the task, lanes",
		`  fit trace overview run.ndjson
  fit trace overview --file 'runs/*.ndjson' --format json`,
		func(ctx context.Context, out *output, traces []*query.Trace) error {
			for _, t := range traces {
				o, _, err := t.Overview(ctx)
				if err != nil {
					return err
				}
				if err := out.object(t.Name(), a.graded(t, o), nil); err != nil {
					return err
				}
			}
			return out.endObjects()
		})
}

func (a *app) countVerb() *cobra.Command {
	return a.fileVerb("count", "Count the entries", `  fit trace count run.ndjson
  fit trace count --lane agent team.ndjson`,
		func(ctx context.Context, out *output, traces []*query.Trace) error {
			for _, t := range traces {
				n, err := t.Count(ctx)
				if err != nil {
					return err
				}
				switch {
				case out.multi && out.format == formatText:
					out.linef("%s:%d", t.Name(), n)
				case out.multi:
					err = out.record(t.Name(), map[string]int{"count": n}, nil)
				default:
					out.linef("%d", n)
				}
				if err != nil {
					return err
				}
			}
			if out.multi && out.format != formatText {
				return out.end()
			}
			return nil
		})
}

func (a *app) batch() *cobra.Command {
	return a.verb("batch FILE FROM TO", "Show the entries from position FROM up to, not including, TO", `  fit trace batch run.ndjson 10 20
  fit trace batch run.ndjson -- -5 -1      the last five except the very last`,
		cobra.ExactArgs(3), func(ctx context.Context, out *output, args []string) error {
			from, err := wholeNumber("FROM", args[1])
			if err != nil {
				return err
			}
			to, err := wholeNumber("TO", args[2])
			if err != nil {
				return err
			}
			if from >= 0 && to >= 0 && from >= to {
				return console.Usagef("FROM %d is not before TO %d", from, to)
			}
			t, err := a.open(args[0])
			if err != nil {
				return err
			}
			if err := t.Range(ctx, from, to, out.entry(t)); err != nil {
				return err
			}
			return out.end()
		})
}

func wholeNumber(what, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, console.Usagef("%s must be a whole number, not %q", what, text)
	}
	return n, nil
}

// entry prints entries of a trace.
func (o *output) entry(t *query.Trace) func(*query.Entry) error {
	return func(entry *query.Entry) error { return o.record(t.Name(), entry, nil) }
}

func (a *app) headVerb() *cobra.Command {
	return a.ends("head", "Show the first entries",
		func(ctx context.Context, t *query.Trace, n int, show func(*query.Entry) error) error {
			return t.Range(ctx, 0, n, show)
		})
}

func (a *app) tail() *cobra.Command {
	return a.ends("tail", "Show the last entries",
		func(ctx context.Context, t *query.Trace, n int, show func(*query.Entry) error) error {
			return t.Tail(ctx, n, show)
		})
}

func (a *app) ends(name, short string,
	show func(context.Context, *query.Trace, int, func(*query.Entry) error) error,
) *cobra.Command {
	lines := console.Count{Value: 10}
	command := a.eachVerb(name, short, fmt.Sprintf(`  fit trace %[1]s run.ndjson
  fit trace %[1]s --lines 3 --format json run.ndjson`, name),
		func(ctx context.Context, out *output, t *query.Trace) error {
			return show(ctx, t, lines.Value, out.entry(t))
		})
	command.Flags().Var(&lines, "lines", "show `N` entries")
	return command
}

// entry shows one entry; "turn" is the predecessor's name for it.
func (a *app) entry() *cobra.Command {
	command := a.verb("entry FILE INDEX", "Show one entry", `  fit trace entry run.ndjson 17`, cobra.ExactArgs(2),
		func(ctx context.Context, out *output, args []string) error {
			n, err := wholeNumber("INDEX", args[1])
			if err != nil {
				return err
			}
			t, err := a.open(args[0])
			if err != nil {
				return err
			}
			entry, err := t.Entry(ctx, n)
			if err != nil {
				return err
			}
			if entry == nil && !t.Nothing() {
				return console.Usagef("%s has no entry %d", t.Name(), n)
			}
			return out.object(t.Name(), entry, nil)
		})
	command.Aliases = []string{"turn"}
	return command
}

func (a *app) initVerb() *cobra.Command {
	return a.fileVerb("init", "Show the agent's init event: model, tools, version and settings", `  fit trace init run.ndjson
  fit trace init --lane reviewer team.ndjson`,
		func(ctx context.Context, out *output, traces []*query.Trace) error {
			for _, t := range traces {
				info, err := t.Init(ctx)
				if err != nil {
					return err
				}
				var event any
				if info.InitEvent != nil {
					event = info.InitEvent
				}
				if err := out.object(t.Name(), event, nil); err != nil {
					return err
				}
			}
			return out.endObjects()
		})
}

func (a *app) filter() *cobra.Command {
	role := console.Choice{Choices: []string{"system", "assistant", "user", "tool_result"}}
	var tool string
	var failed bool
	command := a.eachVerb("filter", "Show the entries that meet all criteria", `  fit trace filter --role user run.ndjson
  fit trace filter --tool Bash --lane agent team.ndjson
  fit trace filter --error run.ndjson`,
		func(ctx context.Context, out *output, t *query.Trace) error {
			return t.Filter(ctx, query.Criteria{Role: query.Role(role.Value), Tool: tool, Error: failed}, out.entry(t))
		})
	command.Flags().Var(&role, "role", "entries of this role")
	command.Flags().StringVar(&tool, "tool", "", "entries of an assistant that use the tool `NAME`")
	command.Flags().BoolVar(&failed, "error", false, "tool results that failed")
	_ = command.RegisterFlagCompletionFunc("role",
		cobra.FixedCompletions(role.Choices, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (a *app) errors() *cobra.Command {
	return a.eachVerb("errors", "Show the tool results that failed", `  fit trace errors run.ndjson`,
		func(ctx context.Context, out *output, t *query.Trace) error {
			return t.Filter(ctx, query.Criteria{Error: true}, out.entry(t))
		})
}

func (a *app) reasoning() *cobra.Command {
	var from, to console.Count
	command := a.eachVerb("reasoning", "Show what the agents said, entry by entry", `  fit trace reasoning run.ndjson
  fit trace reasoning --from 100 --to 200 run.ndjson`,
		func(ctx context.Context, out *output, t *query.Trace) error {
			end := -1
			if to.Given {
				end = to.Value
			}
			return t.Reasoning(ctx, from.Value, end,
				func(r query.Reasoning) error { return out.record(t.Name(), r, nil) })
		})
	command.Flags().Var(&from, "from", "the first entry")
	command.Flags().Var(&to, "to", "the entry to stop before")
	return command
}

func (a *app) timeline() *cobra.Command {
	return a.eachVerb("timeline", "Show each entry on one line, with its tools, tokens and words",
		`  fit trace timeline run.ndjson`,
		func(ctx context.Context, out *output, t *query.Trace) error {
			return t.Timeline(ctx, func(s query.Step) error {
				return out.record(t.Name(), s, func() { out.step(s) })
			})
		})
}

// step prints one line of a timeline.
func (o *output) step(s query.Step) {
	tools := "(text only)"
	if len(s.Tools) > 0 {
		tools = strings.Join(s.Tools, ", ")
	}
	usage := "in:" + thousands(s.InputTokens) + " out:" + thousands(s.Output)
	snippet := strings.ReplaceAll(display.FirstRunes(s.Text, 80), "\n", " ")
	columns := display.PadColumns(display.Text(tools), 30) + " " + display.PadColumns(usage, 18)
	line := o.index(s.Index) + " " + o.lane(s.Source) + columns + " " + display.Text(snippet)
	if o.columns > 0 {
		line = display.Fold(line, o.columns)
	}
	o.line(line)
}

func thousands(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatFloat(float64(n)/1000, 'f', 1, 64) + "K"
}
