package benchmarkcli

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/report"
)

// show tells people how far an experiment is: one line that changes on a terminal, a line for each
// attempt elsewhere.
type show struct {
	con    *console.Console
	record func(*ledger.Record) // may be nil
	live   bool
	drawn  bool
}

func newShow(con *console.Console, record func(*ledger.Record)) *show {
	return &show{con: con, record: record, live: con.StderrIsTerminal()}
}

func (s *show) progress(p experiment.Progress) {
	if p.Last != nil && s.record != nil {
		s.record(p.Last)
	}
	switch {
	case s.live:
		fmt.Fprintf(s.con.Stderr, "\r\x1b[K%s", statusLine(p))
		s.drawn = true
	case p.Last != nil:
		fmt.Fprintf(s.con.Stderr, "%s · %s\n", attemptLine(p.Last), statusLine(p))
	}
}

func (s *show) end() {
	if s.drawn {
		fmt.Fprintln(s.con.Stderr)
	}
}

func statusLine(p experiment.Progress) string {
	parts := []string{fmt.Sprintf("%d/%d", p.Done, p.Total)}
	if p.Rate != nil {
		parts = append(parts, fmt.Sprintf("%.0f %% pass [%.0f, %.0f]", 100*p.Rate.Est, 100*p.Rate.Lo, 100*p.Rate.Hi))
	}
	if p.Errors > 0 {
		parts = append(parts, fmt.Sprintf("%d errors", p.Errors))
	}
	cost := fmt.Sprintf("$%.2f", p.CostUSD)
	if p.Unpriced > 0 {
		cost += "+?"
	}
	parts = append(parts, cost)
	if p.ETA > 0 {
		parts = append(parts, "about "+report.Duration(p.ETA)+" left")
	}
	return strings.Join(parts, " · ")
}

func attemptLine(r *ledger.Record) string {
	verdict := r.Verdict
	if r.Verdict == ledger.Error {
		verdict = "error (" + r.ErrorClass + ")"
	}
	line := fmt.Sprintf("%s/%s run %d: %s", r.TaskID, r.Arm, r.RunIndex, verdict)
	if r.Attempt > 1 {
		line += fmt.Sprintf(", attempt %d", r.Attempt)
	}
	return line
}
