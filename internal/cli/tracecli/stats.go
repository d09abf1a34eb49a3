package tracecli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/query"
)

func (a *app) statsVerbs() []*cobra.Command {
	return []*cobra.Command{a.stats(), a.cost(), a.modelCalls(), a.modelCallBodies()}
}

func (a *app) stats() *cobra.Command {
	var byTool, summary bool
	command := a.fileVerb("stats", "Report tokens, cost and time", `  fit trace stats --summary run.ndjson
  fit trace stats --by-tool run.ndjson
  fit trace stats --format json --file 'runs/*.ndjson'`,
		func(ctx context.Context, out *output, traces []*query.Trace) error {
			for _, t := range traces {
				var err error
				if byTool && !summary {
					err = a.statsByTool(ctx, out, t)
				} else {
					err = a.statsOf(ctx, out, t, summary)
				}
				if err != nil {
					return err
				}
			}
			return out.endObjects()
		})
	command.Flags().BoolVar(&byTool, "by-tool", false, "split the totals over the tools")
	command.Flags().BoolVar(&summary, "summary", false, "the totals only")
	return command
}

func (a *app) statsOf(ctx context.Context, out *output, t *query.Trace, summary bool) error {
	s, _, err := t.Stats(ctx)
	if err != nil {
		return err
	}
	if !summary {
		return out.fieldsOf(t.Name(), []field{
			{key: "totals", value: s.Totals},
			{key: "perTurn", rows: func(row func(any) error) error {
				for i := range s.PerTurn {
					if err := row(s.PerTurn[i]); err != nil {
						return err
					}
				}
				return nil
			}},
			{key: "modelUsage", value: s.ModelUsage},
			{key: "divergence", value: s.Divergence},
		})
	}
	return out.object(t.Name(), map[string]query.Totals{"totals": s.Totals}, func() { out.totals(s.Totals) })
}

func (o *output) totals(t query.Totals) {
	for _, line := range []struct {
		key   string
		value string
	}{
		{"inputTokens", fmt.Sprint(t.InputTokens)},
		{"outputTokens", fmt.Sprint(t.OutputTokens)},
		{"cacheReadInputTokens", fmt.Sprint(t.CacheReadTokens)},
		{"cacheCreationInputTokens", fmt.Sprint(t.CacheWriteTokens)},
		{"totalCostUsd", numberOrNull(t.TotalCostUSD)},
		{"durationMs", optionalInt(t.DurationMs)},
	} {
		o.line(o.paint(dim, line.key+":") + " " + line.value)
	}
}

func optionalInt(n *int64) string {
	if n == nil {
		return "null"
	}
	return fmt.Sprint(*n)
}

func (a *app) statsByTool(ctx context.Context, out *output, t *query.Trace) error {
	s, err := t.ByTool(ctx)
	if err != nil {
		return err
	}
	for _, lane := range s.Missing {
		fmt.Fprintf(a.con.Stderr, "%s: the tools of %s are missing: the agent does not report tokens by message\n",
			display.Line(t.Name()), display.Line(lane))
	}
	return out.object(t.Name(), s, func() {
		out.line("Tool | Turns | In | Out | Share")
		for _, row := range s.PerTool {
			out.linef("%s | %d | %.0f | %.0f | %.4f", display.Text(row.Tool), row.Turns, math.Round(row.InputTokens),
				math.Round(row.OutputTokens), row.CostShare)
		}
	})
}

func (a *app) cost() *cobra.Command {
	var markdown bool
	command := a.verb("cost FILE", "Report the cost of a session, in total and by participant (always JSON or Markdown)", `  fit trace cost team.ndjson
  fit trace cost --markdown team.ndjson >> "$GITHUB_STEP_SUMMARY"`,
		cobra.MaximumNArgs(1), func(ctx context.Context, out *output, args []string) error {
			if len(args) == 0 || args[0] == "" {
				fmt.Fprintln(a.con.Stderr, "no trace given: no cost to report")
				return nil
			}
			// workflows ask for the cost of sessions that never started
			info, err := os.Stat(a.con.Path(args[0]))
			if args[0] != "-" && errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintf(a.con.Stderr, "%s does not exist: no cost to report\n", args[0])
				return nil
			}
			t, err := a.open(args[0])
			if err != nil {
				return err
			}
			c, err := t.Cost(ctx)
			if err != nil {
				return err
			}
			if p := t.Problems(); t.Nothing() && p.Skipped == 0 && info != nil && info.Size() == 0 {
				fmt.Fprintf(a.con.Stderr, "%s is empty: no cost to report\n", args[0])
				a.opened = nil
				return nil
			}
			if markdown {
				out.costTable(c)
				return nil
			}
			if out.format == formatText {
				out.format = formatJSON
			}
			return out.object("", c, nil)
		})
	command.Flags().BoolVar(&markdown, "markdown", false, "a heading and a table for a report")
	return command
}

func (o *output) costTable(c *query.Cost) {
	o.line("### 💰 Session cost: " + display.FineCost(c.TotalUSD))
	o.line("")
	if slices.ContainsFunc(c.BySource, func(l query.LaneCost) bool { return l.From == query.FromWire }) {
		o.line("As the models' services reported to the gateway, otherwise as the agents report; each is counted " +
			"once.")
	} else {
		o.line("As the agents of this session report; each is counted once.")
	}
	if c.OriginalUSD != nil {
		o.linef("The calls were answered from a record; when they were recorded they cost %s.",
			display.FineDollars(*c.OriginalUSD))
	}
	for _, d := range c.Differences {
		o.linef("%s says %s, the wire says %s (%+.1f%%).", display.Text(d.Lane), display.FineDollars(d.AgentUSD),
			display.FineDollars(d.WireUSD), d.Percent)
	}
	rows := slices.Clone(c.BySource)
	slices.SortStableFunc(rows, func(a, b query.LaneCost) int { return cmp.Compare(b.USD, a.USD) })
	if len(rows)+len(c.Unknown) == 0 {
		return
	}
	o.line("")
	o.line("| Participant | Cost (USD) |")
	o.line("| --- | --- |")
	for _, row := range rows {
		o.linef("| %s | %.4f |", display.Text(row.Lane), row.USD)
	}
	for _, lane := range c.Unknown {
		o.linef("| %s | unknown |", display.Text(lane))
	}
}
