package render

import (
	"fmt"
	"math"
	"time"

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
	price := "unknown"
	if used.CostUSD != nil {
		price = fmt.Sprintf("$%.4f", *used.CostUSD)
	}
	return fmt.Sprintf("--- Result: %s | Turns: %d | Cost: %s | Duration: %s ---", display.Line(headline), turns, price,
		shownDuration(duration))
}

// shownDuration shows milliseconds the way people read them.
func shownDuration(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%dms", ms)
	}
	seconds := int64(math.Round(float64(ms) / float64(time.Second.Milliseconds())))
	if seconds < 60 {
		return fmt.Sprintf("%ds", seconds)
	}
	return fmt.Sprintf("%dm %ds", seconds/60, seconds%60)
}
