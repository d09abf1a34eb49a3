package report

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

const dash = "—"

func icon(ok bool) string {
	if ok {
		return "✅"
	}
	return "❌"
}

// verdictIcon shows a verdict; missing data has its own sign.
func verdictIcon(verdict string) string {
	switch verdict {
	case ledger.Pass:
		return "✅"
	case ledger.Fail:
		return "❌"
	case "":
		return dash
	default:
		return "⚠️"
	}
}

func (v Value) text() string {
	if v.Err != "" {
		return v.Err
	}
	return fmt.Sprintf("%.4f", v.Est)
}

// atKText shows the pass@k of a task with its limits.
func (t *Task) atKText(k string) string {
	value := t.PassAtK[k]
	interval, known := t.PassAtKInterval[k]
	if value.Err != "" || !known {
		return value.text()
	}
	return fmt.Sprintf("%.4f [%.4f, %.4f]", value.Est, interval.Lo, interval.Hi)
}

func atKText(at stats.AtK) string {
	if !at.Defined() {
		return stats.ErrKExceedsN.Error()
	}
	return intervalText(&at.Interval)
}

// intervalText shows an estimate with its limits.
func intervalText(i *stats.Interval) string {
	if i == nil {
		return dash
	}
	return fmt.Sprintf("%.4f [%.4f, %.4f]", i.Est, i.Lo, i.Hi)
}

// Percent formats a rate with its limits for people.
func Percent(i *stats.Interval) string {
	if i == nil {
		return dash
	}
	return fmt.Sprintf("%.1f%% [%.1f, %.1f]", 100*i.Est, 100*i.Lo, 100*i.Hi)
}

// Count formats a count with its noun in the singular or plural.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// spent returns what is known about a group's cost, with a sign where it is not all.
func (t *Totals) spent() string {
	text := display.CostOver(t.CostUSD, t.KnownCostUSD)
	if t.OriginalCostUSD != nil {
		text += fmt.Sprintf(" (replayed; %s when it was recorded)", display.Cost(t.OriginalCostUSD))
	}
	if t.EstimatedCosts > 0 {
		text += fmt.Sprintf(" (%d of %s estimated)", t.EstimatedCosts, Count(t.Attempts, "attempt"))
	}
	return text
}

// perPass returns what a solved run costs with its limits, or why there are none.
func (t *Totals) perPass() string {
	price := t.CostPerPass
	switch {
	case price == nil:
		return dash
	case price.Method == stats.MethodNone:
		return fmt.Sprintf("%s (%s)", display.Dollars(price.Est), strings.Join(price.Warnings, "; "))
	}
	return fmt.Sprintf("%s [%s, %s]", display.Dollars(price.Est), display.Dollars(price.Lo), display.Dollars(price.Hi))
}

// cell makes a text safe for one cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(display.Line(text))
}
