package tracecli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/query"
)

func (a *app) modelCalls() *cobra.Command {
	return a.eachVerb("calls", "Show the model calls that the gateway saw: latency, tokens, cache, retries, cost",
		`  fit trace calls run.ndjson
  fit trace calls --format ndjson run.ndjson | jq 'select(.retry > 0)'`,
		func(ctx context.Context, out *output, t *query.Trace) error {
			all, err := t.ModelCalls(ctx)
			if err != nil {
				return err
			}
			for i := range all {
				if err := out.record(t.Name(), all[i], func() { out.modelCall(&all[i]) }); err != nil {
					return err
				}
			}
			if len(all) == 0 {
				out.explained = true
				fmt.Fprintln(a.con.Stderr, noCalls)
			}
			return nil
		})
}

// noCalls says why there may be no model calls.
const noCalls = "no model calls are recorded: the gateway was off, or its .calls file is not beside the trace"

// modelCallBodies shows one call with its request and its reply.
func (a *app) modelCallBodies() *cobra.Command {
	return a.verb("call FILE CALL", "Show one model call with its request and its reply; calls lists them, from 0",
		`  fit trace call run.ndjson 0
  fit trace call --format json run.ndjson 3 | jq -r .request | jq .messages`, cobra.ExactArgs(2),
		func(ctx context.Context, out *output, args []string) error {
			n, err := wholeNumber("CALL", args[1])
			if err != nil {
				return err
			}
			t, err := a.open(args[0])
			if err != nil {
				return err
			}
			exchange, err := t.Exchange(ctx, n)
			if err != nil {
				return err
			}
			if exchange == nil && !t.Nothing() {
				return noSuchCall(ctx, t, n)
			}
			if exchange == nil {
				return out.object(t.Name(), nil, nil)
			}
			return out.object(t.Name(), exchange, func() { out.exchange(exchange) })
		})
}

func noSuchCall(ctx context.Context, t *query.Trace, n int) error {
	all, err := t.ModelCalls(ctx)
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		return console.Usagef("%s: %s", t.Name(), noCalls)
	}
	return console.Usagef("%s has no model call %d; the last is %d", t.Name(), n, len(all)-1)
}

// exchange prints a call and its bodies, JSON with an indent.
func (o *output) exchange(e *query.Exchange) {
	o.modelCall(&e.Call)
	for _, part := range [][2]string{{"request", e.Request}, {"reply", e.Response}} {
		if part[1] == "" {
			continue
		}
		text := []byte(part[1])
		if json.Valid(text) {
			text = jsonenc.Style{Indent: 2}.AppendJSON(nil, text)
		}
		o.line(o.paint(dim, part[0]))
		o.line(display.Text(string(text)))
	}
	if e.Missing != "" {
		o.line(display.Line(e.Missing))
	}
}

// modelCall prints one line for a call of a model.
func (o *output) modelCall(c *query.ModelCall) {
	turn := "–"
	if c.Turn > 0 {
		turn = fmt.Sprint(c.Turn)
	}
	columns := []string{
		display.PadColumns(display.Line(c.Model), 24),
		display.PadColumns(fmt.Sprintf("%d %s", c.Status, display.Line(c.Outcome)), 12),
		display.PadColumns(fmt.Sprintf("first %d ms, all %d ms", c.FirstByteMs, c.EndMs), 28),
	}
	if u := c.Usage; u != nil {
		read := u.Prompt()
		about := ""
		if u.Partial {
			about = "~"
		}
		columns = append(columns, fmt.Sprintf("in:%s out:%s%s", thousands(read), about, thousands(u.OutputTokens)))
		if read > 0 {
			columns = append(columns, fmt.Sprintf("cached %d%%", 100*u.CacheReadTokens/read))
		}
	}
	if c.Retry > 0 {
		columns = append(columns, fmt.Sprintf("retry %d", c.Retry))
	}
	if c.CostUSD != nil {
		columns = append(columns, display.FineDollars(*c.CostUSD))
	}
	if c.OriginalUSD != nil {
		columns = append(columns, "(recorded "+display.FineDollars(*c.OriginalUSD)+")")
	}
	if len(c.ServerTools) > 0 {
		columns = append(columns, "server tools: "+display.Line(strings.Join(c.ServerTools, ", ")))
	}
	if c.Error != "" {
		columns = append(columns, o.paint(red, "error:")+" "+display.Line(c.Error))
	}
	o.line(o.paint(dim, "["+turn+"]") + " " + o.lane(&c.Lane) + strings.Join(columns, " "))
}
