package experimentcli

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/ledger"
)

// show shows the progress of an experiment: one line that changes on a terminal, a line for each
// attempt elsewhere.
type show struct {
	con    *console.Console
	record func(*ledger.Record) // may be nil
	rate   *gateway.RateControl
	live   bool
	drawn  bool
}

func newShow(con *console.Console, record func(*ledger.Record), rate *gateway.RateControl) *show {
	return &show{
		con:    con,
		record: record,
		rate:   rate,
		live:   con.StderrIsTerminal(),
	}
}

func (s *show) progress(p experiment.Progress) {
	if p.Last != nil && s.record != nil {
		s.record(p.Last)
	}
	switch {
	case s.live:
		s.con.Status(s.statusLine(p))
		s.drawn = true
	case p.Last != nil:
		fmt.Fprintf(s.con.Stderr, "%s · %s\n", attemptLine(p.Last), s.statusLine(p))
	}
}

// interrupted says immediately what the first signal does.
func (s *show) interrupted(cells int, drain time.Duration) {
	s.end()
	s.drawn = false
	if cells == 0 {
		fmt.Fprintln(s.con.Stderr, "stopping")
		return
	}
	fmt.Fprintf(s.con.Stderr, "finishing %s, at most %s; press Ctrl-C again to stop now\n", report.Count(cells, "cell"),
		drain)
}

// secondSignal returns a channel that is closed by the second signal that asks the process to end.
// The first one ends the context.
func secondSignal() (<-chan struct{}, func()) {
	signals, stopNow, over := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for range 2 {
			select {
			case <-signals:
			case <-over:
				return
			}
		}
		close(stopNow)
	})
	return stopNow, func() {
		signal.Stop(signals)
		close(over)
		waiting.Wait()
	}
}

func (s *show) end() {
	if s.drawn {
		fmt.Fprintln(s.con.Stderr)
	}
}

// statusLine is how far the experiment is, and how many model calls a provider lets us make.
func (s *show) statusLine(p experiment.Progress) string {
	line := statusLine(p)
	for _, rate := range s.rate.Status() {
		if text := rateText(rate); text != "" {
			line += " · " + text
		}
	}
	return line
}

// rateText says how a provider is used; nothing where it has not complained.
func rateText(rate gateway.RateStatus) string {
	if rate.Limit == 0 {
		return ""
	}
	text := fmt.Sprintf("%s: %d of %s", strings.TrimSpace(rate.Provider+" "+rate.Model), rate.Running,
		report.Count(rate.Limit, "call"))
	if rate.Waiting > 0 {
		text += fmt.Sprintf(", %d waiting", rate.Waiting)
	}
	if rate.Pause > 0 {
		text += fmt.Sprintf(", paused for %s", display.Duration(rate.Pause))
	}
	return text
}

func statusLine(p experiment.Progress) string {
	parts := []string{fmt.Sprintf("%d/%d", p.Done, p.Total)}
	if p.Rate != nil {
		parts = append(parts, fmt.Sprintf("%.0f%% pass [%.0f, %.0f]", 100*p.Rate.Est, 100*p.Rate.Lo, 100*p.Rate.Hi))
	}
	if p.Errors > 0 {
		parts = append(parts, report.Count(p.Errors, "error"))
	}
	cost := display.Dollars(p.CostUSD)
	switch {
	case p.Unpriced > 0 && p.CostUSD == 0:
		cost = "cost unknown"
	case p.Unpriced > 0:
		cost += fmt.Sprintf(" and %s of unknown cost", report.Count(p.Unpriced, "attempt"))
	}
	parts = append(parts, cost)
	if p.ETA > 0 {
		parts = append(parts, "about "+display.Duration(max(p.ETA, time.Second))+" left")
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
