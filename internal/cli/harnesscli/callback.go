package harnesscli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/bridge"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/trace"
)

// callbackOptions are the flags of fit-harness callback.
type callbackOptions struct {
	traceFile     string
	url           string
	correlationID string
	runURL        string
	discussionID  string
	timeout       console.Span
	attempts      console.Count
}

func newCallback(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := callbackOptions{attempts: console.Count{Min: 1}}
	command := &cobra.Command{
		Use:   "callback",
		Short: "Report to a discussion bridge how its session ended",
		Long: `Report to a discussion bridge how the session in a trace ended: its verdict, summary, outcome,
cost, replies, requests for comment, and what the next session needs. A trace without a summary is reported as failed.
Transient errors are retried.

Exit codes: 0 delivered · 2 usage error · 3 the bridge could not be reached or refused.`,
		Example: `  fit-harness callback --trace-file trace.ndjson --callback-url "$CALLBACK_URL" --correlation-id "$CORRELATION_ID" --run-url "$RUN_URL"`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runCallback(command.Context(), con, registry, opts)
		},
	}
	flags := command.Flags()
	flags.StringVar(&opts.traceFile, "trace-file", "", "the trace")
	flags.StringVar(&opts.url, "callback-url", "",
		"where to post (also CALLBACK_URL, which keeps its token off the command line)")
	flags.StringVar(&opts.correlationID, "correlation-id", "", "the run, as the bridge knows it (also CORRELATION_ID)")
	flags.StringVar(&opts.runURL, "run-url", "", "where people can look at the run")
	flags.StringVar(&opts.discussionID, "discussion-id", "", "the thread, if the trace does not name it")
	flags.Var(&opts.timeout, "timeout", "timeout of one attempt (default 15s)")
	flags.Var(&opts.attempts, "attempts", "number of attempts (default 8)")
	return command
}

func runCallback(ctx context.Context, con *console.Console, registry *agent.Registry, opts callbackOptions) error {
	opts.url = cmp.Or(opts.url, con.Getenv("CALLBACK_URL"))
	opts.correlationID = cmp.Or(opts.correlationID, con.Getenv("CORRELATION_ID"))
	switch {
	case opts.traceFile == "":
		return console.Usagef("no trace: set --trace-file")
	case opts.url == "":
		return console.Usagef("no address to post to: set --callback-url or CALLBACK_URL")
	case opts.correlationID == "":
		return console.Usagef("the bridge must know which run this is: set --correlation-id or CORRELATION_ID")
	}
	terminal, err := readTerminal(con.Path(opts.traceFile))
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	terminal.RunURL = opts.runURL
	terminal.DiscussionID = cmp.Or(terminal.DiscussionID, opts.discussionID)
	client := bridge.Client{
		URL:           opts.url,
		CorrelationID: opts.correlationID,
		Redactor:      newRedactor(con, registry),
		Timeout:       opts.timeout.Value,
		Attempts:      opts.attempts.Value,
	}
	if err := client.PostTerminal(ctx, terminal); err != nil {
		return console.Exit(console.ExitIncomplete, fmt.Errorf("the end of the session was not delivered: %w", err))
	}
	return nil
}

// noSummary is reported for a session that was cut off.
const noSummary = "The run ended without a summary; its trace shows how far it got."

// ending is what the summary of a trace may say.
type ending struct {
	Type         string                 `json:"type"`
	Verdict      string                 `json:"verdict"`
	Summary      string                 `json:"summary"`
	Outcome      string                 `json:"outcome"`
	CostUSD      *float64               `json:"costUsd"`
	Replies      []harness.Reply        `json:"replies"`
	RFCs         []harness.RFC          `json:"rfcs"`
	Trigger      *harness.Trigger       `json:"trigger"`
	DiscussionID string                 `json:"discussion_id"`
	LastActedSeq *int64                 `json:"lastActedSeq"`
	Resume       *harness.ResumeContext `json:"resume"`
	Unsent       []int64                `json:"unsentReplies"`
}

// readTerminal makes a terminal callback of a trace: the last summary counts.
func readTerminal(path string) (bridge.Terminal, error) {
	file, err := os.Open(path)
	if err != nil {
		return bridge.Terminal{}, err
	}
	defer file.Close()
	var last *ending
	var cost float64
	discussion := ""
	for line, err := range trace.NewReader(file).All() {
		if err != nil {
			return bridge.Terminal{}, fmt.Errorf("read trace: %w", err)
		}
		switch {
		case line.Problem != nil:
		case line.Source != trace.Orchestrator:
			cost += resultCost(line.Event)
		default:
			var e ending
			if json.Unmarshal(line.Event, &e) == nil && e.Type == trace.TypeSummary {
				last = &e
			} else if e.Type == trace.TypeMeta && discussion == "" {
				discussion = e.DiscussionID
			}
		}
	}
	return last.terminal(discussion, cost), nil
}

func (e *ending) terminal(discussion string, cost float64) bridge.Terminal {
	t := bridge.Terminal{
		Verdict:      harness.VerdictFailed,
		Summary:      noSummary,
		DiscussionID: discussion,
		CostUSD:      cost,
		Replies:      []harness.Reply{},
		LastActedSeq: -1,
	}
	if e == nil {
		return t
	}
	t.Summary, t.Outcome, t.RFCs, t.Trigger, t.Resume = e.Summary, e.Outcome, e.RFCs, e.Trigger, e.Resume
	t.Verdict = cmp.Or(e.Verdict, t.Verdict)
	t.DiscussionID = cmp.Or(e.DiscussionID, t.DiscussionID)
	if e.CostUSD != nil {
		t.CostUSD = *e.CostUSD
	}
	if e.LastActedSeq != nil {
		t.LastActedSeq = *e.LastActedSeq
	}
	for _, r := range e.Replies {
		if slices.Contains(e.Unsent, r.Seq) {
			r.Kind = "" // the bridge posts what has no kind, because it was not streamed
		}
		t.Replies = append(t.Replies, r)
	}
	return t
}

// resultCost is what an agent says its run has cost, where it says so.
func resultCost(event []byte) float64 {
	var result struct {
		Type string   `json:"type"`
		Cost *float64 `json:"total_cost_usd"`
	}
	if json.Unmarshal(event, &result) != nil || result.Type != "result" || result.Cost == nil {
		return 0
	}
	return *result.Cost
}
