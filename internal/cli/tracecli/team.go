package tracecli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/viewcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/query/export"
	"github.com/fit-eval/fit/internal/query/sql"
	"github.com/fit-eval/fit/internal/render"
	"github.com/fit-eval/fit/internal/view"
	"github.com/fit-eval/fit/trace"
)

func (a *app) teamVerbs() []*cobra.Command {
	return []*cobra.Command{a.messages(), a.align(), a.sql(), a.export(), a.follow()}
}

func (a *app) messages() *cobra.Command {
	return a.eachVerb("messages", "Show the participants' messages: questions and answers", `  fit trace messages team.ndjson
  fit trace messages --lane facilitator --format json team.ndjson`,
		func(ctx context.Context, out *output, t *query.Trace) error {
			messages, err := t.Messages(ctx)
			if err != nil {
				return err
			}
			for _, m := range messages {
				if err := out.record(t.Name(), m, func() { out.message(m) }); err != nil {
					return err
				}
			}
			if len(messages) == 0 {
				out.explained = true
				fmt.Fprintln(a.con.Stderr, "nobody sent a message: only sessions of several participants have them")
			}
			return nil
		})
}

func (o *output) message(m query.Message) {
	to := cmp.Or(strings.Join(m.To, ", "), "everybody")
	o.line(o.paint(dim, fmt.Sprintf("%d", m.Line)) + " " + o.paint(bold, m.From+" → "+to) + " " + o.paint(dim,
		"("+m.Kind+")"))
	o.line("  " + strings.ReplaceAll(display.Text(m.Text), "\n", "\n  "))
	for _, answer := range m.Answers {
		o.line("  " + o.paint(bold, "↳ "+answer.From+":") + " " +
			strings.ReplaceAll(display.Text(answer.Text), "\n", "\n    "))
	}
	if m.Kind == query.MessageAsk && len(m.Answers) == 0 {
		o.line("  " + o.paint(red, "↳ (no answer)"))
	}
}

func (a *app) align() *cobra.Command {
	return pairVerb(a, "align",
		"Compare two agents' actions step by step: where they differ and what they repeated needlessly",
		`  fit trace align before.ndjson after.ndjson
  fit trace align --lane agent before.ndjson after.ndjson --format json`, query.Align, (*output).alignment)
}

func (o *output) alignment(al *query.Alignment) {
	o.linef("A: %s (%d actions)", al.A.File, len(al.A.Actions))
	o.linef("B: %s (%d actions)", al.B.File, len(al.B.Actions))
	o.linef("distance: %d, similarity: %.2f", al.Distance, al.Similarity)
	if al.FirstDivergence != nil {
		o.linef("first divergence: step %d", *al.FirstDivergence+1)
	} else {
		o.line("first divergence: none")
	}
	for _, side := range []query.AlignedSide{al.A, al.B} {
		for _, loop := range side.Loops {
			o.linef("wasted loop in %s: %s, %d times from turn %d", side.File, display.Text(loop.Action), loop.Times,
				loop.Turn)
		}
		for _, again := range side.Rereads {
			o.linef("re-read in %s: %s, %d times without a change in between", side.File, display.Name(again.Path),
				again.Times)
		}
	}
	o.line("")
	for _, step := range al.Steps {
		left, right := o.action(step.A), o.action(step.B)
		o.line(o.paint(stepColour(step), step.Mark()) + " " + display.PadColumns(left, 48) + " " + right)
	}
}

func stepColour(step query.AlignedStep) string {
	if step.Op == query.OpMatch {
		return dim
	}
	return bold
}

func (o *output) action(action *query.Action) string {
	if action == nil {
		return "-"
	}
	return display.CutColumns(display.Line(fmt.Sprintf("[%d] %s %s", action.Turn, action.Kind, action.Target)), 48)
}

func (a *app) sql() *cobra.Command {
	command := a.verb(
		"sql FILE... QUERY",
		"Query traces in SQL: tables turns, tool_calls, model_calls, usage, messages, lanes",
		`  fit trace sql run.ndjson 'select name, count(*) n, sum(is_error) failed from tool_calls group by 1 order by 2 desc'
  fit trace sql a.ndjson b.ndjson 'select file, sum(output_tokens) from usage group by 1'`,
		cobra.MinimumNArgs(2),
		func(ctx context.Context, out *output, args []string) error {
			a.fileFirst(args)
			traces, err := a.openAll(args[:len(args)-1])
			if err != nil {
				return err
			}
			result, err := sql.Query(ctx, traces, args[len(args)-1])
			if err != nil {
				return console.Exit(console.ExitUsage, err)
			}
			return out.table(result)
		},
	)
	command.Long = "Query traces in SQLite's SQL. The tables are built on the fly and can only be read:\n" +
		sql.Schema()
	return command
}

// table prints the rows of a query.
func (o *output) table(result *sql.Rows) error {
	if o.format != formatText {
		for _, row := range result.Rows {
			if err := o.record("", sql.NamedRow{Columns: result.Columns, Values: row}, nil); err != nil {
				return err
			}
		}
		return o.end()
	}
	o.line(o.paint(bold, strings.Join(result.Columns, "\t")))
	for _, row := range result.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = display.Line(cell.String())
		}
		o.line(strings.Join(cells, "\t"))
	}
	return o.failed()
}

func (a *app) export() *cobra.Command {
	to := console.Choice{Choices: []string{"otlp", "markdown", "document", "html"}}
	// the flag of all verbs, with the formats of this one
	format := console.Choice{Choices: append(slices.Clone(to.Choices), formatText, formatJSON, formatNDJSON)}
	maxSize := console.Count{Value: view.DefaultMaxBytes, Min: 1}
	command := a.verb(
		"export FILE --to FORMAT",
		"Export a trace as OpenTelemetry spans, Markdown, a structured document, or a self-contained HTML file",
		`  fit trace export run.ndjson --to markdown > run.md
  fit trace export run.ndjson --format html > run.html
  fit trace export team.ndjson --to otlp | curl -H 'Content-Type: application/json' --data-binary @- localhost:4318/v1/traces`,
		cobra.ExactArgs(1),
		func(ctx context.Context, out *output, args []string) error {
			if to.Value == "" && slices.Contains(to.Choices, format.Value) {
				to.Value = format.Value
			}
			t, err := a.open(args[0])
			if err != nil {
				return err
			}
			if to.Value == "html" {
				cfg, _, err := viewcli.Config(a.con, a.dialects, args, nil)
				if err != nil {
					return err
				}
				return viewcli.Export(ctx, out.w, cfg, maxSize.Value, "fit trace export --format html "+args[0])
			}
			write, known := map[string]func(context.Context, *query.Trace, io.Writer) error{
				"otlp":     export.OTLP,
				"markdown": export.Markdown,
				"document": export.Document,
			}[to.Value]
			if !known {
				return console.Usagef("--to is needed: %s", strings.Join(to.Choices, ", "))
			}
			clean := a.secrets().Writer(out.w) // for names and ids; the rest is clean already
			return errors.Join(write(ctx, t, clean), clean.Close())
		})
	command.Flags().Var(&to, "to", "the form to write: otlp, markdown, document or html")
	command.Flags().Var(&format, "format", "the same as --to")
	command.Flags().Var(&maxSize, "max-bytes", viewcli.MaxBytesUsage)
	_ = command.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(to.Choices, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (a *app) follow() *cobra.Command {
	var interval time.Duration
	var fromStart bool
	command := &cobra.Command{
		Use:   "follow FILE",
		Short: "Show a live trace as it grows",
		Args:  cobra.ExactArgs(1),
		Example: `  fit trace follow run.ndjson
  fit trace follow --from-start --lane agent team.ndjson`,
		RunE: func(command *cobra.Command, args []string) error {
			return a.runFollow(command.Context(), a.con.Path(args[0]), interval, fromStart)
		},
	}
	command.Flags().DurationVar(&interval, "interval", 200*time.Millisecond, "polling interval for new lines")
	command.Flags().BoolVar(&fromStart, "from-start", false, "show what is there already")
	return command
}

// runFollow shows lines until the session ends with its summary, or the person leaves.
func (a *app) runFollow(ctx context.Context, path string, interval time.Duration, fromStart bool) error {
	file, err := os.Open(path)
	if err != nil {
		return classify(err)
	}
	defer file.Close()
	if !fromStart {
		if _, err := file.Seek(0, io.SeekEnd); err != nil {
			return err
		}
	}
	show := render.New(render.Config{
		Out:      a.con.Stdout,
		Colour:   a.con.Colour(),
		Dialects: a.dialects,
		Prices:   a.con.Prices(),
	})
	follower := query.Follower{
		In:         file,
		Interval:   interval,
		Lanes:      a.flags.lanes,
		FromMiddle: !fromStart,
	}
	line := func(env trace.Envelope) {
		env.Event = a.secrets().JSON(env.Event)
		show.Line(env)
	}
	if err := follower.Run(ctx, line); err != nil && ctx.Err() == nil {
		return err
	}
	return show.Close()
}
