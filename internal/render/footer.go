package render

import (
	"fmt"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/session"
)

// footer returns the line that sums up a session, once an agent has ended.
func (r *Renderer) footer() string {
	var (
		turns, finals int
		duration      int64
		used          session.TokenUsage
		headline      = "unknown"
	)
	for _, name := range r.order {
		l := r.lanes[name]
		final, count := l.fold.Finals()
		finals += count
		if final != nil { // it was not taken back
			headline = string(final.Outcome)
		}
		turns += l.fold.Turns()
		duration += l.duration + l.lastTs - l.firstTs
		usage := l.fold.TotalUsage()
		// a lane without any of these ended before it used anything
		if l.fold.Turns() > 0 || usage.TotalTokens > 0 || usage.CostUSD != nil {
			used = used.Plus(usage)
		}
	}
	if finals == 0 {
		return ""
	}
	if r.verdict != "" {
		headline = r.verdict
	}
	return fmt.Sprintf("--- Result: %s | Turns: %d | Cost: %s | Duration: %s ---", display.Line(headline), turns,
		display.FineCost(used.CostUSD), display.Millis(duration))
}
